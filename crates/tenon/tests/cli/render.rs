//! `tenon render` as a person meets it.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{stderr, stdout};

/// A class with its NodePool, its values and its templates, in this order.
const ALL: &str = include_str!("render/all.yaml");
const GOLDEN: &str = include_str!("render/all.txt");
/// What must not be printed by accident.
const SECRETS: [&str; 4] = ["K10abcdef", "MIIEvQIBADANBgkq", "LS0tLS1CRUdJTiBQUklWQVRF", "0123456789abcdef"];

/// A folder with files.
struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> io::Result<Folder> {
        let folder = Folder(tempfile::tempdir()?);
        for (name, content) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().expect("it lies in the folder"))?;
            fs::write(path, content)?;
        }
        Ok(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `tenon render` in the folder.
    fn render(&self, args: &[&str]) -> io::Result<Output> {
        command(self.0.path(), args).output()
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.current_dir(folder).arg("render").args(args);
    command
}

fn documents() -> Vec<&'static str> {
    ALL.split("\n---\n").collect()
}

#[test]
fn one_file_with_class_pool_and_secrets_is_enough() -> io::Result<()> {
    let folder = Folder::with(&[("all.yaml", ALL)])?;
    let output = folder.render(&["--nodeclass", "all.yaml"])?;
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(stdout(&output), GOLDEN);
    Ok(())
}

#[test]
fn each_object_may_stand_in_a_file_of_its_own_and_on_standard_input() -> io::Result<()> {
    let documents = documents();
    let names = ["class.yaml", "pool.yaml", "values.yaml", "templates.yaml"];
    let folder = Folder::with(&names.into_iter().zip(documents.iter().copied()).collect::<Vec<_>>())?;
    let mut args = vec!["--nodeclass", "class.yaml", "--nodepool", "pool.yaml", "--values", "values.yaml"];
    args.extend(["--templates", "templates.yaml"]);
    let output = folder.render(&args)?;
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), (GOLDEN, ""));
    let mut child = command(folder.0.path(), &["--nodeclass", "-", "--values", "-", "--templates", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().expect("it was piped").write_all(ALL.as_bytes())?;
    assert_eq!(stdout(&child.wait_with_output()?), GOLDEN);
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", documents.map_items());
    fs::write(folder.path("list.yaml"), list)?;
    assert_eq!(stdout(&folder.render(&["--nodeclass", "list.yaml"])?), GOLDEN);
    Ok(())
}

trait MapItems {
    /// Documents as the members of a list.
    fn map_items(&self) -> String;
}

impl MapItems for Vec<&str> {
    fn map_items(&self) -> String {
        let item = |document: &&str| format!("- {}\n", document.trim_end().replace('\n', "\n  "));
        self.iter().map(item).collect()
    }
}

#[test]
fn secrets_are_masked_unless_they_are_asked_for() -> io::Result<()> {
    let folder = Folder::with(&[("all.yaml", ALL)])?;
    let masked = folder.render(&["--nodeclass", "all.yaml"])?;
    let open = folder.render(&["--nodeclass", "all.yaml", "--show-secrets"])?;
    for secret in SECRETS {
        assert!(!stdout(&masked).contains(secret), "{secret}");
    }
    for secret in ["K10abcdef::server", "LS0tLS1CRUdJTiBQUklWQVRF", "sample.0123456789abcdef"] {
        assert!(stdout(&open).contains(secret), "{secret} is not in {}", stdout(&open));
    }
    Ok(())
}

#[test]
fn one_file_is_printed_as_it_is() -> io::Result<()> {
    let folder = Folder::with(&[("all.yaml", ALL)])?;
    let output = folder.render(&["--nodeclass", "all.yaml", "--file", "user-data"])?;
    assert!(stdout(&output).starts_with("#cloud-config\n") && !stdout(&output).contains("==>"), "{}", stdout(&output));
    let output = folder.render(&["--nodeclass", "all.yaml", "--file", "vendor-data"])?;
    assert_eq!(stderr(&output), "error: the first-boot data of this node has no file vendor-data\n");
    assert_eq!(output.status.code(), Some(1));
    Ok(())
}

/// A template, and what is said of it behind the name of the key.
const BAD: [(&str, &str); 8] = [
    (
        "#cloud-config\nruncmd:\n- echo {{ nope .Values.joinToken }}\n",
        ", line 3, column 11: function \"nope\" not defined\n3 | - echo {{ nope .Values.joinToken }}\n  |           ^\n\
         In Go's form: template: cloudinit:3:10: function \"nope\" not defined\n",
    ),
    (
        "a: {{ .Values.missing }}\n",
        ", line 1, column 7: there is no value in {{ .Values.missing }}\n1 | a: {{ .Values.missing }}\n  |       ^\n\
         In Go's form: template: cloudinit:1:6: executing \"cloudinit\" at <.Values.missing>: there is no value\n",
    ),
    (
        "\n{{ index .Metadata.Tags 7 }}",
        ", line 2, column 4: error calling index: index out of range: 7 in {{ index .Metadata.Tags 7 }}\n\
         2 | {{ index .Metadata.Tags 7 }}\n  |    ^\n",
    ),
    (
        "{{ .Metadata.Nope }}",
        ", line 1, column 13: can't evaluate field Nope in type cloudinit.MetaData in {{ .Metadata.Nope }}\n\
         1 | {{ .Metadata.Nope }}\n  |             ^\n",
    ),
    (
        "#cloud-config\n{{ range 100000000 }}0123456789{{ end }}\n",
        ", line 2, column 22: the output is larger than 1048576 bytes\n\
         2 | {{ range 100000000 }}0123456789{{ end }}\n  |                      ^\n",
    ),
    (
        "#cloud-config\na: {{ .Values.joinToken }}: x\nb: c\n",
        " renders to text that is not valid YAML: line 2, column 32 of the rendered text: mapping values are not allowed in \
         this context\nThe rendered user-data:\n1 | #cloud-config\n2 | a: <masked joinToken>: x\n  |                      ^\n3 \
         | b: c\n",
    ),
    ("a\n{{ if .Values.joinToken }}\n", ", line 3, column 1: unexpected EOF\n3 | \n  | ^\n"),
    ("{{ cidrhost .Values.joinToken 1 }}", ", line 1, column 4: error calling cidrhost: "),
];

#[test]
fn a_bad_template_is_shown_with_its_place() -> io::Result<()> {
    for (template, words) in BAD {
        let folder = Folder::with(&[("all.yaml", ALL), ("t/user-data", template)])?;
        let output = folder.render(&["--nodeclass", "all.yaml", "--templates", "t"])?;
        let said = stderr(&output);
        let begin = format!("error: cannot render first-boot data: directory t, key user-data{words}");
        assert!(said.starts_with(&begin), "{said}\n{begin}");
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{said}");
        assert!(SECRETS.iter().all(|secret| !said.contains(secret)), "{said}");
    }
    let folder = Folder::with(&[("all.yaml", &ALL.replace("b64enc", "base64"))])?;
    let said = stderr(&folder.render(&["--nodeclass", "all.yaml"])?);
    let origin = "error: cannot render first-boot data: Secret kube-system/worker-templates (all.yaml:36), key user-data, line 9, ";
    assert!(said.starts_with(origin), "{said}");
    Ok(())
}

#[test]
fn the_image_is_equal_in_every_run_and_private() -> io::Result<()> {
    let folder = Folder::with(&[("all.yaml", ALL), ("b.iso", "another file that all may read")])?;
    fs::set_permissions(folder.path("b.iso"), fs::Permissions::from_mode(0o644))?;
    let mut images = Vec::new();
    for name in ["a.iso", "b.iso"] {
        let output = folder.render(&["--nodeclass", "all.yaml", "--iso", name])?;
        assert_eq!(stdout(&output), GOLDEN);
        let told = format!("note: wrote {name} with unmasked secrets; only its owner may read the file\n");
        assert_eq!(stderr(&output), told);
        assert_eq!(fs::metadata(folder.path(name))?.permissions().mode() & 0o777, 0o600);
        images.push(fs::read(folder.path(name))?);
    }
    assert!(images[0] == images[1] && images[0].windows(6).any(|window| window == b"\x01CD001"));
    assert!(images[0].windows(17).any(|window| window == b"K10abcdef::server"), "the image is not masked");
    Ok(())
}

#[test]
fn cards_and_addresses_come_from_what_qm_config_prints() -> io::Result<()> {
    let config = "boot: order=scsi0\nnameserver: 10.0.0.53 10.0.0.54\nnet0: virtio=BC:24:11:00:00:AA,bridge=vmbr0,mtu=9000\n\
                  ipconfig0: ip=10.0.0.9/24,gw=10.0.0.1\nnet1: e1000=BC:24:11:00:00:BB,bridge=vmbr1\nipconfig1: ip6=dhcp\n\n\
                  [snapshot]\nnet2: virtio=BC:24:11:00:00:CC\n";
    let folder = Folder::with(&[("all.yaml", ALL), ("qm.txt", config), ("bad.txt", "net0: x\nwhat is this\n")])?;
    let args = ["--nodeclass", "all.yaml", "--file", "network-config", "--vm-config"];
    let text = stdout(&folder.render(&[&args[..], &["qm.txt"]].concat())?);
    for part in ["bc:24:11:00:00:aa", "bc:24:11:00:00:bb", "10.0.0.9/24", "mtu: 9000", "dhcp6: true", "10.0.0.54"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("bc:24:11:00:00:cc"), "{text}");
    let said = stderr(&folder.render(&[&args[..], &["bad.txt"]].concat())?);
    assert!(said.starts_with("error: cannot use VM configuration bad.txt: line 2 is not `key: value`"), "{said}");
    Ok(())
}

#[test]
fn labels_that_a_kubelet_may_not_set_are_told() -> io::Result<()> {
    let pool = documents()[1].replace("{team: web}", "{team: web, node-restriction.kubernetes.io/x: y}");
    let class = "apiVersion: karpenter.proxmox.sinextra.dev/v1alpha1\nkind: ProxmoxNodeClass\nmetadata: {name: workers}\nspec:\n  \
                 instanceTemplateRef: {kind: ProxmoxUnmanagedTemplate, name: ubuntu}\n  metadataOptions: {type: cdrom}\n";
    let folder = Folder::with(&[("all.yaml", &format!("{class}\n---\n{pool}"))])?;
    let output = folder.render(&["--nodeclass", "all.yaml", "--name", "web-7", "--instance-type", "m1.2VCPU-16GB"])?;
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(
        said.contains("warning: left out label node-restriction.kubernetes.io/x=y: a kubelet may not set it"),
        "{said}"
    );
    for part in ["team=web", "karpenter.sh/nodepool=default", "hostname: web-7", "instance-type: m1.2VCPU-16GB"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(text.contains("registerWithTaints") && text.contains("key: dedicated"), "{text}");
    Ok(())
}

#[test]
fn what_cannot_be_rendered_says_what_to_do() -> io::Result<()> {
    let (class, pool) = (documents()[0], documents()[1]);
    let files = [
        (
            "none.yaml",
            class.replace("type: cdrom", "type: none") + "\n---\n" + documents()[2] + "\n---\n" + documents()[3],
        ),
        ("class.yaml", class.to_owned()),
        ("pool.yaml", pool.to_owned()),
        ("other.yaml", pool.replace("name: workers", "name: others")),
        ("pools.yaml", format!("{class}\n---\n{pool}\n---\n{}", pool.replace("{name: default}", "{name: second}"))),
        ("classes.yaml", format!("{class}\n---\n{}", class.replace("name: workers", "name: others"))),
        ("broken.yaml", class.replace("kubeletConfiguration: {maxPods: 60}", "kubeletConfiguration: {maxPods: many}")),
        ("secret.yaml", documents()[3].replace("stringData:\n", "data: {a: '!'}\nstringData:\n")),
    ];
    let folder = Folder::with(&files.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>())?;
    for (args, words) in [
        (&["none.yaml"][..], "nothing to render: ProxmoxNodeClass workers has spec.metadataOptions.type none"),
        (
            &["class.yaml"],
            "Secret kube-system/worker-templates, which spec.metadataOptions.templatesRef names, is in none of",
        ),
        (&["pool.yaml"], "the file given with --nodeclass has no ProxmoxNodeClass"),
        (
            &["class.yaml", "--nodepool", "other.yaml"],
            "NodePool default references ProxmoxNodeClass others, but the file",
        ),
        (&["class.yaml", "--nodepool", "class.yaml"], "the file given with --nodepool has no NodePool"),
        (&["pools.yaml"], "several NodePools (default, second) reference a ProxmoxNodeClass"),
        (
            &["classes.yaml"],
            "the file given with --nodeclass has several ProxmoxNodeClasses (workers, others); give --nodepool",
        ),
        (&["class.yaml", "--instance-type", "x"], "instance type x is not defined; known: c1.1VCPU-2GB, "),
        (&["broken.yaml"], "broken.yaml:7: ProxmoxNodeClass: "),
        (&["class.yaml", "--templates", "secret.yaml"], "secret.yaml:4: Secret: "),
        (
            &["gone.yaml"],
            "cannot read file gone.yaml: No such file or directory (os error 2); check the path given with",
        ),
    ] {
        let output = folder.render(&[&["--nodeclass"], args].concat())?;
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{args:?}: {said}");
        assert!(said.starts_with(&format!("error: {words}")) && said.lines().count() == 1, "{args:?}: {said}");
    }
    for args in [&["claim"][..], &["--kubeconfig", "k"], &[], &["--nodeclass", "x", "--file", "other"]] {
        assert_eq!(folder.render(args)?.status.code(), Some(2), "{args:?}");
    }
    Ok(())
}

#[test]
fn a_cluster_that_does_not_answer_is_told_with_the_next_step() -> io::Result<()> {
    let folder = Folder::with(&[("kube.yaml", crate::KUBECONFIG)])?;
    let output = folder.render(&["web-x7", "--kubeconfig", "kube.yaml"])?;
    let said = stderr(&output);
    assert!(said.starts_with("error: cannot read NodeClaim web-x7: ") && output.status.code() == Some(1), "{said}");
    assert!(
        said.ends_with("; check that the API server named in the file given with --kubeconfig is running\n"),
        "{said}"
    );
    Ok(())
}

/// Answers as cloud-init does, and refuses what has the word `wrong` in it, quoting all of it.
const CLOUD_INIT: &str = "#!/bin/sh\ncase \"$*\" in\n--version) echo /usr/bin/cloud-init 25.1;;\n*--help) echo NETWORKS;;\n\
    *) for file; do :; done; if grep -q wrong \"$file\"; then cat \"$file\"; exit 1; fi;;\nesac\n";

#[test]
fn cloud_init_is_asked_where_it_is_installed() -> io::Result<()> {
    let wrong = ALL.replace("hostname: {{", "wrong: {{");
    let old = CLOUD_INIT.replace("NETWORKS", "-c CONFIG_FILE");
    let new = CLOUD_INIT.replace("NETWORKS", "--schema-type {cloud-config,network-config}");
    let files = [("all.yaml", ALL), ("wrong.yaml", &wrong), ("old/cloud-init", &old), ("new/cloud-init", &new)];
    let folder = Folder::with(&files)?;
    for name in ["old/cloud-init", "new/cloud-init"] {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o755))?;
    }
    let check = |file: &str, programs: &str| {
        let path = format!("{}:/usr/bin:/bin", folder.path(programs).display());
        let path = if programs.is_empty() { folder.path("none").display().to_string() } else { path };
        command(folder.0.path(), &["--nodeclass", file, "--check"]).env("PATH", path).output()
    };
    let none = check("all.yaml", "")?;
    assert!(
        stderr(&none).starts_with("error: --check needs the program cloud-init, which is not installed"),
        "{none:?}"
    );
    assert_eq!(none.status.code(), Some(1));
    let good = check("all.yaml", "new")?;
    let told = "user-data: valid (cloud-init 25.1)\nmeta-data: not checked: cloud-init has no schema for it\n\
                network-config: valid (cloud-init 25.1)\n";
    assert_eq!((good.status.code(), stderr(&good).as_str()), (Some(0), told));
    let old = check("all.yaml", "old")?;
    assert!(stderr(&old).ends_with("network-config: not checked: this release has no schema for it\n"), "{old:?}");
    let bad = check("wrong.yaml", "new")?;
    let said = stderr(&bad);
    assert!(said.starts_with("user-data: not valid (cloud-init 25.1):\n#cloud-config\nwrong: "), "{said}");
    assert!(said.ends_with("error: cloud-init does not accept user-data\n") && bad.status.code() == Some(1), "{said}");
    assert!(said.contains("<masked joinToken>") && SECRETS.iter().all(|secret| !said.contains(secret)), "{said}");
    Ok(())
}
