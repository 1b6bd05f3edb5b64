//! Which files does a guest find on its disk after its first boot?

use serde::Serialize;

use crate::input::{Resources, SeedInput};
use crate::kubelet_unit::{self, Paths};
use crate::node_labels::Sorted;
use crate::{Bootstrap, Error, context, kubelet_config};

/// Everything that was known when the VM was made.
const CONTEXT: &str = "/etc/karpenter.yaml";
const HUGEPAGES_2MI: &str = "/etc/sysctl.d/99-hugepages.conf";
const HUGEPAGES_1GI: &str = "/etc/tmpfiles.d/99-hugepages.conf";
const CLUSTER_CA: &str = "/etc/kubernetes/pki/ca.crt";
/// Sorts after `10-kubeadm.conf`, which packages of the kubelet bring, and so has the last word.
const KUBELET_DROP_IN: &str = "/etc/systemd/system/kubelet.service.d/20-tenon.conf";
const KUBELET: Paths = Paths {
    bootstrap_kubeconfig: "/etc/kubernetes/bootstrap-kubelet.conf",
    // Written by the kubelet itself, once it has its certificate.
    kubeconfig: "/etc/kubernetes/kubelet.conf",
    config: "/var/lib/kubelet/config.yaml",
};

/// Who may read a file. What holds a token or the user's values is for root only.
#[derive(Clone, Copy)]
enum Mode {
    Secret,
    Public,
}

/// One entry of cloud-init's `write_files`.
#[derive(Serialize)]
pub(crate) struct BootFile {
    path: &'static str,
    owner: &'static str,
    permissions: &'static str,
    content: String,
}

impl BootFile {
    fn new(path: &'static str, mode: Mode, content: String) -> BootFile {
        let permissions = match mode {
            Mode::Secret => "0600",
            Mode::Public => "0644",
        };
        BootFile { path, owner: "root:root", permissions, content }
    }
}

/// The files, and the commands that make what is already running notice them.
#[derive(Default)]
pub(crate) struct Boot {
    pub(crate) files: Vec<BootFile>,
    pub(crate) commands: Vec<Vec<&'static str>>,
}

/// All files for one VM, in the order in which they are written.
pub(crate) fn plan(input: &SeedInput, labels: &Sorted<'_>) -> Result<Boot, Error> {
    let mut boot = Boot::default();
    boot.add_hugepages(input.resources);
    boot.files.push(BootFile::new(CONTEXT, Mode::Secret, context::render(input)?));
    if let Some(bootstrap) = &input.bootstrap {
        boot.add_kubelet(bootstrap, input, labels)?;
    }
    Ok(boot)
}

/// The kubelet's configuration file, which names the CA where this module puts it.
pub(crate) fn kubelet_config(input: &SeedInput) -> Result<String, Error> {
    kubelet_config::render(input, CLUSTER_CA)
}

impl Boot {
    /// The files hold for later boots; on the first one systemd read their folders before they were written.
    fn add_hugepages(&mut self, resources: Resources) {
        if resources.hugepages_2mi != 0 {
            let setting = format!("vm.nr_hugepages = {}\n", resources.hugepages_2mi);
            self.files.push(BootFile::new(HUGEPAGES_2MI, Mode::Public, setting));
            self.commands.push(vec!["sysctl", "-p", HUGEPAGES_2MI]);
        }
        if resources.hugepages_1gi != 0 {
            // The sysctl counts pages of the default size only.
            let count = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
            let setting = format!("w {count} - - - - {}\n", resources.hugepages_1gi);
            self.files.push(BootFile::new(HUGEPAGES_1GI, Mode::Public, setting));
            self.commands.push(vec!["systemd-tmpfiles", "--create", HUGEPAGES_1GI]);
        }
    }

    fn add_kubelet(&mut self, bootstrap: &Bootstrap, input: &SeedInput, labels: &Sorted<'_>) -> Result<(), Error> {
        bootstrap.check()?;
        input.kubelet.check()?;
        let config = kubelet_config(input)?;
        let unit = kubelet_unit::drop_in(&KUBELET, &input.identity.node_name, labels);
        self.files.extend([
            BootFile::new(KUBELET.bootstrap_kubeconfig, Mode::Secret, bootstrap.kubeconfig()?),
            BootFile::new(CLUSTER_CA, Mode::Public, bootstrap.ca_pem.clone()),
            BootFile::new(KUBELET.config, Mode::Public, config),
            BootFile::new(KUBELET_DROP_IN, Mode::Public, unit),
        ]);
        self.commands.extend([
            vec!["systemctl", "daemon-reload"],
            vec!["systemctl", "enable", "kubelet"],
            // Not `start`: an image may have started it already, with what it found then.
            vec!["systemctl", "restart", "kubelet"],
        ]);
        Ok(())
    }
}
