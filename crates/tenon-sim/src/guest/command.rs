//! What do the flags of a kubelet command say?

use std::collections::BTreeMap;

use super::disk::Disk;
use super::trouble::Trouble;
use super::unit;

/// The flags that matter for joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// Where the kubeconfig for the first request lies.
    pub(crate) bootstrap_kubeconfig: Option<String>,
    /// Where the kubelet keeps its own.
    pub(crate) kubeconfig: String,
    /// Where its configuration lies.
    pub(crate) config: String,
    pub(crate) hostname_override: Option<String>,
    pub(crate) node_labels: BTreeMap<String, String>,
}

impl Command {
    /// The command that systemd would run on this disk.
    pub(crate) fn find(disk: &Disk) -> Result<Self, Trouble> {
        Self::parse(&unit::kubelet_words(disk)?)
    }

    fn parse(words: &[String]) -> Result<Self, Trouble> {
        let mut flags = flags(words);
        let mut path = |name: &'static str| flags.remove(name).filter(|path| !path.is_empty());
        let bootstrap_kubeconfig = path("bootstrap-kubeconfig");
        // Without one a kubelet runs on its own and talks to nobody.
        let kubeconfig = path("kubeconfig").ok_or(Trouble::NoFlag("--kubeconfig"))?;
        let config = path("config").ok_or(Trouble::NoFlag("--config"))?;
        let hostname_override = path("hostname-override").map(|name| name.trim().to_lowercase());
        let node_labels = labels(&path("node-labels").unwrap_or_default());
        Ok(Self { bootstrap_kubeconfig, kubeconfig, config, hostname_override, node_labels })
    }
}

/// `--name=value` or `--name value`. The last of a name wins.
fn flags(words: &[String]) -> BTreeMap<String, String> {
    let mut flags = BTreeMap::new();
    let mut rest = words.iter().skip(1).peekable();
    while let Some(word) = rest.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (flag, rest.next_if(|next| !next.starts_with('-')).cloned().unwrap_or_default()),
        };
        flags.insert(name.to_owned(), value);
    }
    flags
}

fn labels(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (k.into(), v.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(command: &str) -> Result<Command, Trouble> {
        Command::parse(&command.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_read_in_both_spellings() {
        let text = "/usr/bin/kubelet --bootstrap-kubeconfig=/b --kubeconfig /k --config=/c --v 2 \
                    --hostname-override=Node-A --node-labels=a=b,c/d=,e=f=g";
        let expected = Command {
            bootstrap_kubeconfig: Some("/b".into()),
            kubeconfig: "/k".into(),
            config: "/c".into(),
            hostname_override: Some("node-a".into()),
            node_labels: [("a", "b"), ("c/d", ""), ("e", "f=g")].map(|(k, v)| (k.into(), v.into())).into(),
        };
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_command_that_joins_nothing_is_named() {
        assert!(matches!(parse("/usr/bin/kubelet"), Err(Trouble::NoFlag("--kubeconfig"))));
        assert!(matches!(parse("/usr/bin/kubelet --kubeconfig=/k"), Err(Trouble::NoFlag("--config"))));
    }
}
