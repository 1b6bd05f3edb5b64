//! Goes on with the launch of a claim's VM: builds the order, makes one pass, writes down what came of it.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::{KubeletConfiguration, MetadataType, NodeClaim, ProxmoxNodeClass, launch_record, names};
use tenon_cloudinit::Bootstrap;
use tenon_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};
use tenon_model::{InstanceType, LaunchRecord, LaunchStep, VmId};
use tenon_pve::VmConfig;

use super::gather::Observed;
use super::launch::{LaunchPass, pass};
use super::order::{FirstBoot, Order, Render};
use super::outcome::{Next, Outcome};
use super::seed::{SeedFacts, seed_image};
use super::{ClaimError, health, join, token};
use crate::context::Context;
use crate::events::Saying;
use crate::provision::records_in;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// Tasks end within a second or two; the first look comes soon, so that a pod need not wait for our clock.
const LOOK_SOON: Duration = Duration::from_millis(400);
/// A task that takes longer than this is not about to end, and is looked at less often.
const SOON_S: i64 = 15;
const LOOK_LATER: Duration = Duration::from_secs(2);
/// What an operator has to mend is looked at this often.
const LOOK_RARELY: Duration = Duration::from_secs(30);
/// Ids that are tried in one pass before it is left to the next.
const IDS: usize = 8;

/// Goes on with a launch.
pub(crate) async fn go_on(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    let wanted = match Wanted::of(context, claim, record) {
        Ok(wanted) => wanted,
        Err(why) => return give_up(context, claim, record, why).await,
    };
    if let Some(outcome) = name_is_taken(&wanted, claim, record).await? {
        return Ok(outcome);
    }
    let bootstrap = match (record.step, wanted.has_seed()) {
        (LaunchStep::UploadSeed, true) if token::recorded(claim).is_none() => {
            return token::make(context, claim).await;
        }
        (LaunchStep::UploadSeed, true) => match join::facts(context, claim).await? {
            Ok(bootstrap) => Some(bootstrap),
            Err(why) => return Ok(blocked("JoinDataMissing", &why)),
        },
        _ => None,
    };
    let render = |record: &LaunchRecord, config: &VmConfig| wanted.render(bootstrap.as_ref(), record, config);
    let order = wanted.order(context, &render);
    let outcome = pass(wanted.pve, &order, record, context.clock.seconds()).await?;
    settle(context, &wanted, record, outcome).await
}

/// Writes down or tells what came of a pass.
async fn settle(
    context: &Context,
    wanted: &Wanted<'_>,
    record: &LaunchRecord,
    outcome: LaunchPass,
) -> Result<Outcome, ClaimError> {
    match outcome {
        LaunchPass::Record(next) => write_record(context, wanted.claim, &next).await,
        LaunchPass::Wait(_) => {
            let is_slow = context.clock.seconds().since(record.last_progress_at) > SOON_S;
            Ok(Outcome::after(if is_slow { LOOK_LATER } else { LOOK_SOON }))
        }
        LaunchPass::Relaunch { why, husk } => relaunch(context, wanted, record, (why, husk)).await,
        LaunchPass::GiveUp(why) => {
            context.memory.avoid(&record.place, &why, context.clock.now());
            give_up(context, wanted.claim, record, why).await
        }
        LaunchPass::Refuse(why) => Ok(blocked("NotProvenOurs", &format!("{why}; it is left alone. Delete this claim"))),
        LaunchPass::Launched => Ok(Outcome::again()),
    }
}

/// What a claim wants, all of it found.
struct Wanted<'a> {
    claim: &'a NodeClaim,
    class: std::sync::Arc<ProxmoxNodeClass>,
    size: &'a InstanceType,
    pve: &'a tenon_pve::Client,
}

impl<'a> Wanted<'a> {
    fn of(context: &'a Context, claim: &'a NodeClaim, record: &LaunchRecord) -> Result<Wanted<'a>, String> {
        let name = &claim.spec.node_class_ref.name;
        let class = context.watched.classes.get(&ObjectRef::new(name));
        let class = class.ok_or_else(|| format!("ProxmoxNodeClass {name} is gone; create it again"))?;
        let size = context.size_of(claim).ok_or_else(|| {
            let size = claim.labels().get(names::LABEL_INSTANCE_TYPE).map_or("", String::as_str);
            format!("there is no instance type {size} any more")
        })?;
        Ok(Wanted { claim, class, size, pve: context.region(&record.place.region)? })
    }

    fn has_seed(&self) -> bool {
        self.class.spec.metadata_options.type_ == MetadataType::Cdrom
    }

    fn kubelet(&self) -> Option<&KubeletConfiguration> {
        self.class.spec.kubelet_configuration.as_ref()
    }

    fn render(
        &self,
        bootstrap: Option<&Bootstrap>,
        record: &LaunchRecord,
        config: &VmConfig,
    ) -> Result<bytes::Bytes, String> {
        let bootstrap = bootstrap.cloned().ok_or("the join data was not read")?;
        let facts = SeedFacts { claim: self.claim, size: self.size, kubelet: self.kubelet(), bootstrap };
        seed_image(&facts, record, config)
    }

    fn order<'r>(&self, context: &Context, render: &'r Render<'r>) -> Order<'r> {
        let spec = &self.class.spec;
        let whole = |resource: &str| u64::try_from(self.size.capacity.get(resource).value()).unwrap_or_default();
        Order {
            owner: context.owner(self.claim),
            name: self.claim.name_any(),
            class: self.claim.spec.node_class_ref.name.clone(),
            instance_type: self.size.name.clone(),
            capacity_type: self.size.capacity_type.as_str().to_owned(),
            pool: spec.resource_pool.clone().filter(|pool| !pool.is_empty()),
            cores: u32::try_from(whole(CPU)).unwrap_or(u32::MAX),
            memory_mib: whole(MEMORY) >> 20,
            disk_gib: spec.boot_device.size_gigabytes().max(gigabytes(whole(EPHEMERAL_STORAGE))),
            storage: spec.boot_device.storage.clone().filter(|storage| !storage.is_empty()),
            tags: spec.tags.clone().unwrap_or_default(),
            first_boot: if self.has_seed() { FirstBoot::Seed(render) } else { FirstBoot::Image },
        }
    }
}

/// Bytes in decimal gigabytes, rounded up. The reference does the same and then asks Proxmox for as many GiB, so a disk is
/// never smaller than was asked for, nor smaller than it was before.
fn gigabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000_000)
}

/// A VM that bears the claim's name already stops the launch: two machines with one name are one node to Kubernetes.
async fn name_is_taken(
    wanted: &Wanted<'_>,
    claim: &NodeClaim,
    record: &LaunchRecord,
) -> Result<Option<Outcome>, ClaimError> {
    if record.step != LaunchStep::Clone || record.upid.is_some() {
        return Ok(None);
    }
    let listing = wanted.pve.resources().await?;
    let name = claim.name_any();
    let is_ours = |id: VmId| id == record.vmid || record.retired.contains(&id);
    let other = listing.guests.iter().find(|guest| guest.name.as_deref() == Some(&name) && !is_ours(guest.id));
    Ok(other.map(|guest| {
        let why = format!(
            "vm {} on host {} bears the name {name} already; rename or remove it, or delete this claim",
            guest.id, guest.host
        );
        blocked("NameTaken", &why)
    }))
}

/// The launch cannot go on until somebody does something.
fn blocked(reason: &'static str, why: &str) -> Outcome {
    Outcome::after(LOOK_RARELY).says("Launched", Verdict::unknown(reason, why)).tells(Saying::warning(reason, why))
}

pub(crate) async fn write_record(
    context: &Context,
    claim: &NodeClaim,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(record) } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let written = written.map_err(|source| ClaimError::kube("write the launch into the claim", source))?;
    tracing::debug!(claim = claim.name_any(), vmid = %record.vmid, step = ?record.step, "written down");
    Ok(match written {
        Written::Done(claim) => Outcome { claim: Some(claim), ..Outcome::again() },
        Written::Outdated => Outcome::outdated(),
    })
}

/// Begins anew under another id.
async fn relaunch(
    context: &Context,
    wanted: &Wanted<'_>,
    record: &LaunchRecord,
    (why, husk): (String, Option<VmId>),
) -> Result<Outcome, ClaimError> {
    let Some(vmid) = another_id(context, wanted.pve, record).await? else {
        return give_up(context, wanted.claim, record, format!("{why}, and no other id is free")).await;
    };
    let next = record.moved_to(vmid, husk, context.clock.seconds());
    let saying = match husk {
        Some(husk) => Saying::warning("HalfMadeVm", husk_told(record, husk, &why)),
        None => Saying::normal("Relaunched", format!("vm id {} could not be used ({why})", record.vmid)),
    };
    let mut outcome = write_record(context, wanted.claim, &next).await?;
    outcome.sayings.push(saying);
    outcome.sayings.push(Saying::normal("Relaunched", format!("the vm is made under id {vmid} instead")));
    Ok(outcome)
}

/// What an operator is told about a half-made VM.
pub(crate) fn husk_told(record: &LaunchRecord, husk: VmId, why: &str) -> String {
    let host = record.host();
    format!(
        "vm {husk} on host {host} was left half-made ({why}), and an API token can neither unlock nor remove it; \
         on {host} run: qm unlock {husk} && qm destroy {husk} --purge"
    )
}

/// The lowest id that nobody has and no claim means to take.
async fn another_id(
    context: &Context,
    pve: &tenon_pve::Client,
    record: &LaunchRecord,
) -> Result<Option<VmId>, ClaimError> {
    let listing = pve.resources().await?;
    let mut taken: BTreeSet<VmId> = listing.guests.iter().map(|guest| guest.id).collect();
    let claims = context.watched.claims.state();
    for other in records_in(&record.place.region, claims.iter().map(AsRef::as_ref)) {
        taken.insert(other.vmid);
        taken.extend(other.retired);
    }
    taken.insert(record.vmid);
    for _ in 0..IDS {
        let Some(vmid) = context.settings.ids.lowest_free(&taken) else { return Ok(None) };
        // A token with rights on a pool only does not see every VM, but may ask of every id.
        if pve.is_id_free(vmid).await? {
            return Ok(Some(vmid));
        }
        taken.insert(vmid);
    }
    Ok(None)
}

/// The claim goes; the pods it was made for are planned anew.
async fn give_up(
    context: &Context,
    claim: &NodeClaim,
    record: &LaunchRecord,
    why: String,
) -> Result<Outcome, ClaimError> {
    let told = format!(
        "cannot make a node on host {}: {why}; other hosts are tried, and this one again after a while",
        record.host()
    );
    health::failed(context, claim, ("LaunchFailed", &told)).await?;
    let saying = Saying::warning("InsufficientCapacityError", told.clone());
    Ok(Outcome {
        for_pods: vec![Saying::insufficient_capacity(told.clone())],
        delete: Some("insufficient_capacity"),
        next: Next::Now,
        ..Outcome::default()
    }
    .says("Launched", Verdict::unknown("LaunchFailed", told))
    .tells(saying))
}
