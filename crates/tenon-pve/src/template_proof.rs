//! Proof that a VM is a template of ours, or one in the making.
//!
//! We choose its SMBIOS UUID before it exists, so the UUID proves from the first moment on. Where a VM has none, the line
//! in its description does. That line is another than the one of a NodeClaim's VM, so that neither is taken for the other.

use std::fmt;

use tenon_model::{HostName, VmId};

use crate::client::Client;
use crate::config::VmConfig;
use crate::error::Result;
use crate::proof::{Doubt, MARK, ProvenVm};

/// Whose template a VM is, as it stands in the VM's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateMark {
    /// The Kubernetes cluster.
    pub cluster: String,
    /// The uid of the ProxmoxTemplate.
    pub template: String,
    /// The id the VM was made with. A copy carries our line, but not this id.
    pub vmid: VmId,
}

impl fmt::Display for TemplateMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK} cluster={} template={} vmid={}", self.cluster, self.template, self.vmid)
    }
}

impl TemplateMark {
    /// The mark in a description, on a line of its own, if there is exactly one.
    pub fn find_in(description: &str) -> Option<TemplateMark> {
        let mut marks = description.lines().filter_map(TemplateMark::read);
        marks.next().filter(|_| marks.next().is_none())
    }

    fn read(line: &str) -> Option<TemplateMark> {
        let words: Vec<&str> = line.trim().split(' ').collect();
        let [MARK, cluster, template, vmid] = words.as_slice() else { return None };
        Some(TemplateMark {
            cluster: cluster.strip_prefix("cluster=")?.to_owned(),
            template: template.strip_prefix("template=")?.to_owned(),
            vmid: vmid.strip_prefix("vmid=")?.parse().ok()?,
        })
    }
}

/// What we wrote down about a template of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateProof {
    /// Whose it is, and under which id.
    pub mark: TemplateMark,
    /// Its SMBIOS UUID.
    pub uuid: String,
}

impl TemplateProof {
    /// Compares what was written down with what is there. While a VM is created it has a lock and nothing else, which proves
    /// nothing; so has one whose destruction was interrupted.
    pub fn examine(&self, config: &VmConfig) -> std::result::Result<(), Doubt> {
        let is_marked = TemplateMark::find_in(config.description()).as_ref() == Some(&self.mark);
        let lock = config.lock().map(str::to_owned);
        match (config.uuid(), lock) {
            (None, Some(lock)) if lock == "create" || lock == "destroyed" => Err(Doubt::Locked(lock)),
            (Some(found), _) if !found.eq_ignore_ascii_case(&self.uuid) => {
                let recorded = self.uuid.clone();
                Err(if is_marked {
                    Doubt::UuidChanged { found, recorded }
                } else {
                    Doubt::OtherUuid { found, recorded }
                })
            }
            (None, _) if !is_marked => Err(Doubt::NotThisTemplate),
            (_, Some(lock)) => Err(Doubt::Locked(lock)),
            (_, None) => Ok(()),
        }
    }
}

impl Client {
    /// Reads a VM and says whether it is the template that was written down.
    pub async fn prove_template(
        &self,
        host: &HostName,
        proof: &TemplateProof,
    ) -> Result<std::result::Result<ProvenVm, Doubt>> {
        let vmid = proof.mark.vmid;
        let config = self.vm_config(host, vmid).await?;
        Ok(proof.examine(&config).map(|()| ProvenVm::examined(host, vmid, config)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::proof::OwnerMark;

    fn proof() -> TemplateProof {
        let (cluster, template) = ("c1".to_owned(), "t1".to_owned());
        let mark = TemplateMark { cluster, template, vmid: "1000".parse().unwrap() };
        TemplateProof { mark, uuid: "9e01f0b4-0000-8000-8000-000000000001".to_owned() }
    }

    fn examine(config: &Value) -> std::result::Result<(), Doubt> {
        proof().examine(&VmConfig::from_data(config).unwrap())
    }

    #[test]
    fn the_uuid_decides_and_without_one_the_line_in_the_description() {
        let ours = "uuid=9E01F0B4-0000-8000-8000-000000000001";
        let text = format!("do not delete it. Hash: 17\n{}", proof().mark);
        assert_eq!(examine(&json!({ "smbios1": ours })), Ok(()));
        assert_eq!(examine(&json!({ "description": text })), Ok(()));
        assert_eq!(examine(&json!({})), Err(Doubt::NotThisTemplate));
        assert_eq!(examine(&json!({ "description": text.replace("t1", "t2") })), Err(Doubt::NotThisTemplate));
        assert!(matches!(examine(&json!({ "smbios1": "uuid=other" })), Err(Doubt::OtherUuid { .. })));
        let edited = json!({ "smbios1": "uuid=other", "description": text });
        assert!(matches!(examine(&edited), Err(Doubt::UuidChanged { .. })));
    }

    #[test]
    fn a_vm_that_is_being_created_proves_nothing_and_one_that_is_held_is_held() {
        let held = |lock: &str| Err(Doubt::Locked(lock.to_owned()));
        assert_eq!(examine(&json!({ "lock": "create" })), held("create"));
        assert_eq!(examine(&json!({ "lock": "destroyed" })), held("destroyed"));
        assert_eq!(examine(&json!({ "lock": "backup", "smbios1": format!("uuid={}", proof().uuid) })), held("backup"));
        assert_eq!(examine(&json!({ "lock": "backup", "name": "mail" })), Err(Doubt::NotThisTemplate));
    }

    #[test]
    fn a_template_is_never_taken_for_the_vm_of_a_claim_nor_the_other_way() {
        let template = proof().mark.to_string();
        assert_eq!((TemplateMark::find_in(&template), OwnerMark::find_in(&template)), (Some(proof().mark), None));
        let claim = OwnerMark { cluster: "c1".to_owned(), claim: "t1".to_owned(), vmid: "1000".parse().unwrap() };
        assert_eq!(TemplateMark::find_in(&claim.to_string()), None);
    }
}
