//! Proof that a VM is ours, without which nothing here stops or destroys one.
//!
//! An id is no proof: Proxmox gives it to the next VM as soon as it is free. A VM is ours if it has the recorded id and
//! the recorded SMBIOS uuid, or, while no uuid is recorded, the line that was put into its description with the clone.
//! The proof is read again before every step that cannot be undone.

use std::collections::BTreeMap;
use std::fmt;

use http::Method;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client};
use crate::config::VmConfig;
use crate::error::{Cause, Error, Result};
use crate::guests::vm_path;
use crate::refusal::Refusal;
use crate::upid::Upid;

/// How our line in a description begins.
pub(crate) const MARK: &str = "tenon.dev/owner";

/// The lock of a VM whose memory was written to disk. It holds nothing up: such a VM can be destroyed.
const SUSPENDED: &str = "suspended";

/// The description of a clone until its first disk is there.
const CLONE_PLACEHOLDER: &str = "qmclone temporary file";

/// How the last line of a VM we are about to destroy begins.
const TOMBSTONE: &str = "tenon.dev/destroying";

/// Who made a VM, as it stands in the VM's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerMark {
    /// The Kubernetes cluster.
    pub cluster: String,
    /// The uid of the NodeClaim.
    pub claim: String,
    /// The id the VM was made with. A copy of our VM carries our line, but not this id.
    pub vmid: VmId,
}

impl fmt::Display for OwnerMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK} cluster={} claim={} vmid={}", self.cluster, self.claim, self.vmid)
    }
}

impl OwnerMark {
    /// The mark in a description, on a line of its own, if there is exactly one.
    pub fn find_in(description: &str) -> Option<OwnerMark> {
        let mut marks = description.lines().filter_map(OwnerMark::read);
        marks.next().filter(|_| marks.next().is_none())
    }

    /// Whether a description has anything that begins like a mark, readable or not.
    pub fn is_in(description: &str) -> bool {
        OwnerMark::count_in(description) > 0
    }

    /// How many lines of a description begin like a mark, of a NodeClaim or of a template.
    pub fn count_in(description: &str) -> usize {
        description.lines().filter(|line| line.trim_start().starts_with(MARK)).count()
    }

    fn read(line: &str) -> Option<OwnerMark> {
        let words: Vec<&str> = line.trim().split(' ').collect();
        let [MARK, cluster, claim, vmid] = words.as_slice() else { return None };
        Some(OwnerMark {
            cluster: cluster.strip_prefix("cluster=")?.to_owned(),
            claim: claim.strip_prefix("claim=")?.to_owned(),
            vmid: vmid.strip_prefix("vmid=")?.parse().ok()?,
        })
    }
}

/// What we wrote down about a VM of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Who made it, and under which id.
    pub mark: OwnerMark,
    /// Its SMBIOS uuid, once it was read.
    pub uuid: Option<String>,
}

/// Why a VM is not proven to be ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It carries a lock: it is ours and something holds it, or it is being made and does not say yet whose it is.
    #[error("the VM is locked ({0})")]
    Locked(String),
    /// Its uuid is not the recorded one: another VM has the id now.
    #[error("its SMBIOS UUID is {found}, not the recorded {recorded}: another VM has this ID now")]
    OtherUuid {
        /// What it has.
        found: String,
        /// What we wrote down.
        recorded: String,
    },
    /// It does not carry our line, or another one's.
    #[error("its description does not name this NodeClaim as its owner")]
    NoMark,
    /// It has another uuid, and the line of the template it should be: somebody changed the one or copied the other.
    #[error("its SMBIOS UUID is {found}, not the recorded {recorded}, but its description names this ProxmoxTemplate")]
    UuidChanged {
        /// What it has.
        found: String,
        /// What we wrote down.
        recorded: String,
    },
    /// It has no uuid, and does not carry the line of the template it should be.
    #[error("its description does not name this ProxmoxTemplate as its owner")]
    NotThisTemplate,
}

/// A VM that was proven to be ours a moment ago. There is no other way to have one than an examination, here or in
/// `template_proof`.
#[derive(Debug, Clone)]
pub struct ProvenVm {
    host: HostName,
    vmid: VmId,
    config: VmConfig,
}

impl ProvenVm {
    /// A VM whose examination went well.
    pub(crate) fn examined(host: &HostName, vmid: VmId, config: VmConfig) -> ProvenVm {
        ProvenVm { host: host.clone(), vmid, config }
    }

    /// The host it is on.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// Its id.
    pub fn vmid(&self) -> VmId {
        self.vmid
    }

    /// The configuration the proof was read from.
    pub fn config(&self) -> &VmConfig {
        &self.config
    }
}

impl Proof {
    /// Compares what was written down with what is there. A lock alone says nothing: a VM of somebody else may be locked by
    /// a backup. Only one that is being made may be ours without saying so.
    pub fn examine(&self, config: &VmConfig) -> Result<(), Doubt> {
        let lock = config.lock().filter(|lock| *lock != SUSPENDED);
        if let Some(lock) = lock.filter(|lock| is_being_made(config, lock)) {
            return Err(Doubt::Locked(lock.to_owned()));
        }
        match &self.uuid {
            Some(recorded) => {
                let found = config.uuid().unwrap_or_default();
                if !found.eq_ignore_ascii_case(recorded) {
                    return Err(Doubt::OtherUuid { found, recorded: recorded.clone() });
                }
            }
            None if OwnerMark::find_in(config.description()).as_ref() == Some(&self.mark) => {}
            None => return Err(Doubt::NoMark),
        }
        lock.map_or(Ok(()), |lock| Err(Doubt::Locked(lock.to_owned())))
    }
}

/// Whether a VM is a clone that does not say yet whose it is: until its first disk is there it has only this description.
pub fn is_being_made(config: &VmConfig, lock: &str) -> bool {
    lock == "clone" && config.description().trim() == CLONE_PLACEHOLDER
}

impl Client {
    /// Reads a VM and says whether it is ours.
    pub async fn prove(&self, host: &HostName, proof: &Proof) -> Result<Result<ProvenVm, Doubt>> {
        let vmid = proof.mark.vmid;
        let config = self.vm_config(host, vmid).await?;
        Ok(proof.examine(&config).map(|()| ProvenVm::examined(host, vmid, config)))
    }

    /// Begins to destroy a VM of ours, with every disk named after it.
    ///
    /// DELETE takes no condition, so the last look is a write that does: a tombstone that is refused if anything changed
    /// since the proof. What remains is that somebody destroys our VM and makes another under the same id between this
    /// write and the DELETE that follows at once; setting `protection` on a foreign VM closes even that.
    ///
    /// The same write is refused without quorum. A DELETE then would take the disks of a local storage away and fail on
    /// the configuration, so it must not be sent, and it is not.
    pub async fn destroy_proven(&self, vm: ProvenVm) -> Result<Upid> {
        let ProvenVm { host, vmid, config } = vm;
        let action = format!("destroy VM {vmid} on host {host}");
        let Some(digest) = config.digest() else {
            return Err(Error::new(action, crate::reply::unreadable("the VM configuration has no digest")));
        };
        if config.lock() == Some(SUSPENDED) {
            self.look_again(&host, vmid, digest).await?;
            return self.destroy(action, &host, vmid).await;
        }
        let kept: Vec<&str> = config.description().lines().filter(|line| !line.starts_with(TOMBSTONE)).collect();
        let description = format!("{}\n{TOMBSTONE} vmid={vmid}", kept.join("\n"));
        self.configure_vm(&host, vmid, &[("description", description), ("digest", digest.to_owned())]).await?;
        self.destroy(action, &host, vmid).await
    }

    async fn destroy(&self, action: String, host: &HostName, vmid: VmId) -> Result<Upid> {
        let params = [("purge", "1".to_owned()), ("destroy-unreferenced-disks", "1".to_owned())];
        self.task_call(Call { action, method: Method::DELETE, path: vm_path(host, vmid), params: &params }).await
    }

    /// A suspended VM takes no tombstone, because its lock refuses every write. So quorum is asked for, where the token may,
    /// and the configuration is read once more: it must be the one that was proven.
    async fn look_again(&self, host: &HostName, vmid: VmId, digest: &str) -> Result<()> {
        let action = || format!("destroy suspended VM {vmid} on host {host}");
        let refused = |words: &str| Error::new(action(), Cause::Refused(Refusal::new(500, words, BTreeMap::new())));
        match self.is_quorate().await {
            Ok(false) => return Err(refused("cluster not ready - no quorum?")),
            Err(error) if error.refusal().is_none() => return Err(error.before_another()),
            Ok(true) | Err(_) => {}
        }
        let config = self.vm_config(host, vmid).await.map_err(Error::before_another)?;
        if config.digest() == Some(digest) {
            Ok(())
        } else {
            Err(refused("checksum mismatch (file change by other user?)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn proof(uuid: Option<&str>) -> Proof {
        let mark = OwnerMark { cluster: "c1".to_owned(), claim: "u1".to_owned(), vmid: "20001".parse().unwrap() };
        Proof { mark, uuid: uuid.map(str::to_owned) }
    }

    fn examine(proof: &Proof, config: &Value) -> Result<(), Doubt> {
        proof.examine(&VmConfig::from_data(config).unwrap())
    }

    #[test]
    fn the_mark_in_the_description_proves_until_a_uuid_is_recorded() {
        let text = format!("Karpenter managed instance, class=default\n{}", proof(None).mark);
        assert_eq!(examine(&proof(None), &json!({ "description": text })), Ok(()));
        for other in [
            text.replace("c1", "c2"),
            text.replace("u1", "u2"),
            text.replace("20001", "20002"),
            text.replace('\n', " "),
            String::new(),
        ] {
            assert_eq!(examine(&proof(None), &json!({ "description": other })), Err(Doubt::NoMark), "{other}");
        }
        let twice = format!("{text}\n{}", proof(None).mark);
        assert_eq!(examine(&proof(None), &json!({ "description": twice })), Err(Doubt::NoMark));
    }

    #[test]
    fn a_recorded_uuid_decides_alone() {
        let ours = proof(Some("9e01f0b4-0000-4000-8000-000000000001"));
        let same = json!({ "smbios1": "uuid=9E01F0B4-0000-4000-8000-000000000001" });
        assert_eq!(examine(&ours, &same), Ok(()));
        let marked = json!({ "smbios1": "uuid=other", "description": ours.mark.to_string() });
        assert!(matches!(examine(&ours, &marked), Err(Doubt::OtherUuid { .. })));
        assert!(matches!(examine(&ours, &json!({})), Err(Doubt::OtherUuid { .. })));
    }

    #[test]
    fn a_vm_that_is_being_made_may_be_ours_and_one_of_ours_may_be_held() {
        let held = |lock: &str| Err(Doubt::Locked(lock.to_owned()));
        let placeholder = json!({ "lock": "clone", "description": " qmclone temporary file" });
        assert_eq!(examine(&proof(None), &placeholder), held("clone"));
        // Ours are cloned; what is created is somebody else's.
        assert_eq!(examine(&proof(None), &json!({ "lock": "create" })), Err(Doubt::NoMark));
        for lock in ["clone", "backup"] {
            let locked = json!({ "lock": lock, "description": proof(None).mark.to_string() });
            assert_eq!(examine(&proof(None), &locked), held(lock));
        }
        let ours = proof(Some("u1"));
        assert_eq!(examine(&ours, &json!({ "lock": "backup", "smbios1": "uuid=u1" })), held("backup"));
    }

    #[test]
    fn a_lock_does_not_make_a_foreign_vm_ours() {
        let foreign = json!({ "lock": "backup", "name": "mail", "description": "mail server", "smbios1": "uuid=u2" });
        assert_eq!(examine(&proof(None), &foreign), Err(Doubt::NoMark));
        assert!(matches!(examine(&proof(Some("u1")), &foreign), Err(Doubt::OtherUuid { .. })));
        let created = json!({ "lock": "create", "name": "mail" });
        assert_eq!(examine(&proof(None), &created), Err(Doubt::NoMark));
    }

    #[test]
    fn a_suspended_vm_of_ours_is_ours() {
        let suspended = json!({ "lock": "suspended", "smbios1": "uuid=u1" });
        assert_eq!(examine(&proof(Some("u1")), &suspended), Ok(()));
        assert!(examine(&proof(Some("u2")), &suspended).is_err());
    }
}
