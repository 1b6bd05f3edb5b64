//! Whether the cluster can decide anything, who is in it, and what it was told as a whole.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tenon_model::HostName;

use crate::client::{Call, Client};
use crate::error::{Error, Result};
use crate::reply::{flag, host_name, parse, plain, unreadable};

/// The cluster as it sees itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Its name; a machine on its own has none.
    pub name: Option<String>,
    /// Whether a majority is there. A single machine always has it.
    pub quorate: bool,
    /// Its machines, by name.
    pub members: Vec<Member>,
}

/// A machine, as the cluster sees it about eight seconds late.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// Its name.
    #[serde(deserialize_with = "host_name")]
    pub name: HostName,
    /// Whether it answers the others.
    #[serde(default, deserialize_with = "flag")]
    pub online: bool,
    /// The address the others know it by.
    pub ip: Option<String>,
    /// Whether it is the one that was asked.
    #[serde(default, deserialize_with = "flag")]
    pub local: bool,
}

/// A line of the high-availability manager: about quorum, its machines, or a VM in its care.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HaRow {
    /// `quorum`, `service:vm:100` and the like.
    pub id: String,
    /// `quorum`, `master`, `lrm`, `service`, `fencing`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The machine it speaks of.
    pub node: Option<String>,
    /// The manager's words.
    pub status: Option<String>,
    /// For a VM: what the manager was told to make of it.
    pub state: Option<String>,
}

impl Client {
    /// The release of Proxmox, such as `9.2.11`.
    pub async fn version(&self) -> Result<String> {
        let action = "read the Proxmox version";
        let data = self.get(action.to_owned(), "/version".to_owned()).await?;
        let version = data.get("version").and_then(Value::as_str);
        version.map(str::to_owned).ok_or_else(|| Error::new(action, unreadable("no version in it")))
    }

    /// The cluster and its machines. Needs `Sys.Audit` on `/`.
    pub async fn cluster_status(&self) -> Result<ClusterStatus> {
        #[derive(Deserialize)]
        struct Cluster {
            name: Option<String>,
            #[serde(default, deserialize_with = "flag")]
            quorate: bool,
        }
        let action = "read the state of the cluster";
        let data = self.get(action.to_owned(), "/cluster/status".to_owned()).await?;
        let understood = |cause| Error::new(action, cause);
        let rows: Vec<Value> = parse(data).map_err(understood)?;
        let mut status = ClusterStatus { name: None, quorate: true, members: Vec::new() };
        for row in rows {
            match row.get("type").and_then(Value::as_str) {
                Some("cluster") => {
                    let cluster: Cluster = parse(row).map_err(understood)?;
                    (status.name, status.quorate) = (cluster.name, cluster.quorate);
                }
                Some("node") => status.members.push(parse(row).map_err(understood)?),
                _ => {}
            }
        }
        status.members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(status)
    }

    /// Whether the cluster has quorum. A single machine always has.
    pub async fn is_quorate(&self) -> Result<bool> {
        Ok(self.cluster_status().await?.quorate)
    }

    /// What the high-availability manager says, by id. Needs `Sys.Audit` on `/`.
    pub async fn ha_status(&self) -> Result<Vec<HaRow>> {
        let action = "read the HA state of the cluster".to_owned();
        let path = "/cluster/ha/status/current".to_owned();
        let mut rows: Vec<HaRow> = self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(rows)
    }

    /// What the high-availability manager thinks of each host: `online`, `maintenance`, `fence`, `unknown`. Empty where nothing
    /// is managed. Needs `Sys.Audit` on `/`.
    pub async fn ha_host_states(&self) -> Result<BTreeMap<String, String>> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Manager {
            node_status: BTreeMap<String, String>,
        }
        #[derive(Deserialize)]
        struct Status {
            #[serde(default)]
            manager_status: Option<Manager>,
        }
        let action = "read what the HA manager says of hosts".to_owned();
        let path = "/cluster/ha/status/manager_status".to_owned();
        let status: Status = self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        Ok(status.manager_status.unwrap_or_default().node_status)
    }

    /// What was set for the whole cluster, such as `next-id` or `tag-style`; lists as JSON. A token without rights sees
    /// little of it.
    pub async fn cluster_options(&self) -> Result<BTreeMap<String, String>> {
        let action = "read the options of the cluster".to_owned();
        let path = "/cluster/options".to_owned();
        let options: BTreeMap<String, Value> =
            self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        Ok(options.into_iter().map(|(name, value)| (name, plain(&value))).collect())
    }
}
