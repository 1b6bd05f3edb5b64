//! What is to be done, and why everything else is not. A plan leaves no choices.

use std::fmt;

use crate::pod::PodKey;
use crate::quantity::Quantity;
use crate::requirements::{Incompatible, Requirements};
use crate::resources::{CPU, Resources, Shortage};
use crate::snapshot::Place;
use crate::taint::Taint;

/// The outcome of planning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Nodes to be made.
    pub new_nodes: Vec<NewNode>,
    /// Pods that fit on a node that is there or on its way.
    pub placements: Vec<Placement>,
    /// Pods that wait, and why.
    pub unplaced: Vec<Unplaced>,
}

/// A node to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNode {
    /// The pool it belongs to.
    pub pool: String,
    /// Its size.
    pub instance_type: String,
    /// Where it is made.
    pub place: Place,
    /// What its labels must be like.
    pub requirements: Requirements,
    /// What its pods need together, daemons included.
    pub requests: Resources,
    /// The pods it is made for.
    pub pods: Vec<PodKey>,
}

/// A pod and the node it fits on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: PodKey,
    /// The Node or NodeClaim.
    pub node: String,
}

/// A pod that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Unplaced {
    /// The pod.
    pub pod: PodKey,
    /// Why.
    pub reason: Reason,
}

/// Why a pod waits.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// It asks for something that is not judged yet.
    Unsupported(String),
    /// There is no pool.
    NoPools,
    /// Every pool said no.
    Refused(Vec<(String, PoolRefusal)>),
}

/// Why a pool makes no node for a pod.
#[derive(Debug, Clone, PartialEq)]
pub enum PoolRefusal {
    /// The pool or its class is not ready.
    NotReady(String),
    /// The pod does not tolerate a taint of the pool.
    Taint(Taint),
    /// The pod asks for other labels.
    Labels(Incompatible),
    /// No size has enough, daemons counted; the nearest miss.
    NoType(Shortage),
    /// The pool has what it may have.
    Limit {
        /// Of what.
        resource: String,
        /// How much it may have.
        limit: Quantity,
    },
    /// No host holds a VM of the smallest size that would do.
    NoHost {
        /// That size.
        instance_type: String,
        /// What is short, and the largest gap there is.
        shortage: Shortage,
        /// Where that gap is, if any host can be used.
        largest_on: Option<Place>,
        /// A host that cannot be used at all, and why.
        closed: Option<(Place, String)>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unsupported(what) => write!(f, "it uses {what}, which is not supported yet"),
            Reason::NoPools => f.write_str("there is no NodePool; create one"),
            Reason::Refused(refusals) => {
                for (index, (pool, refusal)) in refusals.iter().enumerate() {
                    let divide = if index == 0 { "" } else { "; " };
                    write!(f, "{divide}NodePool {pool}: {refusal}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for PoolRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolRefusal::NotReady(why) => write!(f, "not ready ({why})"),
            PoolRefusal::Taint(taint) => write!(f, "did not tolerate {taint}"),
            PoolRefusal::Labels(why) => write!(f, "incompatible requirements, {why}"),
            PoolRefusal::NoType(short) => write!(
                f,
                "no instance type has enough {}: {} wanted, at most {} left for pods",
                short.resource,
                shown(&short.resource, short.wanted),
                shown(&short.resource, short.available)
            ),
            PoolRefusal::Limit { resource, limit } => {
                write!(f, "its limit of {} {resource} is reached", shown(resource, *limit))
            }
            PoolRefusal::NoHost { instance_type, shortage, largest_on, closed } => {
                match largest_on {
                    Some(place) => {
                        let resource = &shortage.resource;
                        let (wanted, gap) = (shown(resource, shortage.wanted), shown(resource, shortage.available));
                        write!(f, "no host has {wanted} of {resource} free for a {instance_type}; ")?;
                        write!(f, "the largest gap is {gap} on {}", place.host)?;
                    }
                    // How much is free does not matter where nothing can be made.
                    None => write!(f, "no host can be used for a {instance_type}")?,
                }
                closed.iter().try_for_each(|(place, why)| write!(f, "; {} is left out: {why}", place.host))
            }
        }
    }
}

/// An amount as people say it: bytes in GiB or MiB, cores in cores.
fn shown(resource: &str, amount: Quantity) -> String {
    let bytes = amount.value();
    match resource {
        CPU => amount.to_string(),
        _ if bytes >= 1 << 30 => format!("{} GiB", tenths(bytes, 30)),
        _ if bytes >= 1 << 20 => format!("{} MiB", tenths(bytes, 20)),
        _ => amount.to_string(),
    }
}

/// A number of bytes in units of two to the power, with one decimal where it is not whole, rounded down.
fn tenths(bytes: i64, power: u32) -> String {
    let tenths = (i128::from(bytes) * 10) >> power;
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::MEMORY;

    #[test]
    fn a_pod_that_waits_says_how_large_the_largest_gap_is_and_where() {
        let gib = |n: i64| Quantity::whole(n << 30);
        let shortage = Shortage { resource: MEMORY.to_owned(), wanted: gib(64), available: gib(48) };
        let largest_on = Some(Place { region: "lab".to_owned(), host: "pve3".parse().unwrap() });
        let closed =
            Some((Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() }, "it is offline".to_owned()));
        let refusal = PoolRefusal::NoHost { instance_type: "m1.8VCPU-64GB".to_owned(), shortage, largest_on, closed };
        let reason = Reason::Refused(vec![("default".to_owned(), refusal)]);
        assert_eq!(
            reason.to_string(),
            "NodePool default: no host has 64 GiB of memory free for a m1.8VCPU-64GB; the largest gap is 48 GiB on pve3; \
             pve1 is left out: it is offline"
        );
    }

    #[test]
    fn where_no_host_can_be_used_the_reason_is_not_hidden_behind_amounts() {
        let wanted = Quantity::whole(64 << 30);
        let shortage = Shortage { resource: MEMORY.to_owned(), wanted, available: Quantity::ZERO };
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let closed = Some((place, "it is offline".to_owned()));
        let size = "m1.8VCPU-64GB".to_owned();
        let refusal = PoolRefusal::NoHost { instance_type: size, shortage, largest_on: None, closed };
        assert_eq!(refusal.to_string(), "no host can be used for a m1.8VCPU-64GB; pve1 is left out: it is offline");
    }

    #[test]
    fn amounts_read_as_people_say_them() {
        assert_eq!(shown(MEMORY, Quantity::whole((3 << 30) / 2)), "1.5 GiB");
        assert_eq!(shown(MEMORY, Quantity::whole(500 << 20)), "500 MiB");
        assert_eq!(shown(CPU, Quantity::milli(1500)), "1500m");
        assert_eq!(shown("pods", Quantity::whole(110)), "110");
    }
}
