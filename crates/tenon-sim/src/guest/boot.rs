//! What does a VM find on its drives when it boots, and which kubelet comes of it?

use std::collections::BTreeMap;

use super::cloud_init;
use super::command::Command;
use super::image::read_kubeconfig;
use super::iso;
use super::kubelet_config::KubeletConfig;
use super::machine::Machine;
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
        None => prepare_image(machine, boot),
    }
    machine.disk(|disk| {
        let command = Command::find(disk)?;
        let config = KubeletConfig::read(disk, &command.config)?;
        if disk.file(&command.kubeconfig).is_none() {
            let path = command.bootstrap_kubeconfig.as_deref();
            let path = path.ok_or(Trouble::NoFlag("--bootstrap-kubeconfig"))?;
            read_kubeconfig(disk, path, "--bootstrap-kubeconfig")?;
        }
        let node_name = command.hostname_override.clone().unwrap_or_else(|| disk.hostname.to_lowercase());
        Ok(Kubelet { node_name, command, config, boot })
    })
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
