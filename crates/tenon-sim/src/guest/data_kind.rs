//! Which kind of data is a file of the seed, and can the simulator act on it?
//!
//! cloud-init goes by the first characters. The simulator runs no programs, so it says what it passes over.

use super::talos;

/// What can be done with user-data or vendor-data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DataKind {
    CloudConfig,
    /// A machine configuration of Talos.
    Talos,
    /// Nothing is in it, which is nothing to complain about.
    Empty,
    /// It is passed over: what to say of it.
    PassedOver(&'static str),
}

/// What cloud-init acts on and the simulator does not; longer beginnings first.
const PASSED_OVER: [(&str, &str); 11] = [
    ("## template: jinja", "is a Jinja template, which the simulator does not read"),
    ("#cloud-config-archive", "is an archive of several parts, which the simulator does not read"),
    ("#cloud-config-jsonp", "is a JSON patch, which the simulator does not read"),
    ("#cloud-boothook", "is a script, and the simulator runs no scripts"),
    ("#part-handler", "is a part handler, and the simulator runs no scripts"),
    ("#include", "is a list of addresses, which the simulator does not fetch"),
    ("#!", "is a script, and the simulator runs no scripts"),
    ("content-type:", "is a MIME message, which the simulator does not read"),
    ("mime-version:", "is a MIME message, which the simulator does not read"),
    ("#ignition", "is for Ignition, which the simulator does not run"),
    ("{\"ignition\"", "is for Ignition, which the simulator does not run"),
];

const GZIP: [u8; 2] = [0x1f, 0x8b];

impl DataKind {
    pub(crate) fn of(data: &[u8]) -> Self {
        if data.starts_with(&GZIP) {
            return Self::PassedOver("is compressed, and the simulator does not unpack it");
        }
        let text = String::from_utf8_lossy(data);
        let beginning = text.trim_start();
        let begins = |with: &str| beginning.get(..with.len()).is_some_and(|b| b.eq_ignore_ascii_case(with));
        if beginning.is_empty() {
            return Self::Empty;
        }
        if let Some((_, what)) = PASSED_OVER.iter().find(|(with, _)| begins(with)) {
            return Self::PassedOver(what);
        }
        if begins("#cloud-config") {
            return Self::CloudConfig;
        }
        if talos::is_machine_config(&text) {
            return Self::Talos;
        }
        Self::PassedOver("does not begin with #cloud-config, so cloud-init ignores it")
    }
}

/// What to say of data that sets up a k3s agent. The server is named, the token never.
pub(crate) fn told_of_k3s(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    if !["K3S_URL", "get.k3s.io", "/etc/rancher/k3s"].iter().any(|sign| text.contains(sign)) {
        return None;
    }
    let after = text.split_once("K3S_URL").map(|(_, after)| after.trim_start_matches(['=', ':', ' ', '"', '\'']));
    let after = after.or_else(|| text.split_once("server: ").map(|(_, after)| after.trim_start_matches(['"', '\''])));
    let server = after.and_then(|after| after.split(['"', '\'', ' ', '\n']).next());
    let server = server.filter(|server| server.starts_with("https://")).unwrap_or("a server");
    Some(format!("the data sets up a k3s agent for {server}; the simulator cannot run k3s, so the VM does not join"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_told_by_its_first_characters_as_cloud_init_does_it() {
        assert_eq!(DataKind::of(b"#cloud-config\n{}\n"), DataKind::CloudConfig);
        assert_eq!(DataKind::of(b"\n  #Cloud-Config\n{}\n"), DataKind::CloudConfig);
        assert_eq!(DataKind::of(b" \n"), DataKind::Empty);
        assert_eq!(DataKind::of(b"version: v1alpha1\nmachine:\n  type: worker\n"), DataKind::Talos);
        for (data, word) in [
            (&b"## template: jinja\n#cloud-config\n"[..], "Jinja template"),
            (b"#!/bin/sh\ntrue\n", "runs no scripts"),
            (b"#cloud-boothook\ntrue\n", "runs no scripts"),
            (b"#cloud-config-archive\n[]\n", "archive"),
            (b"Content-Type: multipart/mixed\n", "MIME"),
            (b"#include\nhttps://a\n", "does not fetch"),
            (b"\x1f\x8b\x08", "compressed"),
            (b"hostname: a\n", "does not begin with #cloud-config"),
        ] {
            let kind = DataKind::of(data);
            assert!(matches!(kind, DataKind::PassedOver(what) if what.contains(word)), "{kind:?}");
        }
    }

    #[test]
    fn a_k3s_agent_is_named_with_its_server_and_without_its_token() {
        for text in [
            "#cloud-config\nruncmd:\n- curl -sfL https://get.k3s.io | K3S_URL=https://k:6443 K3S_TOKEN=hush sh -\n",
            "#!/bin/sh\nexport K3S_TOKEN='hush' K3S_URL=\"https://k:6443\"\n",
            "write_files:\n- path: /etc/rancher/k3s/config.yaml\n  content: |\n    server: https://k:6443\n    token: hush\n",
        ] {
            let told = told_of_k3s(text.as_bytes()).unwrap();
            assert!(told.contains("k3s agent for https://k:6443;") && !told.contains("hush"), "{told}");
        }
        assert_eq!(told_of_k3s(b"#cloud-config\nhostname: k3s-1\n"), None);
    }
}
