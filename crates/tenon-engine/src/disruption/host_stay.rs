//! Why is a node not moved to another host, although its ProxmoxNodeClass has a goal for hosts?

use std::fmt;

use tenon_model::Price;

use super::kept::Kept;

/// Why a node stays on its host.
#[derive(Debug, Clone, PartialEq)]
pub enum HostStay {
    /// Something else happens to nodes first.
    Busy {
        /// The node that is created, restarted or removed.
        node: String,
    },
    /// Nobody knows the host, or no VM may be made there or moved now.
    HostClosed {
        /// The host, if it is known.
        host: Option<String>,
    },
    /// No other host has VMs of ours, so none is freed by moving these.
    OnlyHost {
        /// The host.
        host: String,
    },
    /// A node on the host is none that may be moved for this goal.
    OtherPool {
        /// The host.
        host: String,
        /// The node.
        node: String,
        /// Its pool.
        pool: String,
    },
    /// A node on the host stays, so the host would not become free.
    NodeStays {
        /// The host.
        host: String,
        /// The node, or none if it is all of them together.
        node: Option<String>,
        /// Why.
        why: Box<Kept>,
    },
    /// The node is empty, and waits to be deleted.
    Empty {
        /// The node.
        node: String,
    },
    /// The new nodes would cost more.
    Dearer {
        /// What they would cost.
        price: Price,
        /// What the nodes cost that they would replace.
        current: Price,
    },
    /// A new node would be one of a pool without this goal.
    NodeOfOtherPool {
        /// The pool.
        pool: String,
    },
    /// No host that the pool can use has so few nodes of it that moving one there would help.
    Even {
        /// The host of the node.
        host: String,
        /// The pool.
        pool: String,
    },
    /// As much as may be asked in one look was asked about others.
    NotAsked,
}

impl fmt::Display for HostStay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostStay::Busy { node } => {
                write!(
                    f,
                    "node {node} is being created, restarted or removed; nodes are moved between hosts after that"
                )
            }
            HostStay::HostClosed { host: Some(host) } => {
                write!(f, "host {host} cannot be used now; nodes are not moved from there")
            }
            HostStay::HostClosed { host: None } => f.write_str("the host of the node is unknown"),
            HostStay::OnlyHost { host } => {
                write!(f, "host {host} is the only usable host with VMs of Tenon, so no host can be freed")
            }
            HostStay::OtherPool { host, node, pool } => write!(
                f,
                "host {host} cannot be freed: node {node} belongs to NodePool {pool}, whose nodes are not moved for goal PackHosts"
            ),
            HostStay::NodeStays { host, node: Some(node), why } => {
                write!(f, "host {host} cannot be freed: node {node} stays: {why}")
            }
            HostStay::NodeStays { host, node: None, why } => write!(f, "host {host} cannot be freed: {why}"),
            HostStay::Empty { node } => write!(f, "node {node} is empty, and is deleted instead of moved"),
            HostStay::Dearer { price, current } => {
                write!(f, "the replacements on other hosts cost {price}, more than the current {current}")
            }
            HostStay::NodeOfOtherPool { pool } => {
                write!(
                    f,
                    "the replacement would be a node of NodePool {pool}, which does not have the same goal for hosts"
                )
            }
            HostStay::Even { host, pool } => {
                write!(f, "no usable host has at least 2 nodes of NodePool {pool} fewer than host {host}")
            }
            HostStay::NotAsked => f.write_str("other hosts are looked at first"),
        }
    }
}
