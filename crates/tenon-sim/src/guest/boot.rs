//! What does a VM find on its drives when it boots, and which kubelet comes of it?

use std::collections::BTreeMap;

use super::cloud_init;
use super::command::Command;
use super::disk::Disk;
use super::image::{read_kubeconfig, told_of_mode};
use super::iso;
use super::kubelet_config::KubeletConfig;
use super::machine::Machine;
use super::network;
use super::trouble::Trouble;
use crate::estate::Estate;

/// A kubelet that could be started.
#[derive(Clone, Debug)]
pub(crate) struct Kubelet {
    pub(crate) node_name: String,
    pub(crate) command: Command,
    pub(crate) config: KubeletConfig,
    /// Which boot of the VM this is, counted from one.
    pub(crate) boot: u32,
}

/// Boots: cloud-init first, then what systemd makes of the disk.
pub(crate) fn boot(machine: &Machine, estate: &Estate) -> Result<Kubelet, Trouble> {
    let boot = machine.disk(|disk| {
        disk.boots += 1;
        disk.boots
    });
    match seed(machine, estate) {
        Some(files) => {
            let told = machine.disk(|disk| cloud_init::apply(&files, disk));
            told.into_iter().for_each(|line| machine.say(line));
        }
        None => {
            machine.disk(|disk| disk.addresses = network::of_options(&machine.vm));
            prepare_image(machine, boot);
        }
    }
    let kubelet = machine.disk(|disk| Kubelet::find(disk, boot))?;
    let secret = kubelet.command.bootstrap_kubeconfig.as_deref();
    let told = secret.and_then(|path| machine.disk(|disk| told_of_mode(disk, path)));
    told.into_iter().for_each(|line| machine.say(line));
    Ok(kubelet)
}

impl Kubelet {
    /// The kubelet that systemd would start from this disk, if it could run.
    fn find(disk: &Disk, boot: u32) -> Result<Self, Trouble> {
        let command = Command::find(disk)?;
        let config = KubeletConfig::read(disk, &command)?;
        if disk.file(&command.kubeconfig).is_none() {
            let path = command.bootstrap_kubeconfig.as_deref();
            let path = path.ok_or(Trouble::NoFlag("--bootstrap-kubeconfig"))?;
            read_kubeconfig(disk, path, "--bootstrap-kubeconfig")?;
        }
        let node_name = command.hostname_override.clone().unwrap_or_else(|| disk.hostname.to_lowercase());
        Ok(Self { node_name, command, config, boot })
    }
}

/// A VM without a seed has what its template brought, or was set up on an earlier boot.
fn prepare_image(machine: &Machine, boot: u32) {
    if boot > 1 {
        return;
    }
    match &machine.config.image_join {
        Some(join) => machine.disk(|disk| join.write_to(disk)),
        None => machine.say("no drive contains a cloud-init seed, and the image has no join configuration"),
    }
}

/// The files of the first CD-ROM drive that holds a seed.
fn seed(machine: &Machine, estate: &Estate) -> Option<BTreeMap<String, Vec<u8>>> {
    let vm = &machine.vm;
    for (key, drive) in vm.drives().into_iter().filter(|(_, drive)| drive.is_cdrom()) {
        let data = estate.with(|state| state.volume(&drive.file, &vm.host).map(|volume| volume.data.clone()));
        // A cloud-init drive of PVE's own has no bytes here: it only sets the name and the network.
        let Some(data) = data.filter(|data| !data.is_empty()) else { continue };
        match iso::seed_files(&data) {
            Some(files) => return Some(files),
            None => machine.say(format!("{} at {key} is not a volume with the label cidata", drive.file)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::image::kubeconfig;
    use super::*;

    /// The kubelet of a VM with this user-data.
    fn booted(user_data: &str) -> Result<Kubelet, Trouble> {
        let meta = "instance-id: '7'\nlocal-hostname: node-1\n";
        let seed = [("user-data", user_data), ("meta-data", meta)];
        let seed = seed.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into();
        let mut disk = Disk::from_image("image");
        assert_eq!(cloud_init::apply(&seed, &mut disk), Vec::<String>::new());
        Kubelet::find(&disk, 1)
    }

    fn file(path: &str, content: &str) -> String {
        json!({ "path": path, "permissions": "0600", "content": content }).to_string()
    }

    fn bootstrap(path: &str) -> String {
        file(path, &kubeconfig("https://a:1", "CA", &json!({ "token": "t" })))
    }

    #[test]
    fn files_at_the_places_that_kubeadm_uses_are_enough_to_join() {
        let config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 50\n\
                      registerWithTaints: [{key: file, effect: NoSchedule}]\n";
        let flags = "KUBELET_EXTRA_ARGS=--node-labels=pool=a --register-with-taints=flag:NoExecute --provider-id=proxmox://a/7\n";
        let text = format!(
            "#cloud-config\nwrite_files:\n- {}\n- {}\n- {}\n",
            bootstrap("/etc/kubernetes/bootstrap-kubelet.conf"),
            file("/var/lib/kubelet/config.yaml", config),
            file("/etc/default/kubelet", flags),
        );
        let kubelet = booted(&text).unwrap();
        assert_eq!((kubelet.node_name.as_str(), kubelet.config.max_pods), ("node-1", Some(50)));
        assert_eq!(kubelet.command.node_labels, [("pool".to_owned(), "a".to_owned())].into());
        assert_eq!(kubelet.config.taints, [json!({ "key": "flag", "effect": "NoExecute" })]);
        assert_eq!(kubelet.config.provider_id.as_deref(), Some("proxmox://a/7"));
    }

    #[test]
    fn files_are_found_wherever_the_users_own_unit_says() {
        let config =
            json!({ "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 9 });
        let unit = "[Service]\nExecStart=\nExecStart=/opt/bin/kubelet --config /opt/kubelet.json --kubeconfig \
                    /opt/own.conf --bootstrap-kubeconfig /opt/first.conf --hostname-override=Mine\n";
        let text = format!(
            "#cloud-config\nwrite_files:\n- {}\n- {}\n- {}\n",
            bootstrap("/opt/first.conf"),
            file("/opt/kubelet.json", &config.to_string()),
            file("/etc/systemd/system/kubelet.service.d/50-mine.conf", unit),
        );
        let kubelet = booted(&text).unwrap();
        assert_eq!((kubelet.node_name.as_str(), kubelet.config.max_pods), ("mine", Some(9)));
        assert_eq!(kubelet.command.bootstrap_kubeconfig.as_deref(), Some("/opt/first.conf"));
    }

    #[test]
    fn an_image_that_was_given_nothing_does_not_join() {
        let told = booted("#cloud-config\nhostname: a\n").unwrap_err().story();
        assert_eq!(told, "/var/lib/kubelet/config.yaml, named by --config, does not exist");
    }
}
