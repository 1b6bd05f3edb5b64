//! What happens to the estate from outside the API: operators, the world, and those who watch.
//!
//! The values these methods take and give are in `world`.

use bytes::Bytes;

use crate::config::TokenSpec;
use crate::estate::Estate;
use crate::fault::{FaultSpec, WorldChange};
use crate::keys;
use crate::state::State;
use crate::storage::{CLOUDINIT_BYTES, SMALL_BYTES, Volume};
use crate::vm::{Config, Vm};
use crate::world::{ImageSpec, TaskSpan, TemplateSpec, VmSpec, VmView, VolumeView, WorldError};

impl Estate {
    /// Adds a template, known to every listing at once.
    pub fn add_template(&self, spec: &TemplateSpec) -> Result<(), WorldError> {
        self.with(|state| state.add_guest(spec, true))
    }

    /// Adds a VM of somebody else, known to every listing at once.
    pub fn add_vm(&self, spec: &VmSpec) -> Result<(), WorldError> {
        self.with(|state| {
            state.add_guest(&spec.base, false)?;
            if spec.running {
                state.power_on(spec.base.vmid);
                state.announce(spec.base.vmid);
            }
            Ok(())
        })
    }

    /// Removes a VM with all its volumes, whatever state it is in.
    pub fn remove_vm(&self, vmid: u32) -> Result<(), WorldError> {
        self.with(|state| {
            state.power_off(vmid);
            state.volumes.retain(|_, volume| volume.owner != Some(vmid));
            state.drop_vm(vmid).map(drop).ok_or(WorldError::UnknownVm(vmid))
        })
    }

    /// Takes the config lock off a VM, as `qm unlock` does.
    pub fn unlock(&self, vmid: u32) -> Result<(), WorldError> {
        self.edit(vmid, |vm| drop(vm.config.remove("lock")))
    }

    /// Puts a config lock on a VM, as a backup does.
    pub fn lock(&self, vmid: u32, lock: &str) -> Result<(), WorldError> {
        self.edit(vmid, |vm| drop(vm.config.insert("lock".into(), lock.into())))
    }

    /// From now on the guest ignores the power button.
    pub fn ignore_shutdown(&self, vmid: u32) -> Result<(), WorldError> {
        self.edit(vmid, |vm| vm.deaf = true)
    }

    fn edit(&self, vmid: u32, act: impl FnOnce(&mut Vm)) -> Result<(), WorldError> {
        self.with(|state| state.vms.get_mut(&vmid).map(act).ok_or(WorldError::UnknownVm(vmid)))
    }

    /// Moves a VM, and its local disks, to another host.
    pub fn migrate(&self, vmid: u32, host: &str) -> Result<(), WorldError> {
        self.with(|state| state.move_vm(vmid, host))
    }

    /// Puts a host into maintenance mode, or takes it out.
    pub fn set_maintenance(&self, host: &str, is_on: bool) {
        self.with(|state| match is_on {
            true => drop(state.maintenance.insert(host.to_string())),
            false => drop(state.maintenance.remove(host)),
        });
    }

    /// Cuts a host's power, or brings it back. Its guests stop and its workers die with it.
    pub fn set_host_online(&self, host: &str, online: bool) -> Result<(), WorldError> {
        let host = host.to_string();
        let change = if online { WorldChange::HostUp { host } } else { WorldChange::HostDown { host, delay: None } };
        self.with(|state| state.change_world(change))
    }

    /// Removes a host that is off from its cluster, as `pvecm delnode` and the removal of its folder do: its VMs go with it.
    pub fn remove_host(&self, host: &str) -> Result<(), WorldError> {
        self.with(|state| {
            state.hosts.remove(host).ok_or_else(|| WorldError::UnknownHost(host.into()))?;
            state.config.hosts.retain(|spec| spec.name != host);
            let lost: Vec<u32> = state.vms.values().filter(|vm| vm.host == host).map(|vm| vm.vmid).collect();
            for vmid in lost {
                state.volumes.retain(|_, volume| volume.owner != Some(vmid));
                drop(state.drop_vm(vmid));
            }
            Ok(())
        })
    }

    /// Fills or empties a storage until exactly this much is free (on every host, when it is local).
    pub fn set_storage_free(&self, storage: &str, bytes: u64) -> Result<(), WorldError> {
        self.with(|state| state.leave_free(storage, bytes))
    }

    /// A pool comes into being.
    pub fn add_pool(&self, pool: &str) {
        self.with(|state| {
            state.pools.entry(pool.into()).or_default();
        });
    }

    /// From now on this token is refused.
    pub fn revoke_token(&self, id: &str) {
        self.with(|state| state.access.remove_token(id));
    }

    /// From now on this token may call.
    pub fn grant_token(&self, token: TokenSpec) {
        self.with(|state| state.access.add_token(token));
    }

    /// Kills the worker of a running task; `false` when there is none.
    pub fn kill_worker(&self, upid: &str) -> bool {
        self.with(|state| state.kill_task(upid))
    }

    /// The next call that matches goes wrong.
    pub fn fail_next(&self, fault: FaultSpec) {
        self.add_fault(fault.into());
    }

    /// Workers of this kind (`qmclone`, `qmstart`, …) begin but get no further until they are released.
    pub fn hold_tasks(&self, kind: &str) {
        self.with(|state| state.tasks.held.insert(kind.into()));
    }

    /// Lets all held workers go on.
    pub fn release_tasks(&self) {
        self.with(State::release_held);
    }

    /// All workers of this kind (`qmclone`, `qmstart`, …), oldest first, and from when to when each ran.
    pub fn task_spans(&self, kind: &str) -> Vec<TaskSpan> {
        self.with(|state| {
            let tasks = state.tasks.order.iter().filter_map(|upid| state.tasks.by_upid.get(upid));
            let of_kind = tasks.filter(|task| task.kind == kind);
            let span = |task: &crate::tasks::Task| TaskSpan {
                upid: task.upid.clone(),
                host: task.node.clone(),
                id: task.id.clone(),
                began: task.ran.0,
                ended: task.ran.1,
                failure: task.end.as_ref().filter(|(_, end)| end != "OK").map(|(_, end)| end.clone()),
            };
            of_kind.map(span).collect()
        })
    }

    /// All VMs, by id.
    pub fn vms(&self) -> Vec<VmView> {
        self.with(|state| state.vms.values().map(|vm| state.view(vm)).collect())
    }

    /// One VM.
    pub fn vm(&self, vmid: u32) -> Option<VmView> {
        self.with(|state| state.vms.get(&vmid).map(|vm| state.view(vm)))
    }

    /// All volumes.
    pub fn volumes(&self) -> Vec<VolumeView> {
        self.with(|state| {
            let view = |(key, v): (&crate::storage::VolumeKey, &Volume)| VolumeView {
                volid: key.volid(),
                host: Some(key.host.clone()).filter(|h| !h.is_empty()),
                content: v.content.clone(),
                bytes: v.bytes,
                used: v.used,
                owner: v.owner,
                parent: v.parent.clone(),
            };
            state.volumes.iter().map(view).collect()
        })
    }

    /// The bytes of an uploaded file; of a local storage, those on the first host that has it.
    pub fn read_volume(&self, volid: &str) -> Option<Bytes> {
        self.with(|state| state.volumes.iter().find(|(key, _)| key.volid() == volid).map(|(_, v)| v.data.clone()))
    }

    /// Puts an ISO image onto a storage, seen from a host, as an operator with a shell does.
    pub fn put_iso(&self, host: &str, volid: &str, data: Bytes) -> Result<(), WorldError> {
        self.with(|state| {
            let key = state.key_of(volid, host).filter(|key| state.usable_storage(&key.storage, host).is_ok());
            let key = key.ok_or_else(|| WorldError::UnknownStorage(volid.into()))?;
            let volume = state.file("iso", "iso", data);
            state.allocate(key, volume).map_err(WorldError::Disks)
        })
    }

    /// Puts a disk image that can be imported onto a storage, seen from a host. Its bytes are never read.
    pub fn put_image(&self, host: &str, volid: &str, image: &ImageSpec) -> Result<(), WorldError> {
        self.with(|state| {
            let key = state.key_of(volid, host).filter(|key| state.usable_storage(&key.storage, host).is_ok());
            let key = key.ok_or_else(|| WorldError::UnknownStorage(volid.into()))?;
            let format = volid.rsplit('.').next().unwrap_or("raw").to_string();
            let (bytes, used, bootable) = (image.disk_bytes, image.file_bytes, image.bootable);
            let file = state.file("import", &format, Bytes::new());
            let volume = Volume { bytes, used, length: Some(used), bootable, ..file };
            state.allocate(key, volume).map_err(WorldError::Disks)
        })
    }
}

impl State {
    pub(crate) fn move_vm(&mut self, vmid: u32, host: &str) -> Result<(), WorldError> {
        if !self.hosts.contains_key(host) {
            return Err(WorldError::UnknownHost(host.into()));
        }
        let vm = self.vms.get_mut(&vmid).ok_or(WorldError::UnknownVm(vmid))?;
        vm.host = host.to_string();
        let moved = |volume: &Volume, place: &str| volume.owner == Some(vmid) && !place.is_empty();
        for (mut key, volume) in std::mem::take(&mut self.volumes) {
            if moved(&volume, &key.host) {
                key.host = host.to_string();
            }
            self.volumes.insert(key, volume);
        }
        Ok(())
    }

    pub(crate) fn leave_free(&mut self, storage: &str, bytes: u64) -> Result<(), WorldError> {
        if self.storage(storage).is_none() {
            return Err(WorldError::UnknownStorage(storage.into()));
        }
        for host in self.hosts.keys().cloned().collect::<Vec<_>>() {
            let place = self.place(storage, &host, "");
            let place = (place.storage, place.host);
            self.ballast.remove(&place);
            let (_, free) = self.usage(storage, &host);
            self.ballast.insert(place, free.saturating_sub(bytes));
        }
        Ok(())
    }

    fn view(&self, vm: &Vm) -> VmView {
        VmView {
            vmid: vm.vmid,
            host: vm.host.clone(),
            name: vm.name(),
            config: vm.config.clone(),
            status: vm.status(),
            lock: vm.lock().map(str::to_owned),
            pool: self.pool_of(vm.vmid).map(str::to_owned),
        }
    }

    fn add_guest(&mut self, spec: &TemplateSpec, template: bool) -> Result<(), WorldError> {
        if !self.hosts.contains_key(&spec.host) {
            return Err(WorldError::UnknownHost(spec.host.clone()));
        }
        if self.vms.contains_key(&spec.vmid) {
            return Err(WorldError::VmExists(spec.vmid));
        }
        let usable = self.usable_storage(&spec.storage, &spec.host).is_ok();
        if !usable {
            return Err(WorldError::UnknownStorage(spec.storage.clone()));
        }
        let mut config = self.guest_config(spec);
        let (id, stem) = (spec.vmid, if template { "base" } else { "vm" });
        let format = self.possible_format(&spec.storage, "qcow2");
        let name = self.image_name(&spec.storage, id, &format!("{stem}-{id}-disk-0"), &format);
        let disk = self.place(&spec.storage, &spec.host, &name);
        let size = keys::format_size(spec.disk_bytes);
        config.entry("scsi0".into()).or_insert(format!("{},discard=on,iothread=1,size={size},ssd=1", disk.volid()));
        let image = Volume { bootable: true, ..self.image(id, &format, spec.disk_bytes) };
        self.allocate(disk, image).map_err(WorldError::Disks)?;
        if spec.cloudinit_drive {
            let name = self.image_name(&spec.storage, id, &format!("vm-{id}-cloudinit"), &format);
            let seed = self.place(&spec.storage, &spec.host, &name);
            config.entry("ide2".into()).or_insert(format!("{},media=cdrom,size=4M", seed.volid()));
            let image = Volume { used: SMALL_BYTES, ..self.image(id, &format, CLOUDINIT_BYTES) };
            self.allocate(seed, image).map_err(WorldError::Disks)?;
        }
        if template {
            config.insert("template".into(), "1".into());
        }
        self.vms.insert(id, Vm::new(id, &spec.host, config));
        self.announce(id);
        Ok(())
    }

    /// What a freshly built guest has, before the spec's own keys.
    fn guest_config(&mut self, spec: &TemplateSpec) -> Config {
        let mac = self.chance.mac();
        let usual = [
            ("name", spec.name.clone()),
            ("cores", "1".into()),
            ("sockets", "1".into()),
            ("memory", "1024".into()),
            ("ostype", "l26".into()),
            ("scsihw", "virtio-scsi-single".into()),
            ("boot", "order=scsi0".into()),
            ("net0", format!("virtio={mac},bridge=vmbr0,firewall=1")),
            ("smbios1", format!("uuid={}", self.chance.uuid())),
            ("vmgenid", self.chance.uuid()),
            ("meta", format!("creation-qemu={},ctime={}", self.config.version.qemu(), self.epoch())),
        ];
        let mut config: Config = usual.map(|(k, v)| (k.to_string(), v)).into();
        if !spec.tags.is_empty() {
            config.insert("tags".into(), keys::normal_tags(&spec.tags));
        }
        config.extend(spec.config.clone());
        config
    }
}
