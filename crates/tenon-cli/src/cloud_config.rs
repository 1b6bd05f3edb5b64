//! The cloud-config file: which Proxmox clusters there are, and how to talk to each.
//!
//! The format is the reference's, with `urls`, `ca_file`, `fingerprint`, limits, and what VMs may have of hosts besides. What cannot work is an error that
//! names the cluster and the key; unknown keys are noted, not refused, because the reference ignores them.

mod capacity_rules;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tenon_controllers::RegionSetup;
use tenon_controllers::election::Fence;
use tenon_model::RegionCapacity;
use tenon_pve::{Client, Credentials, Endpoint, Fingerprint, Limits, Password, Token, Transport, Trust, Tuning};

/// The file, checked.
#[derive(Debug)]
pub struct CloudConfig {
    /// The clusters, by region.
    pub regions: Vec<Region>,
    /// Keys that are not used.
    pub notes: Vec<String>,
}

/// One Proxmox cluster. Two that are equal are reached alike, whatever files that was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its name, which becomes the region label.
    pub name: String,
    /// Where it answers.
    pub endpoints: Vec<Endpoint>,
    /// Whom to believe there.
    pub trust: Trust,
    /// Who we are there.
    pub credentials: Credentials,
    /// How many requests it gets at once.
    pub limits: Limits,
    /// How much of its hosts VMs may have.
    pub rules: RegionCapacity,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FileWire {
    clusters: Vec<ClusterWire>,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClusterWire {
    url: String,
    urls: Vec<String>,
    insecure: bool,
    ca_file: Option<PathBuf>,
    fingerprint: Option<String>,
    token_id: String,
    token_id_file: Option<PathBuf>,
    token_secret: String,
    token_secret_file: Option<PathBuf>,
    username: String,
    password: String,
    region: String,
    max_requests: Option<NonZero<usize>>,
    max_requests_per_host: Option<NonZero<usize>>,
    max_requests_per_storage: Option<NonZero<usize>>,
    max_requests_per_second: Option<NonZero<u32>>,
    #[serde(flatten)]
    capacity: capacity_rules::CapacityRulesWire,
    hosts: BTreeMap<String, capacity_rules::CapacityRulesWire>,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

/// Reads a file by its path; tests bring their own.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// Reads and checks the text of a cloud-config file.
pub fn parse(text: &str, read_file: ReadFile<'_>) -> Result<CloudConfig, CloudConfigError> {
    // Without the snippet, which would quote the lines around the fault, secrets and all.
    let fail = |error: serde_saphyr::Error| CloudConfigError::Yaml(error.without_snippet().to_string());
    let file: FileWire = serde_saphyr::from_str(text).map_err(fail)?;
    if file.clusters.is_empty() {
        return Err(CloudConfigError::NoClusters);
    }
    // `features` is the reference's, which reads it and does nothing with it.
    let mut notes: Vec<String> = file.others.keys().filter(|key| *key != "features").map(|key| unknown(key)).collect();
    let mut regions: Vec<Region> = Vec::new();
    for (index, cluster) in file.clusters.iter().enumerate() {
        let place = if cluster.region.is_empty() { format!("#{}", index + 1) } else { cluster.region.clone() };
        notes.extend(cluster.others.keys().map(|key| format!("cluster {place}: {}", unknown(key))));
        let fail = |fault: String| CloudConfigError::Cluster { place: place.clone(), fault };
        let region = cluster.region(read_file).map_err(fail)?;
        if regions.iter().any(|known| known.name == region.name) {
            return Err(fail("duplicate region; give each cluster its own region".to_owned()));
        }
        regions.push(region);
    }
    Ok(CloudConfig { regions, notes })
}

fn unknown(key: &str) -> String {
    format!("unknown key `{key}` has no effect; remove it or correct its spelling")
}

impl ClusterWire {
    fn region(&self, read_file: ReadFile<'_>) -> Result<Region, String> {
        if self.region.is_empty() {
            return Err("`region` is missing; add it".to_owned());
        }
        let urls = Some(&self.url).filter(|url| !url.is_empty()).into_iter().chain(&self.urls);
        let endpoint = |url: &String| {
            Endpoint::new(url).ok_or_else(|| {
                format!("invalid url `{url}`; give an address such as https://pve1.example:8006/api2/json")
            })
        };
        let endpoints = urls.map(endpoint).collect::<Result<Vec<_>, _>>()?;
        if endpoints.is_empty() {
            return Err("`url` is missing; add it".to_owned());
        }
        Ok(Region {
            name: self.region.clone(),
            endpoints,
            trust: self.trust(read_file)?,
            credentials: self.credentials(read_file)?,
            limits: self.limits(),
            rules: capacity_rules::region_rules(&self.capacity, &self.hosts)?,
        })
    }

    fn limits(&self) -> Limits {
        let standard = Limits::default();
        let given = |number: Option<NonZero<usize>>, usual| number.map_or(usual, NonZero::get);
        Limits {
            region: given(self.max_requests, standard.region),
            host: given(self.max_requests_per_host, standard.host),
            storage: given(self.max_requests_per_storage, standard.storage),
            per_second: self.max_requests_per_second,
            ..standard
        }
    }

    fn trust(&self, read_file: ReadFile<'_>) -> Result<Trust, String> {
        match (&self.ca_file, &self.fingerprint, self.insecure) {
            (None, None, false) => Ok(Trust::System),
            (None, None, true) => Ok(Trust::Anybody),
            (Some(path), None, false) => Ok(Trust::Authority(read(path, read_file)?)),
            (None, Some(text), false) => {
                text.parse::<Fingerprint>().map(Trust::Pinned).map_err(|error| error.to_string())
            }
            _ => Err("`insecure`, `ca_file` and `fingerprint` cannot be combined; keep one".to_owned()),
        }
    }

    fn credentials(&self, read_file: ReadFile<'_>) -> Result<Credentials, String> {
        let id = given_or_file(&self.token_id, self.token_id_file.as_deref(), read_file)?;
        let secret = given_or_file(&self.token_secret, self.token_secret_file.as_deref(), read_file)?;
        let has_password = !self.username.is_empty() || !self.password.is_empty();
        match (id.is_empty() && secret.is_empty(), has_password) {
            (true, true) => {
                let password = Password::new(&self.username, &self.password);
                password.map(Credentials::from).map_err(|error| format!("`username` and `password`: {error}"))
            }
            (true, false) => Err("`token_id` and `token_secret` are missing; add them".to_owned()),
            (false, true) => Err("a token and a password cannot be combined; keep the token".to_owned()),
            (false, false) => Token::new(&id, &secret).map(Credentials::from).map_err(|error| error.to_string()),
        }
    }
}

impl Region {
    /// A client of this cluster that changes nothing while the fence is closed.
    pub fn client(&self, fence: &Fence) -> Result<Client, tenon_pve::TlsError> {
        let transport = Transport::https(&self.trust)?.wrapped(fence);
        let tuning = Tuning { limits: self.limits, ..Tuning::default() };
        Ok(Client::tuned(self.endpoints.clone(), transport, self.credentials.clone(), tuning))
    }

    /// What the controllers need of it.
    pub fn setup(&self, fence: &Fence) -> Result<RegionSetup, tenon_pve::TlsError> {
        Ok(RegionSetup { client: self.client(fence)?, rules: self.rules.clone() })
    }
}

fn given_or_file(given: &str, file: Option<&Path>, read_file: ReadFile<'_>) -> Result<String, String> {
    match file {
        Some(path) if given.is_empty() => {
            let bytes = read(path, read_file)?;
            String::from_utf8(bytes)
                .map(|text| text.trim().to_owned())
                .map_err(|_| format!("cannot use file {}: not UTF-8 text", path.display()))
        }
        _ => Ok(given.trim().to_owned()),
    }
}

fn read(path: &Path, read_file: ReadFile<'_>) -> Result<Vec<u8>, String> {
    read_file(path).map_err(|error| format!("cannot read file {}: {error}", path.display()))
}

/// Why a cloud-config file cannot be used. Never shows a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudConfigError {
    /// It is not YAML of this form.
    #[error("not a valid cloud config: {0}")]
    Yaml(String),
    /// There is nothing in it.
    #[error("`clusters` is empty; add a Proxmox cluster")]
    NoClusters,
    /// One cluster cannot be used.
    #[error("cluster {place}: {fault}")]
    Cluster {
        /// Its region, or where it stands.
        place: String,
        /// What is wrong, and the next move.
        fault: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("/etc/secret") => Ok(b"s3cret\n".to_vec()),
            Some("/etc/id") => Ok(b"karp@pve!node\n".to_vec()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn cluster(lines: &str) -> String {
        let lines: String = lines.lines().map(|line| format!("  {}\n", line.trim())).collect();
        format!("clusters:\n- region: lab\n{lines}")
    }

    fn fault(text: &str) -> String {
        parse(text, &files).unwrap_err().to_string()
    }

    #[test]
    fn the_reference_file_is_read_as_it_is() {
        let text =
            cluster("url: https://pve1:8006/api2/json\ninsecure: true\ntoken_id: karp@pve!node\ntoken_secret: s3cret");
        let config = parse(&format!("features: {{provider: default}}\n{text}"), &files).unwrap();
        assert_eq!((config.regions.len(), config.notes.len()), (1, 0));
        assert!(matches!(config.regions[0].trust, Trust::Anybody));
        assert_eq!(config.regions[0].credentials, Token::new("karp@pve!node", "s3cret").unwrap().into());
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn a_token_may_lie_in_files_alone() {
        let text = cluster(
            "url: https://pve1:8006\ntoken_id_file: /etc/id\ntoken_secret_file: /etc/secret\nurls: [\"https://pve2:8006\"]",
        );
        let config = parse(&text, &files).unwrap();
        assert_eq!(config.regions[0].endpoints.len(), 2);
        assert_eq!(config.regions[0].credentials, Token::new("karp@pve!node", "s3cret").unwrap().into());
        config.regions[0].client(&Fence::open()).unwrap();
    }

    #[test]
    fn each_region_has_limits_of_its_own() {
        let token = "token_id: a@b!c\ntoken_secret: d";
        let limits = |more: &str| {
            let text = cluster(&format!("url: https://pve1:8006\n{token}{more}"));
            parse(&text, &files).map(|config| config.regions[0].limits)
        };
        assert_eq!(limits(""), Ok(Limits::default()));
        let given = limits("\nmax_requests: 6\nmax_requests_per_host: 3\nmax_requests_per_storage: 1");
        assert_eq!(given, Ok(Limits { region: 6, host: 3, storage: 1, ..Limits::default() }));
        let per_second = NonZero::new(20);
        assert_eq!(limits("\nmax_requests_per_second: 20"), Ok(Limits { per_second, ..Limits::default() }));
        assert!(limits("\nmax_requests_per_second: 0").is_err());
        assert!(limits("\nmax_requests: 0").is_err());
    }

    #[test]
    fn a_password_does_instead_of_a_token() {
        let config = parse(&cluster("url: https://pve1:8006\nusername: root@pam\npassword: s3cret"), &files).unwrap();
        assert_eq!(config.regions[0].credentials, Password::new("root@pam", "s3cret").unwrap().into());
        assert!(!format!("{config:?}").contains("s3cret"));
        config.regions[0].client(&Fence::open()).unwrap();
    }

    #[test]
    fn what_cannot_work_names_the_cluster_and_the_key() {
        let token = "token_id: karp@pve!node\ntoken_secret: s3cret";
        let at = "url: https://pve1:8006";
        for (text, words) in [
            ("clusters: []".to_owned(), "`clusters` is empty"),
            ("clusters: 7".to_owned(), "not a valid cloud config"),
            (cluster(&format!("{token}: x")), "mapping values are not allowed"),
            (cluster(&format!("{token}\nurl: [")), "expected string scalar"),
            (cluster(token), "cluster lab: `url` is missing"),
            (cluster(&format!("url: pve1\n{token}")), "invalid url `pve1`"),
            (cluster(at), "`token_id` and `token_secret` are missing"),
            (cluster(&format!("{at}\nusername: root\npassword: s3cret")), "must have the form name@realm"),
            (
                cluster(&format!("{at}\nusername: root@pam")),
                "`username` and `password`: the token secret or password is empty",
            ),
            (cluster(&format!("{at}\n{token}\nusername: root@pam")), "cannot be combined"),
            (cluster(&format!("{at}\n{token}\nfingerprint: AB")), "not a SHA-256 fingerprint"),
            (cluster(&format!("{at}\n{token}\nca_file: /nowhere")), "cannot read file /nowhere"),
            (cluster(&format!("{at}\n{token}\nca_file: /etc/id\ninsecure: true")), "keep one"),
            (
                format!("clusters:\n- url: https://pve1:8006\n  {}", token.replace('\n', "\n  ")),
                "cluster #1: `region` is missing",
            ),
            (
                format!(
                    "{0}{1}",
                    cluster(&format!("{at}\n{token}")),
                    cluster(&format!("{at}\n{token}")).replace("clusters:\n", "")
                ),
                "duplicate region",
            ),
        ] {
            let said = fault(&text);
            assert!(said.contains(words) && !said.contains("s3cret") && !said.contains('\n'), "{text}\n{said}");
        }
    }

    #[test]
    fn a_misspelt_key_is_noted() {
        let text = cluster("url: https://pve1:8006\ntoken_id: a@b!c\ntoken_secret: d\nca-file: /etc/ca.pem");
        let config = parse(&text, &files).unwrap();
        assert_eq!(
            config.notes,
            ["cluster lab: unknown key `ca-file` has no effect; remove it or correct its spelling"]
        );
    }
}
