//! Takes over changes of the cloud config while the controllers run: new regions, other credentials, regions that are gone.
//!
//! The file, and the files it names, are read again every few seconds and compared by what they say. Kubernetes replaces a
//! mounted Secret by swapping a symlink, which a watch on the file would miss. A file that cannot be used changes nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tenon_controllers::election::Fence;
use tenon_controllers::{RegionChange, Regions};

use crate::cloud_config::{CloudConfig, Region};

/// A kubelet takes a minute to show a changed Secret; a few seconds more are not noticed, and reading the files costs nothing.
const EVERY: Duration = Duration::from_secs(5);

/// The cloud config as it was used last, and who is told when it changes.
pub(super) struct Reload {
    path: PathBuf,
    used: Vec<Region>,
    regions: Regions,
    fence: Fence,
    /// Why the file could not be used when it was read last: the same again is no news.
    fault: Option<String>,
}

impl Reload {
    pub(super) fn new(path: &Path, used: &CloudConfig, (regions, fence): (Regions, Fence)) -> Reload {
        Reload { path: path.to_owned(), used: used.regions.clone(), regions, fence, fault: None }
    }

    /// Reads the file again and again, until this has ended.
    pub(super) async fn beside<T>(mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(EVERY) => self.look(),
            }
        }
    }

    /// Compares the file with what is used, and uses it from now on if it can be used.
    fn look(&mut self) {
        let file = self.path.display().to_string();
        match super::cloud(&self.path).and_then(|cloud| self.apply(cloud)) {
            Ok(()) => {
                if self.fault.take().is_some() {
                    tracing::info!(file, "cloud config can be used again");
                }
            }
            Err(error) => {
                let error = format!("{error:#}");
                if self.fault.as_ref() != Some(&error) {
                    tracing::error!(file, error, "cannot use changed cloud config; keeping the last one that worked");
                }
                self.fault = Some(error);
            }
        }
    }

    fn apply(&mut self, cloud: CloudConfig) -> anyhow::Result<()> {
        if cloud.regions == self.used {
            return Ok(());
        }
        let mut wanted = BTreeMap::new();
        for region in &cloud.regions {
            let change = if self.used.contains(region) {
                RegionChange::Keep
            } else {
                let setup = region.setup(&self.fence);
                let setup =
                    setup.with_context(|| format!("cannot create the Proxmox client of region {}", region.name))?;
                RegionChange::Use(Box::new(setup))
            };
            wanted.insert(region.name.clone(), change);
        }
        report(&self.used, &cloud.regions);
        for note in &cloud.notes {
            tracing::warn!(file = %self.path.display(), "cloud config: {note}");
        }
        self.regions.replace(wanted);
        self.used = cloud.regions;
        Ok(())
    }
}

/// One line for each region that is not as it was.
fn report(before: &[Region], after: &[Region]) {
    let named = |regions: &[Region], name: &str| regions.iter().any(|region| region.name == name);
    for region in after.iter().filter(|region| !before.contains(region)) {
        let change = if named(before, &region.name) { "changed" } else { "added" };
        tracing::info!(region = region.name, change, "cloud config changed");
    }
    for region in before.iter().filter(|region| !named(after, &region.name)) {
        tracing::warn!(
            region = region.name,
            change = "removed",
            "cloud config changed; VMs of the region are kept and not touched, and no VM is created there"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TOKEN: &str = "token_id: karp@pve!node, token_secret_file: ";

    /// A file with these regions, beside a file with the secret, as a mounted Secret has them.
    struct Mount {
        folder: tempfile::TempDir,
    }

    impl Mount {
        fn new() -> Mount {
            let mount = Mount { folder: tempfile::tempdir().unwrap() };
            mount.put("secret", "one");
            mount
        }

        fn put(&self, name: &str, text: &str) {
            fs::write(self.folder.path().join(name), text).unwrap();
        }

        fn regions(&self, names: &[&str]) {
            let secret = self.folder.path().join("secret");
            let cluster = |name: &&str| {
                format!("- {{region: {name}, url: \"https://{name}:8006\", {TOKEN}{}}}\n", secret.display())
            };
            let clusters: String = names.iter().map(cluster).collect();
            self.put("config.yaml", &format!("clusters:\n{clusters}"));
        }

        /// One region whose entry ends with these lines.
        fn region_with(&self, more: &str) {
            let secret = self.folder.path().join("secret");
            let first = "clusters:\n- region: lab\n  url: https://lab:8006\n  token_id: karp@pve!node\n";
            self.put("config.yaml", &format!("{first}  token_secret_file: {}\n{more}", secret.display()));
        }

        fn reload(&self) -> Reload {
            let path = self.folder.path().join("config.yaml");
            let cloud = crate::controller::cloud(&path).unwrap();
            let fence = Fence::open();
            let setups = cloud.regions.iter().map(|region| (region.name.clone(), region.setup(&fence).unwrap()));
            let regions = setups.collect::<BTreeMap<_, _>>().into();
            Reload::new(&path, &cloud, (regions, fence))
        }
    }

    fn client(reload: &Reload) -> tenon_pve::Client {
        reload.regions.get("lab").unwrap()
    }

    #[test]
    fn regions_come_and_go_while_the_controllers_run() {
        let mount = Mount::new();
        mount.regions(&["lab"]);
        let mut reload = mount.reload();
        let lab = client(&reload);
        mount.regions(&["lab", "west"]);
        reload.look();
        assert_eq!(reload.regions.names(), ["lab", "west"]);
        assert!(client(&reload).is_same(&lab), "a region that did not change keeps its client");
        mount.regions(&["west"]);
        reload.look();
        assert_eq!(reload.regions.names(), ["west"]);
        assert!(reload.regions.client("lab").unwrap_err().contains("region lab is not in the cloud config"));
    }

    #[test]
    fn a_secret_that_is_replaced_in_its_own_file_gives_a_new_client() {
        let mount = Mount::new();
        mount.regions(&["lab", "west"]);
        let mut reload = mount.reload();
        let before = client(&reload);
        reload.look();
        assert!(client(&reload).is_same(&before));
        mount.put("secret", "two");
        reload.look();
        assert!(!client(&reload).is_same(&before));
    }

    #[test]
    fn an_authority_that_is_replaced_in_its_own_file_gives_a_new_client() {
        let mount = Mount::new();
        let authority = mount.folder.path().join("ca.pem");
        let issue = || mount.put("ca.pem", tenon_sim::Tls::self_signed().unwrap().ca_pem());
        issue();
        mount.region_with(&format!("  ca_file: {}\n", authority.display()));
        let mut reload = mount.reload();
        let before = client(&reload);
        reload.look();
        assert!(client(&reload).is_same(&before));
        issue();
        reload.look();
        let after = client(&reload);
        assert!(reload.fault.is_none() && !after.is_same(&before));
        mount.put("ca.pem", "half written");
        reload.look();
        assert!(reload.fault.is_some() && client(&reload).is_same(&after), "an authority that cannot be read");
    }

    #[test]
    fn another_fingerprint_or_limit_gives_a_new_client() {
        let mount = Mount::new();
        let pinned = |byte: &str| format!("  fingerprint: {}\n", [byte; 32].join(":"));
        let entries =
            [pinned("AB"), pinned("CD"), "  max_requests: 3\n".to_owned(), "  max_requests_per_second: 9\n".to_owned()];
        mount.region_with("");
        let mut reload = mount.reload();
        for entry in entries {
            let before = client(&reload);
            mount.region_with(&entry);
            reload.look();
            assert!(reload.fault.is_none() && !client(&reload).is_same(&before), "{entry}");
            let after = client(&reload);
            reload.look();
            assert!(client(&reload).is_same(&after), "{entry}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_keeps_the_last_that_could_and_is_told_once() {
        let mount = Mount::new();
        mount.regions(&["lab"]);
        let mut reload = mount.reload();
        let before = client(&reload);
        for text in ["clusters: [", "clusters: []", "clusters:\n- region: lab\n"] {
            mount.put("config.yaml", text);
            reload.look();
            let fault = reload.fault.clone();
            assert!(fault.is_some(), "{text}");
            reload.look();
            assert_eq!(reload.fault, fault);
            assert!(client(&reload).is_same(&before));
        }
        mount.regions(&["lab"]);
        reload.look();
        assert!(reload.fault.is_none() && client(&reload).is_same(&before));
    }
}
