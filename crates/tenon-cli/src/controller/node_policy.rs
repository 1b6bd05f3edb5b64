//! Whether VMs are bound to CPUs of their hosts, and what an operator says of hosts, as flags and variables of the reference.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use tenon_api::node_settings_file::{self, NodeSettingsFile};
use tenon_model::{NodePolicy, NodeSettings};
use tenon_pve::Client;

/// How VMs use the CPUs of hosts.
#[derive(Debug, Args)]
pub(super) struct NodePolicyArgs {
    /// How VMs use the CPUs of hosts: with `simple`, CPUs and memory are counted; with `static`, each VM has CPUs of its own and
    /// memory of their NUMA nodes. Any other value means `simple`.
    #[arg(long, value_name = "POLICY", env = "NODE_POLICY", default_value = "simple")]
    node_policy: String,
    /// JSON file with the CPU topology of hosts, and with CPUs and memory that no VM gets; unset: the topology is read from
    /// the host's VM `node-capacity`, or predicted from its CPU model.
    #[arg(long, value_name = "FILE", env = "NODE_SETTING_FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    node_setting_file: Option<PathBuf>,
}

impl NodePolicyArgs {
    /// The policy. What nobody knows is `simple`, as in the reference.
    pub(super) fn policy(&self) -> NodePolicy {
        if self.node_policy == "static" { NodePolicy::Static } else { NodePolicy::Simple }
    }

    /// What the file says, if there is one.
    pub(super) fn settings(&self) -> anyhow::Result<NodeSettings> {
        let read = self.read()?;
        for note in &read.notes {
            tracing::warn!("node settings file: {note}");
        }
        Ok(read.settings)
    }

    fn read(&self) -> anyhow::Result<NodeSettingsFile> {
        let Some(path) = self.node_setting_file.as_ref().filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(NodeSettingsFile::default());
        };
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            anyhow!("cannot read node settings file {shown}: {error}; check the path given with --node-setting-file")
        })?;
        node_settings_file::read(&text).with_context(|| format!("cannot use node settings file {shown}"))
    }

    /// Logs what an operator may not expect of the policy.
    pub(super) fn introduce(&self, regions: &BTreeMap<String, Client>) {
        if !["", "simple", "static"].contains(&self.node_policy.as_str()) {
            let policy = self.node_policy.as_str();
            tracing::warn!(policy, "unknown node policy, using simple; set --node-policy to simple or static");
        }
        if self.policy() == NodePolicy::Simple {
            return;
        }
        for region in regions.iter().filter(|(_, client)| !client.is_root()).map(|(region, _)| region) {
            tracing::warn!(
                region,
                "node policy static: Proxmox lets only root@pam with a password set option affinity, so VMs get NUMA options, \
                 and their CPUs are only in their description; run a daemon on each host that binds VMs by it, or log in as \
                 root@pam"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        nodes: NodePolicyArgs,
    }

    fn read(args: &[&str]) -> NodePolicyArgs {
        // The variables of whoever runs the test are not the test's.
        let command = Line::command().mut_args(|arg| arg.env(None));
        let line = ["tenon"].into_iter().chain(args.iter().copied());
        Line::from_arg_matches(&command.try_get_matches_from(line).unwrap()).unwrap().nodes
    }

    #[test]
    fn a_policy_that_nobody_knows_is_the_simple_one() {
        assert_eq!(read(&[]).policy(), NodePolicy::Simple);
        assert_eq!(read(&["--node-policy=static"]).policy(), NodePolicy::Static);
        for other in ["", "Static", "numa"] {
            assert_eq!(read(&["--node-policy", other]).policy(), NodePolicy::Simple, "{other}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.json");
        let of = |text: &str| {
            fs::write(&path, text).unwrap();
            let args = read(&["--node-setting-file", path.to_str().unwrap()]);
            args.settings().map_err(|error| format!("{error:#}"))
        };
        let said = of("{\"lab\": {\n \"pve1\": {\"sockets\": \"two\"}}}").unwrap_err();
        let told = format!(
            "cannot use node settings file {}: line 2: region lab, host pve1: sockets: \"two\" is not a number of sockets",
            path.display()
        );
        assert_eq!(said, told);
        assert_eq!(of(r#"{"lab": {"*": {"sockets": 2}}}"#).unwrap().regions["lab"]["*"].sockets, Some(2));
        let said = format!("{:#}", read(&["--node-setting-file", "/does/not/exist"]).settings().unwrap_err());
        assert!(said.contains("check the path given with --node-setting-file"), "{said}");
        assert_eq!(read(&["--node-setting-file="]).settings().unwrap(), NodeSettings::default());
    }

    #[test]
    fn both_have_the_variables_of_the_reference() {
        let command = Line::command();
        let variable = |flag: &str| command.get_arguments().find(|arg| arg.get_long() == Some(flag))?.get_env();
        assert_eq!(variable("node-policy"), Some("NODE_POLICY".as_ref()));
        assert_eq!(variable("node-setting-file"), Some("NODE_SETTING_FILE".as_ref()));
    }
}
