//! What does an image bring along that joins a cluster without a seed?
//!
//! Also the writing and reading of kubeconfigs, which images, seeds and kubelets all leave on a disk.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::access::{ApiAccess, Credential};
use super::disk::{Disk, File};
use super::trouble::Trouble;
use super::unit;

/// Join data inside a template, for VMs that get no seed. The Node is called like the VM.
#[derive(Clone)]
pub struct ImageJoin {
    /// Where the API server is.
    pub server: String,
    /// The cluster's root certificates, in PEM.
    pub ca_pem: String,
    /// A bootstrap token, `id.secret`.
    pub bootstrap_token: String,
    /// Labels for `--node-labels`: `a=b,c=d`; may be empty.
    pub node_labels: String,
    /// Fields of the kubelet's configuration beside its kind, in JSON; `null` for none.
    pub kubelet_config: Value,
}

impl fmt::Debug for ImageJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageJoin").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ImageJoin {
    const BOOTSTRAP: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
    const CONFIG: &str = "/var/lib/kubelet/config.yaml";

    /// Puts the files where the image's own kubelet unit looks for them.
    pub(crate) fn write_to(&self, disk: &mut Disk) {
        let user = json!({ "token": self.bootstrap_token });
        disk.write(Self::BOOTSTRAP, File::secret(kubeconfig(&self.server, &self.ca_pem, &user)));
        let mut config = json!({ "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration" });
        if let (Value::Object(config), Value::Object(given)) = (&mut config, &self.kubelet_config) {
            config.extend(given.clone());
        }
        disk.write(Self::CONFIG, File::public(config.to_string()));
        let mut flags = vec![
            format!("--bootstrap-kubeconfig={}", Self::BOOTSTRAP),
            "--kubeconfig=/etc/kubernetes/kubelet.conf".to_owned(),
            format!("--config={}", Self::CONFIG),
        ];
        if !self.node_labels.is_empty() {
            flags.push(format!("--node-labels={}", self.node_labels));
        }
        unit::install(disk, &flags);
    }
}

/// A kubeconfig. It is written as JSON, which is YAML.
pub(crate) fn kubeconfig(server: &str, ca_pem: &str, user: &Value) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "cluster",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(ca_pem) },
        }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "context", "context": { "cluster": "cluster", "user": "user" } }],
        "current-context": "context",
    });
    config.to_string()
}

/// What the kubeconfig at this path says. `named_by` is the flag that names it.
pub(crate) fn read_kubeconfig(disk: &Disk, path: &str, named_by: &'static str) -> Result<ApiAccess, Trouble> {
    disk.file(path).ok_or_else(|| Trouble::NoFile { path: path.to_owned(), named_by })?;
    let fail = |why: &str| Trouble::unreadable(path, why);
    let text = disk.text(path).ok_or_else(|| fail("it is not text"))?;
    let config: Value = serde_saphyr::from_str(text).map_err(|error| Trouble::unreadable(path, error.to_string()))?;
    let context = named(&config, "contexts", "context", config["current-context"].as_str());
    let context = context.ok_or_else(|| fail("it has no current context"))?;
    let cluster = named(&config, "clusters", "cluster", context["cluster"].as_str());
    let cluster = cluster.ok_or_else(|| fail("its context names no cluster"))?;
    let user = named(&config, "users", "user", context["user"].as_str());
    let user = user.ok_or_else(|| fail("its context names no user"))?;
    let server = cluster["server"].as_str().ok_or_else(|| fail("its cluster has no server"))?.to_owned();
    // The system's own authorities, which a kubelet falls back to, do not know the cluster.
    let ca_pem = inline_or_file(disk, cluster, "certificate-authority");
    let ca_pem = ca_pem.ok_or_else(|| fail("its cluster has no readable CA"))?;
    let credential = credential(disk, user).ok_or_else(|| fail("its user has no readable token or certificate"))?;
    Ok(ApiAccess { server, ca_pem, credential })
}

/// What is to be said of a file with a secret that others may read. A kubelet uses it all the same.
pub(crate) fn told_of_mode(disk: &Disk, path: &str) -> Option<String> {
    let mode = disk.file(path)?.mode;
    (mode & 0o077 != 0)
        .then(|| format!("{path} has mode {mode:04o} but contains a secret, which every user of the VM may read"))
}

fn credential(disk: &Disk, user: &Value) -> Option<Credential> {
    if let Some(token) = user["token"].as_str() {
        return Some(Credential::Token(token.to_owned()));
    }
    let certificate_pem = inline_or_file(disk, user, "client-certificate")?;
    let key_pem = inline_or_file(disk, user, "client-key")?;
    Some(Credential::Certificate { certificate_pem, key_pem })
}

fn named<'a>(config: &'a Value, list: &str, what: &str, name: Option<&str>) -> Option<&'a Value> {
    let found = config[list].as_array()?.iter().find(|entry| entry["name"].as_str() == name)?;
    Some(&found[what]).filter(|value| value.is_object())
}

/// `<key>-data` in base64, or the file that `<key>` names.
fn inline_or_file(disk: &Disk, holder: &Value, key: &str) -> Option<String> {
    if let Some(data) = holder[format!("{key}-data")].as_str() {
        return String::from_utf8(STANDARD.decode(data).ok()?).ok();
    }
    disk.text(holder[key].as_str()?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/etc/kubernetes/bootstrap-kubelet.conf";

    fn disk(file: Option<File>) -> Disk {
        let mut disk = Disk::from_image("image");
        if let Some(file) = file {
            disk.write(PATH, file);
        }
        disk
    }

    #[test]
    fn a_written_kubeconfig_reads_back() {
        let text = kubeconfig("https://a:1", "CA", &json!({ "token": "t" }));
        let access = read_kubeconfig(&disk(Some(File::secret(text))), PATH, "--bootstrap-kubeconfig").unwrap();
        let credential = Credential::Token("t".into());
        assert_eq!(access, ApiAccess { server: "https://a:1".into(), ca_pem: "CA".into(), credential });
    }

    #[test]
    fn a_kubeconfig_that_cannot_serve_says_why() {
        let good = kubeconfig("https://a:1", "CA", &json!({ "token": "t" }));
        for (file, word) in [
            (None, "does not exist"),
            (Some(File::secret("a: [")), "cannot read"),
            (Some(File::secret("kind: Config\n")), "no current context"),
            (Some(File::secret(good.replace("certificate-authority-data", "x"))), "no readable CA"),
            (Some(File::secret(good.replace("token", "x"))), "no readable token"),
        ] {
            let trouble = read_kubeconfig(&disk(file), PATH, "--bootstrap-kubeconfig").unwrap_err();
            assert!(trouble.story().contains(word), "{}", trouble.story());
        }
    }

    #[test]
    fn a_secret_that_others_may_read_is_told_and_used() {
        let text = kubeconfig("https://a:1", "CA", &json!({ "token": "t" }));
        let open = disk(Some(File::public(text.clone())));
        assert!(read_kubeconfig(&open, PATH, "--bootstrap-kubeconfig").is_ok());
        assert!(told_of_mode(&open, PATH).unwrap().contains("has mode 0644"));
        assert_eq!(told_of_mode(&disk(Some(File::secret(text))), PATH), None);
    }
}
