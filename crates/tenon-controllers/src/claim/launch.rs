//! Continues the launch of a claim's VM: gathers what the VM should be, makes one pass, records what came of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::condition_reasons::{self, ConditionReason};
use tenon_api::event_reasons::{self, EventReason};
use tenon_api::{ConditionStatus, MetadataType, NodeClaim, ProxmoxNodeClass, launch_record, names};
use tenon_engine::launch::{AwaitedEnd, LaunchResult, LaunchTime};
use tenon_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};
use tenon_model::{InstanceType, LaunchRecord, LaunchStep, Leftover, VmId};
use tenon_pve::VmConfig;

use super::deletion::DeletionReason;
use super::desired_vm::{CloneSource, DesiredVm, FirstBoot, Render};
use super::gather::Observed;
use super::launch_failure::{Failed, give_up, incomplete_clone};
use super::launch_pass::{VmReader, launch_pass};
use super::outcome::Outcome;
use super::seed_parts::{NoSeedParts, SeedParts, Site};
use super::{ClaimError, address_fence, before_clone, seed_parts, token};
use crate::context::Context;
use crate::events::Event;
use crate::first_boot::{NoFirstBoot, SeedFacts, Subject, VmFacts, render_seed};
use crate::provision::LaunchSpot;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// Tasks end within a second or two; the first look comes soon, so that a pod need not wait for our clock.
const LOOK_SOON: Duration = Duration::from_millis(400);
/// A task that takes longer than this is not about to end, and is looked at less often.
const SOON_S: i64 = 15;
const LOOK_LATER: Duration = Duration::from_secs(2);
/// What lasts longer than this is worth a condition.
pub(super) const REPORT_AFTER_S: i64 = 30;
/// What an operator has to mend is looked at this often.
const LOOK_RARELY: Duration = Duration::from_secs(30);
/// A VM that the API token cannot read is looked at this often; each look goes through the last clone tasks.
const LOOK_AT_HIDDEN: Duration = Duration::from_secs(5);

/// One pass of a launch. What blocks it is waited for as long as a launch may stand still, and ends it then.
pub(crate) async fn pass(context: &Context, observed: &Observed, record: &LaunchRecord) -> Result<Outcome, ClaimError> {
    let launch = match Launch::gather(context, &observed.claim, record) {
        Ok(launch) => launch,
        Err(why) => return give_up(context, &observed.claim, record, &Failed::now(why)).await,
    };
    let (claim, time) = (&observed.claim, context.launch_time(&observed.claim));
    let advance = launch.advance(context, &time).await?;
    match &advance {
        Advance::To(_) => context.memory.not_blocked(&claim.name_any()),
        Advance::Waiting(..) | Advance::Blocked(_) => context.memory.blocked(&claim.name_any(), context.clock.now()),
    }
    match advance {
        Advance::To(outcome) => Ok(*outcome),
        Advance::Waiting(why, _) | Advance::Blocked(Block { message: why, .. }) if time.is_stalled(record) => {
            give_up(context, claim, record, &Failed::timed_out(why)).await
        }
        Advance::Waiting(_, outcome) => Ok(*outcome),
        Advance::Blocked(block) => Ok(block.outcome()),
    }
}

/// What came of trying to go on.
pub(super) enum Advance {
    To(Box<Outcome>),
    /// Nothing went forward; why, and when to look again.
    Waiting(String, Box<Outcome>),
    Blocked(Block),
}

/// What keeps a launch from going on until somebody does something.
pub(super) struct Block {
    condition: &'static ConditionReason,
    event: &'static EventReason,
    message: String,
}

impl Block {
    fn outcome(&self) -> Outcome {
        Outcome::after(LOOK_RARELY)
            .with_condition(&condition_reasons::LAUNCHED, Verdict::unknown(self.condition, self.message.clone()))
            .with_event(Event::new(self.event, self.message.clone()))
    }
}

/// First-boot data that cannot be rendered.
fn unrendered(condition: &'static ConditionReason, why: &str) -> Block {
    let joins = [&condition_reasons::JOIN_DATA_MISSING, &condition_reasons::BOOTSTRAP_BINDINGS_MISSING];
    if joins.into_iter().any(|join| std::ptr::eq(condition, join)) {
        return Block { condition, event: &event_reasons::JOIN_DATA_MISSING, message: why.to_owned() };
    }
    let message = format!("Cannot render first-boot data: {why}");
    Block { condition, event: &event_reasons::LAUNCH_FAILED, message }
}

/// A launch and all that it needs.
pub(super) struct Launch<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) record: &'a LaunchRecord,
    pub(super) class: Arc<ProxmoxNodeClass>,
    /// As the class has it.
    instance_type: InstanceType,
    pub(super) pve: tenon_pve::Client,
}

impl<'a> Launch<'a> {
    fn gather(context: &'a Context, claim: &'a NodeClaim, record: &'a LaunchRecord) -> Result<Launch<'a>, String> {
        let name = &claim.spec.node_class_ref.name;
        let class = context.watched.classes.get(&ObjectRef::new(name));
        let class = class.ok_or_else(|| format!("ProxmoxNodeClass {name} does not exist; create it"))?;
        let instance_type = context.instance_type_of(claim).ok_or_else(|| {
            let name = claim.labels().get(names::LABEL_INSTANCE_TYPE).map_or("", String::as_str);
            format!("instance type {name} is no longer defined")
        })?;
        Ok(Launch { claim, record, class, instance_type, pve: context.region(&record.place.region)? })
    }

    async fn advance(&self, context: &Context, time: &LaunchTime) -> Result<Advance, ClaimError> {
        if let Some(advance) = self.unready_class() {
            return Ok(advance);
        }
        if let Some(block) = self.name_taken(context).await? {
            return Ok(Advance::Blocked(block));
        }
        if let Some(block) = self.no_first_boot(context).await? {
            return Ok(Advance::Blocked(block));
        }
        if let Some(why) = address_fence::taken(context, self.claim, self.record) {
            let ended = give_up(context, self.claim, self.record, &Failed::now(why)).await?;
            return Ok(Advance::To(Box::new(ended)));
        }
        let parts = match self.seed_parts(context).await? {
            Ok(parts) => parts,
            Err(advance) => return Ok(advance),
        };
        let refused = Mutex::new(None);
        let render = |record: &LaunchRecord, config: &VmConfig| {
            let rendered = self.render(parts.as_ref(), record, config);
            rendered.inspect_err(|why| *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone()))
        };
        let source = self.source(context).await;
        let desired = self.desired_vm(context, &render, source);
        if let Err(why) = self.clone_slot(context, &desired) {
            return Ok(self.queued(context, &why));
        }
        let reader = VmReader { pve: &self.pve, seen: &context.memory.seen };
        let result = launch_pass(&reader, &desired, self.record, time).await?;
        self.free_clone_slot(context, &result);
        // What cannot be rendered is not the host's fault, and would be so on every other host.
        if let Some(why) = refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Advance::Blocked(unrendered(&condition_reasons::METADATA_OPTIONS_INVALID, &why)));
        }
        self.settle(context, result).await
    }

    /// With a class that is not Ready nothing is begun; what is under way is finished.
    fn unready_class(&self) -> Option<Advance> {
        let name = self.class.name_any();
        let conditions = self.class.status.as_ref().and_then(|status| status.conditions.as_deref());
        let ready = conditions.unwrap_or_default().iter().find(|condition| condition.type_ == "Ready");
        let why = ready.map_or("it was not evaluated yet", |ready| ready.message.as_str());
        match ready.map_or(ConditionStatus::Unknown, |ready| ready.status) {
            _ if !self.is_only_intended() => None,
            ConditionStatus::True => None,
            ConditionStatus::False => {
                let claim = self.claim.name_any();
                let note = format!("Deleting NodeClaim {claim}: ProxmoxNodeClass {name} is not Ready: {why}");
                let event = Event::new(&event_reasons::LAUNCH_FAILED, note);
                Some(Advance::To(Box::new(Outcome::deleted(DeletionReason::NodeClassNotReady).with_event(event))))
            }
            ConditionStatus::Unknown => {
                let message = format!("ProxmoxNodeClass {name} is not evaluated yet: {why}");
                let condition = &condition_reasons::NODE_CLASS_READINESS_UNKNOWN;
                Some(Advance::Blocked(Block { condition, event: &event_reasons::LAUNCH_FAILED, message }))
            }
        }
    }

    /// Whether no task of this launch was begun yet.
    fn is_only_intended(&self) -> bool {
        self.record.step == LaunchStep::Clone && self.record.upid.is_none()
    }

    /// A VM that has the claim's name already stops the launch: two VMs with one name are one node to Kubernetes.
    async fn name_taken(&self, context: &Context) -> Result<Option<Block>, ClaimError> {
        let Launch { claim, record, pve, .. } = self;
        if !self.is_only_intended() {
            return Ok(None);
        }
        let listing = match context.regions.polled(&record.place.region).await {
            Some(listing) => listing,
            None => Arc::new(pve.resources().await?),
        };
        let name = claim.name_any();
        let is_ours = |id: VmId| id == record.vmid || record.retired.contains(&id);
        let other = listing.guests.iter().find(|guest| guest.name.as_deref() == Some(&name) && !is_ours(guest.id));
        Ok(other.map(|guest| {
            let message = format!(
                "Cannot launch VM {}: VM {id} on host {} is already named {name}; rename or remove VM {id}, or delete \
                 NodeClaim {name}",
                record.vmid,
                guest.host,
                id = guest.id
            );
            Block { condition: &condition_reasons::NAME_TAKEN, event: &event_reasons::NAME_TAKEN, message }
        }))
    }

    /// What keeps a node of this VM from joining: found before there is a VM.
    async fn no_first_boot(&self, context: &Context) -> Result<Option<Block>, ClaimError> {
        if !self.is_only_intended() || !self.has_seed() {
            return Ok(None);
        }
        let subject = Subject { class: &self.class, launch: Some((self.claim, &self.instance_type)) };
        let no = before_clone::no_first_boot(context, &subject, self.record).await?;
        Ok(no.map(|NoFirstBoot { reason, message }| unrendered(reason, &message)))
    }

    /// What a seed is rendered from, in the step that needs it; or what is to be done first. The token is made before the VM
    /// is: without the right to make one no VM is of use.
    async fn seed_parts(&self, context: &Context) -> Result<Result<Option<SeedParts>, Advance>, ClaimError> {
        if self.record.step > LaunchStep::UploadSeed || !self.has_seed() {
            return Ok(Ok(None));
        }
        let blocked = |condition, why: String| Ok(Err(Advance::Blocked(unrendered(condition, &why))));
        let make = async || match seed_parts::make_token(context, self.claim).await? {
            Ok(made) => Ok(Err(Advance::To(Box::new(made)))),
            Err(NoSeedParts::Missing(condition, why)) => blocked(condition, why),
            Err(NoSeedParts::NoToken | NoSeedParts::Outdated) => Ok(Err(Advance::To(Box::new(Outcome::outdated())))),
        };
        if token::recorded(self.claim).is_none() {
            return make().await;
        }
        if self.record.step != LaunchStep::UploadSeed {
            return Ok(Ok(None));
        }
        let site = Site { pve: &self.pve, place: &self.record.place };
        match seed_parts::gather(context, self.claim, &self.class, site).await? {
            Ok(parts) => Ok(Ok(Some(parts))),
            // Somebody deleted it, and no VM has seen it yet: another does as well.
            Err(NoSeedParts::NoToken) => make().await,
            Err(NoSeedParts::Outdated) => Ok(Err(Advance::To(Box::new(Outcome::outdated())))),
            Err(NoSeedParts::Missing(condition, why)) => blocked(condition, why),
        }
    }

    fn has_seed(&self) -> bool {
        self.class.spec.metadata_options.type_ == MetadataType::Cdrom
    }

    fn render(
        &self,
        parts: Option<&SeedParts>,
        record: &LaunchRecord,
        config: &VmConfig,
    ) -> Result<bytes::Bytes, String> {
        let parts =
            parts.ok_or("cluster CA, API server address and bootstrap token were not read; please report this bug")?;
        let facts = SeedFacts {
            claim: self.claim,
            class: &self.class,
            instance_type: &self.instance_type,
            bootstrap: parts.bootstrap.clone(),
            kubernetes_version: parts.kubernetes_version.clone(),
            sources: &parts.sources,
            bridges: &parts.bridges,
        };
        let seed = render_seed(&facts, &VmFacts::of(record), config)
            .map_err(|why| format!("{why}; correct the template or the values"))?;
        seed.iso().map(bytes::Bytes::from).map_err(|error| error.to_string())
    }

    fn desired_vm<'r>(&self, context: &Context, render: &'r Render<'r>, source: CloneSource) -> DesiredVm<'r> {
        let spec = &self.class.spec;
        let whole =
            |resource: &str| u64::try_from(self.instance_type.capacity.get(resource).value()).unwrap_or_default();
        DesiredVm {
            owner: context.owner(self.claim),
            name: self.claim.name_any(),
            class: self.claim.spec.node_class_ref.name.clone(),
            instance_type: self.instance_type.name.clone(),
            capacity_type: self.instance_type.capacity_type.as_str().to_owned(),
            pool: spec.resource_pool.clone().filter(|pool| !pool.is_empty()),
            cores: u32::try_from(whole(CPU)).unwrap_or(u32::MAX),
            memory_mib: whole(MEMORY) >> 20,
            disk_gib: whole(EPHEMERAL_STORAGE) >> 30,
            storage: spec.boot_device.storage.clone().filter(|storage| !storage.is_empty()),
            clone_mode: spec.clone_mode.unwrap_or_default(),
            source,
            security_groups: spec.security_groups.clone().unwrap_or_default(),
            tags: spec.tags.clone().unwrap_or_default(),
            name_servers: spec.addresses.iter().flat_map(|addresses| addresses.dns.iter().flatten()).cloned().collect(),
            first_boot: if self.has_seed() { FirstBoot::Seed(render) } else { FirstBoot::Image },
        }
    }

    /// Records or reports what came of a pass.
    async fn settle(&self, context: &Context, result: LaunchResult) -> Result<Advance, ClaimError> {
        let Launch { claim, record, .. } = self;
        let outcome = match result {
            LaunchResult::Record(next) => write_record(context, claim, &next).await?,
            LaunchResult::Wait(AwaitedEnd::Task) => self.look_again(context),
            LaunchResult::Wait(awaited) => return Ok(self.waiting(context, &awaited)),
            LaunchResult::Relaunch { why, leftover } => self.relaunch(context, &why, leftover).await?,
            LaunchResult::GiveUp(why) => {
                context.memory.avoid(&LaunchSpot::of(&self.class, &record.place), &why, context.clock.now());
                give_up(context, claim, record, &Failed::now(why)).await?
            }
            LaunchResult::Refuse(why) => {
                let message = format!("{why}; the VM is not changed. Delete NodeClaim {}", claim.name_any());
                let (condition, event) = (&condition_reasons::NOT_PROVEN_OURS, &event_reasons::NOT_PROVEN_OURS);
                return Ok(Advance::Blocked(Block { condition, event, message }));
            }
            LaunchResult::Launched => Outcome::again(),
        };
        Ok(Advance::To(Box::new(outcome)))
    }

    fn look_again(&self, context: &Context) -> Outcome {
        let is_slow = context.clock.seconds().since(self.record.last_progress_at) > SOON_S;
        Outcome::after(if is_slow { LOOK_LATER } else { LOOK_SOON })
    }

    /// Nothing goes forward. What lasts is said in the condition.
    fn waiting(&self, context: &Context, awaited: &AwaitedEnd) -> Advance {
        let (vmid, host) = (self.record.vmid, self.record.host());
        let why = match awaited {
            AwaitedEnd::Task => format!("a task of VM {vmid} still runs"),
            AwaitedEnd::Lock(lock) => format!("VM {vmid} is locked (lock: {lock})"),
            AwaitedEnd::Host => format!("host {host} does not answer"),
            AwaitedEnd::HiddenVm => format!("VM {vmid} exists, and the API token cannot read it"),
        };
        // Each look goes through the last clone tasks.
        let is_searching = self.record.step == LaunchStep::Clone && self.record.upid.is_none();
        let outcome = if is_searching { Outcome::after(LOOK_AT_HIDDEN) } else { self.look_again(context) };
        let time = context.launch_time(self.claim);
        let lasts = time.now.since(self.record.last_progress_at.max(time.blocked_since)) > REPORT_AFTER_S;
        let note = format!("Cannot launch VM {vmid} on host {host} yet: {why}; retrying");
        let verdict = Verdict::unknown(&condition_reasons::LAUNCH_FAILED, note);
        let outcome = if lasts { outcome.with_condition(&condition_reasons::LAUNCHED, verdict) } else { outcome };
        Advance::Waiting(why, Box::new(outcome))
    }

    /// Starts again under another VM id.
    async fn relaunch(&self, context: &Context, why: &str, leftover: Leftover) -> Result<Outcome, ClaimError> {
        let Launch { claim, record, .. } = self;
        let Some(vmid) = self.another_id(context).await? else {
            return give_up(context, claim, record, &Failed::now(format!("{why}, and no other VM ID is free"))).await;
        };
        let next = record.moved_to(vmid, leftover, context.clock.seconds());
        let mut outcome = write_record(context, claim, &next).await?;
        if leftover == Leftover::IncompleteClone {
            outcome.events.push(incomplete_clone(record, record.vmid, why));
        }
        let note = format!("Launching VM {vmid} on host {} instead of VM {}: {why}", record.host(), record.vmid);
        Ok(outcome.with_event(Event::new(&event_reasons::RELAUNCHED, note)))
    }
}

/// Writes the record of a launch into its claim.
pub(crate) async fn write_record(
    context: &Context,
    claim: &NodeClaim,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(record) } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let written = written.map_err(|source| ClaimError::kube("write the launch record to the NodeClaim", source))?;
    tracing::debug!(claim = claim.name_any(), vmid = %record.vmid, step = ?record.step, "recorded launch step");
    Ok(match written {
        Written::Done(claim) => Outcome { claim: Some(claim), ..Outcome::again() },
        Written::Outdated => Outcome::outdated(),
    })
}
