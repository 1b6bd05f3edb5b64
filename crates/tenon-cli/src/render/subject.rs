//! The node whose first-boot data is rendered: everything that is known of it.

use anyhow::{Context as _, anyhow, bail};
use kube::ResourceExt as _;
use tenon_api::{MetadataType, NodeClaim, ProxmoxNodeClass, for_class, instance_types_file};
use tenon_cloudinit::{Bootstrap, SeedInput};
use tenon_controllers::first_boot::{SeedFacts, Sources, VmFacts, sample, seed_input};
use tenon_model::{InstanceType, Requirements};
use tenon_pve::{Interface, VmConfig};

use super::choose::{Given, Role};
use super::claim::Made;
use super::{Render, claim, files, live};
use crate::plan;

/// A VM as most are.
const SAMPLE_CONFIG: &str = "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nipconfig0: ip=dhcp\n";

/// A node, its VM and its cluster.
pub(super) struct Subject {
    pub(super) claim: NodeClaim,
    pub(super) class: ProxmoxNodeClass,
    pub(super) instance_type: InstanceType,
    pub(super) bootstrap: Bootstrap,
    pub(super) kubernetes_version: String,
    pub(super) sources: Sources,
    pub(super) vm: VmFacts,
    pub(super) config: VmConfig,
    pub(super) bridges: Vec<Interface>,
}

impl Subject {
    /// What its seed is made of, as the controller would say it.
    pub(super) fn input(&self) -> SeedInput {
        let facts = SeedFacts {
            claim: &self.claim,
            class: &self.class,
            instance_type: &self.instance_type,
            bootstrap: self.bootstrap.clone(),
            kubernetes_version: self.kubernetes_version.clone(),
            sources: &self.sources,
            bridges: &self.bridges,
        };
        seed_input(&facts, &self.vm, &self.config)
    }
}

/// What was asked for, with the files that were given.
pub(super) struct Wanted<'a> {
    pub(super) args: &'a Render,
    pub(super) given: Given,
    pub(super) types: Vec<InstanceType>,
}

impl Wanted<'_> {
    /// Reads the files.
    pub(super) fn read(args: &Render) -> anyhow::Result<Wanted<'_>> {
        Ok(Wanted { args, given: Given::read(args)?, types: types(args)? })
    }
}

/// Reads what the arguments name.
pub(super) fn gather(args: &Render, remarks: &mut Vec<String>) -> anyhow::Result<Subject> {
    let wanted = Wanted::read(args)?;
    match &args.nodeclaim {
        Some(name) => live::gather(&wanted, name, remarks),
        None => offline(&wanted, remarks),
    }
}

fn offline(Wanted { args, given, types }: &Wanted<'_>, remarks: &mut Vec<String>) -> anyhow::Result<Subject> {
    let (class, pool) = given.class_and_pool()?;
    needs_seed(&class)?;
    let demands = claim::demands(pool.as_ref());
    let place = claim::place(&class, &demands).ok_or_else(no_sample)?;
    let offered = |size: &&InstanceType| {
        let requirements: Requirements = size.offered_at(std::slice::from_ref(&place)).requirements;
        requirements.intersects(&demands)
    };
    let instance_type = match &args.instance_type {
        Some(name) => named_type(types, name)?,
        None => types.iter().find(offered).or(types.first()).ok_or_else(|| anyhow!("there are no instance types"))?,
    };
    let mut claim = claim::claim(&class, pool.as_ref(), demands, &Made { instance_type, place: &place });
    if let Some(name) = &args.name {
        claim.metadata.name = Some(name.clone());
    }
    Ok(Subject {
        instance_type: for_class(instance_type, &class),
        bootstrap: sample::bootstrap().ok_or_else(no_sample)?,
        kubernetes_version: sample::VERSION.to_owned(),
        sources: sources(given, &class, remarks)?,
        vm: sample::vm(&place.region, place.host.as_str()).ok_or_else(no_sample)?,
        config: vm_config(args)?.map_or_else(sample_config, Ok)?,
        bridges: Vec::new(),
        claim,
        class,
    })
}

/// Refuses a class whose VMs get nothing.
pub(super) fn needs_seed(class: &ProxmoxNodeClass) -> anyhow::Result<()> {
    if class.spec.metadata_options.type_ == MetadataType::Cdrom {
        return Ok(());
    }
    let name = class.name_any();
    bail!(
        "nothing to render: ProxmoxNodeClass {name} has spec.metadataOptions.type none, so its VMs get no first-boot data from \
         Tenon; set type: cdrom"
    )
}

/// The Secrets of a class, all from files.
fn sources(given: &Given, class: &ProxmoxNodeClass, remarks: &mut Vec<String>) -> anyhow::Result<Sources> {
    let options = &class.spec.metadata_options;
    let templates = given.secret(Role::Templates, options.templates_ref.as_ref(), remarks)?;
    let values = given.secret(Role::Values, options.values_ref.as_ref(), remarks)?;
    let origin = templates.as_ref().map(files::FoundSecret::origin).unwrap_or_default();
    let templates = templates.map(|found| (origin.as_str(), found.data));
    Ok(Sources::of(templates, values.map(|found| found.data).unwrap_or_default()))
}

fn types(args: &Render) -> anyhow::Result<Vec<InstanceType>> {
    let Some(path) = &args.instance_types else { return Ok(InstanceType::built_in()) };
    let text = plan::text(path, "instance types file", "--instance-types")?;
    instance_types_file::read(&text).with_context(|| format!("cannot use instance types file {}", path.display()))
}

/// An instance type by its name.
pub(super) fn named_type<'a>(types: &'a [InstanceType], name: &str) -> anyhow::Result<&'a InstanceType> {
    types.iter().find(|size| size.name == name).ok_or_else(|| {
        let known: Vec<&str> = types.iter().take(20).map(|size| size.name.as_str()).collect();
        anyhow!("instance type {name} is not defined; known: {}", known.join(", "))
    })
}

/// What `qm config` printed, if that was given.
pub(super) fn vm_config(args: &Render) -> anyhow::Result<Option<VmConfig>> {
    let Some(path) = &args.vm_config else { return Ok(None) };
    let text = files::text(path, "VM configuration", "--vm-config")?;
    let config = VmConfig::from_lines(&text).map_err(|(line, found)| {
        let shown = path.display();
        let found = plan::table_text::plain(&found);
        anyhow!(
            "cannot use VM configuration {shown}: line {line} is not `key: value`, as `qm config` prints it: {found}"
        )
    })?;
    Ok(Some(config))
}

/// One virtio card with DHCP.
pub(super) fn sample_config() -> anyhow::Result<VmConfig> {
    VmConfig::from_lines(SAMPLE_CONFIG).map_err(|_| no_sample())
}

/// Samples are constants; that none can be read would be a bug.
pub(super) fn no_sample() -> anyhow::Error {
    anyhow!("a sample value cannot be used; please report this bug")
}
