//! One ProxmoxTemplate as it is worked on: what it says, and what proves that a VM is its.

use kube::ResourceExt;
use tenon_api::{ProxmoxTemplate, ProxmoxTemplateSpec, hash};
use tenon_model::{TemplateBuild, VmId};
use tenon_pve::{GuestRow, PoolChange, TemplateMark, TemplateProof};

use crate::status::Estate;

/// One object, the cluster it is in, and what Proxmox shows.
pub(super) struct Work<'a> {
    template: ProxmoxTemplate,
    name: String,
    cluster: &'a str,
    pub(super) estate: &'a Estate,
    /// Our hash of the fields that are applied in place.
    pub(super) in_place: String,
}

impl<'a> Work<'a> {
    pub(super) fn new(template: ProxmoxTemplate, cluster: &'a str, estate: &'a Estate) -> Work<'a> {
        let in_place = hash::of_template_in_place(&template.spec);
        Work { name: template.name_any(), template, cluster, estate, in_place }
    }

    /// The object as it was written last.
    pub(super) fn template(&self) -> &ProxmoxTemplate {
        &self.template
    }

    /// The object was written.
    pub(super) fn replace(&mut self, template: ProxmoxTemplate) {
        self.template = template;
    }

    pub(super) fn spec(&self) -> &ProxmoxTemplateSpec {
        &self.template.spec
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_going(&self) -> bool {
        self.template.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn cluster(&self) -> &str {
        self.cluster
    }

    pub(super) fn uid(&self) -> String {
        self.template.uid().unwrap_or_default()
    }

    /// The line in the description of a VM.
    pub(super) fn mark(&self, vmid: VmId) -> TemplateMark {
        TemplateMark { cluster: self.cluster.to_owned(), template: self.uid(), vmid }
    }

    pub(super) fn proof(&self, build: &TemplateBuild) -> TemplateProof {
        TemplateProof { mark: self.mark(build.vmid), uuid: build.uuid.clone() }
    }

    /// The pool that a VM has to be put into or taken out of. A token that may not see pools sees none: then it is done once.
    /// Without a pool in the spec, the VM leaves the one that the spec had put it into, and stays where people put it.
    pub(super) fn pool_change<'b>(&'b self, build: &'b TemplateBuild) -> Option<(&'b str, PoolChange)> {
        let row = self.row(build)?;
        let is_applied = build.in_place.as_ref() == Some(&self.in_place);
        match (self.spec().resource_pool.as_deref(), build.pool.as_deref()) {
            (Some(pool), _) => {
                let is_there = row.pool.as_deref().map_or(is_applied, |present| present == pool);
                (!is_there).then_some((pool, PoolChange::Move))
            }
            (None, Some(pool)) => {
                let is_there = row.pool.as_deref().map_or(!is_applied, |present| present == pool);
                is_there.then_some((pool, PoolChange::Remove))
            }
            (None, None) => None,
        }
    }

    /// The build with the pool it is in because the spec says so. One that people moved elsewhere is theirs to move.
    pub(super) fn with_pool(&self, build: &TemplateBuild) -> TemplateBuild {
        let wanted = &self.spec().resource_pool;
        let present = self.row(build).and_then(|row| row.pool.clone());
        let pool = match (wanted, present) {
            (Some(wanted), Some(present)) if *wanted == present => Some(present),
            (None, Some(present)) if build.pool.as_ref() != Some(&present) => None,
            _ => build.pool.clone(),
        };
        TemplateBuild { pool, ..build.clone() }
    }

    fn row(&self, build: &TemplateBuild) -> Option<&GuestRow> {
        let resources = self.estate.regions.get(&build.place.region)?.as_ref().ok()?;
        resources.guests.iter().map(AsRef::as_ref).find(|guest| guest.id == build.vmid)
    }
}
