//! A VM's firewall: what is let in as a rule, and the rules one by one.
//!
//! Proxmox writes options and rules for VMs that do not exist, and puts each new rule first whatever position it is
//! given: rules in the order A, B, C are sent C, B, A.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form, Params};
use crate::error::Result;
use crate::guests::vm_path;
use crate::reply::{flag, plain, text_or_none, whole};

/// A rule as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FirewallRule {
    /// Its position; the first that fits decides.
    #[serde(deserialize_with = "whole")]
    pub pos: u64,
    /// `in`, `out`, `forward`, or `group` for a security group.
    #[serde(rename = "type")]
    pub kind: String,
    /// `ACCEPT`, `DROP`, `REJECT`, or the name of the security group.
    pub action: String,
    /// Whether it counts.
    #[serde(default, deserialize_with = "flag")]
    pub enable: bool,
    /// The card it is for: `net0`.
    #[serde(default, deserialize_with = "text_or_none")]
    pub iface: Option<String>,
    /// The protocol.
    #[serde(default, deserialize_with = "text_or_none")]
    pub proto: Option<String>,
    /// Where it comes from.
    #[serde(default, deserialize_with = "text_or_none")]
    pub source: Option<String>,
    /// Where it goes to.
    #[serde(default, deserialize_with = "text_or_none")]
    pub dest: Option<String>,
    /// The port it goes to.
    #[serde(default, deserialize_with = "text_or_none")]
    pub dport: Option<String>,
    /// What people wrote about it.
    #[serde(default, deserialize_with = "text_or_none")]
    pub comment: Option<String>,
    /// The checksum of all rules.
    #[serde(default, deserialize_with = "text_or_none")]
    pub digest: Option<String>,
}

/// A rule to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRule {
    /// `in`, `out`, `forward` or `group`.
    pub kind: String,
    /// `ACCEPT`, `DROP`, `REJECT`, or the name of the security group.
    pub action: String,
    /// Whether it counts; a rule that is not told so does not.
    pub enable: Option<bool>,
    /// The card it is for: `net0`.
    pub iface: Option<String>,
    /// The protocol, without which there are no ports.
    pub proto: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// Where it goes to.
    pub dest: Option<String>,
    /// The port it goes to.
    pub dport: Option<String>,
    /// What people should know about it.
    pub comment: Option<String>,
}

/// A set of rules for the whole cluster that VMs refer to by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecurityGroup {
    /// Its name.
    pub group: String,
    /// What people wrote about it.
    pub comment: Option<String>,
}

impl Client {
    /// What was set for a VM's firewall, with the `digest` of it all. Nothing was set if that is all there is.
    pub async fn firewall_options(&self, host: &HostName, vmid: VmId) -> Result<BTreeMap<String, String>> {
        let options: BTreeMap<String, Value> =
            self.read(VmFirewall { host, vmid }.call(Method::GET, "options", &[])).await?;
        Ok(options.into_iter().map(|(name, value)| (name, plain(&value))).collect())
    }

    /// Sets `enable`, `policy_in` and the like, or deletes them.
    pub async fn set_firewall_options(&self, host: &HostName, vmid: VmId, params: &[(&str, String)]) -> Result<()> {
        self.call(&VmFirewall { host, vmid }.call(Method::PUT, "options", params)).await.map(drop)
    }

    /// Every rule, in the order they count.
    pub async fn firewall_rules(&self, host: &HostName, vmid: VmId) -> Result<Vec<FirewallRule>> {
        let mut rules: Vec<FirewallRule> = self.read(VmFirewall { host, vmid }.call(Method::GET, "rules", &[])).await?;
        rules.sort_by_key(|rule| rule.pos);
        Ok(rules)
    }

    /// One rule.
    pub async fn firewall_rule(&self, host: &HostName, vmid: VmId, pos: u64) -> Result<FirewallRule> {
        self.read(VmFirewall { host, vmid }.call(Method::GET, &format!("rules/{pos}"), &[])).await
    }

    /// Puts a rule before all others.
    pub async fn add_firewall_rule(&self, host: &HostName, vmid: VmId, rule: &NewRule) -> Result<()> {
        let form = Form::default()
            .with("type", &rule.kind)
            .with("action", &rule.action)
            .with_flag("enable", rule.enable)
            .with_some("iface", rule.iface.as_ref())
            .with_some("proto", rule.proto.as_ref())
            .with_some("source", rule.source.as_ref())
            .with_some("dest", rule.dest.as_ref())
            .with_some("dport", rule.dport.as_ref())
            .with_some("comment", rule.comment.as_ref());
        self.call(&VmFirewall { host, vmid }.call(Method::POST, "rules", form.params())).await.map(drop)
    }

    /// Changes a rule, or moves it with `moveto`: it then stands before the one that is there now. With `digest` only if
    /// nobody changed any of them.
    pub async fn change_firewall_rule(
        &self,
        host: &HostName,
        vmid: VmId,
        pos: u64,
        params: &[(&str, String)],
    ) -> Result<()> {
        self.call(&VmFirewall { host, vmid }.call(Method::PUT, &format!("rules/{pos}"), params)).await.map(drop)
    }

    /// Takes a rule away, if the rules are still the ones with this digest: the next one moves to its place.
    pub async fn remove_firewall_rule(&self, host: &HostName, vmid: VmId, pos: u64, digest: &str) -> Result<()> {
        let form = Form::default().with("digest", digest);
        let call = VmFirewall { host, vmid }.call(Method::DELETE, &format!("rules/{pos}"), form.params());
        self.call(&call).await.map(drop)
    }

    /// Security groups of the cluster, by name. A rule may name one that is not there; it then does nothing.
    pub async fn security_groups(&self) -> Result<Vec<SecurityGroup>> {
        let (action, path) = ("list the security groups".to_owned(), "/cluster/firewall/groups".to_owned());
        let mut groups: Vec<SecurityGroup> = self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        groups.sort_by(|a, b| a.group.cmp(&b.group));
        Ok(groups)
    }
}

/// The firewall of one VM.
struct VmFirewall<'v> {
    host: &'v HostName,
    vmid: VmId,
}

impl VmFirewall<'_> {
    /// A call about its options or its rules.
    fn call<'a>(&self, method: Method, what: &str, params: Params<'a>) -> Call<'a> {
        let VmFirewall { host, vmid } = *self;
        let verb = if method == Method::GET { "read" } else { "change" };
        let action = format!("{verb} the firewall {what} of VM {vmid} on host {host}");
        Call { action, method, path: format!("{}/firewall/{what}", vm_path(host, vmid)), params }
    }
}
