//! One ProxmoxTemplate in one pass: what it should have is compared with what was begun, and everything that was begun goes
//! one step further.
//!
//! What is intended is written down before anything is asked of Proxmox, and what came of it after. A pass that finds that
//! somebody else wrote the object stops there: the next one begins with what is true then.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::hash_template::{self, TemplateStanding};
use tenon_api::{ProxmoxTemplate, hash, hash_reference, names, template_record};
use tenon_engine::arrange;
use tenon_engine::template::{BuildOrder, TemplateChange, TemplateDecision, next_template_step};
use tenon_model::{Seconds, TemplateBuild, TemplateStep};

use super::act::{Acted, Action};
use super::existing::Existing;
use super::image_book::ImageBook;
use super::pass::{Shared, TemplateContext, recorded};
use super::report::{self, Standing};
use super::sight::Sights;
use super::targets::{self, Targets};
use super::work::Work;
use crate::events::Event;
use crate::status::StatusError;
use crate::writes::{self, Written};

/// Steps that can be made in one pass as long as none has to wait for Proxmox. More come with the next pass.
const ROUNDS: usize = 12;

/// A call that begins something is answered within a second or two. What takes longer hangs.
const ACT_WITHIN: Duration = Duration::from_secs(15);

/// What came of one object.
#[derive(Default)]
pub(super) struct Done {
    pub(super) is_busy: bool,
    pub(super) events: Vec<Event>,
    pub(super) error: Option<StatusError>,
}

/// Why a pass of an object ends early.
pub(super) enum Stop {
    /// Somebody else wrote the object.
    Outdated,
    Failed(StatusError),
}

/// Annotations to be written, with their values.
type Annotations = BTreeMap<String, String>;

/// One object in one pass.
pub(super) struct Run<'a> {
    pub(super) context: &'a TemplateContext,
    pub(super) shared: &'a Shared,
    pub(super) work: Work<'a>,
    pub(super) builds: Vec<TemplateBuild>,
    pub(super) events: Vec<Event>,
    /// What is in the way besides what the builds say.
    pub(super) notes: Vec<String>,
}

/// Brings one object further.
pub(super) async fn one(context: &TemplateContext, shared: &Shared, template: ProxmoxTemplate) -> Done {
    let work = Work::new(template, &context.cluster_id, &shared.estate);
    let mut run = Run { context, shared, work, builds: Vec::new(), events: Vec::new(), notes: Vec::new() };
    let outcome = run.go().await;
    // What waits for others is looked at in its turn.
    let is_under_way =
        |build: &TemplateBuild| build.step != TemplateStep::Ready && (build.upid.is_some() || build.error.is_none());
    let is_busy = run.builds.iter().any(is_under_way);
    match outcome {
        Ok(()) => Done { is_busy, events: run.events, error: None },
        Err(Stop::Outdated) => Done { is_busy: true, events: run.events, error: None },
        Err(Stop::Failed(error)) => Done { is_busy, events: run.events, error: Some(error) },
    }
}

impl Run<'_> {
    pub(super) fn now(&self) -> Seconds {
        self.shared.seconds()
    }

    async fn go(&mut self) -> Result<(), Stop> {
        match recorded(self.work.template()) {
            Ok(builds) => self.builds = builds,
            Err(error) => {
                let why =
                    format!("{error}; restore the annotation, or remove it after deleting the VM templates it names");
                return report::write(self, Standing::Unreadable(why)).await;
            }
        }
        if self.work.is_going()
            && !self.work.template().finalizers().iter().any(|name| name == names::TEMPLATE_FINALIZER)
        {
            return Ok(());
        }
        let fault = targets::fault(self.work.spec()).filter(|_| !self.work.is_going());
        if let Some(why) = fault {
            return report::write(self, Standing::Invalid(why)).await;
        }
        let existing = Existing::look(self).await;
        self.builds.extend(existing.adopted.clone());
        self.events.extend(existing.events.clone());
        self.notes.extend(existing.notes.clone());
        self.tell_regions();
        let mut targets = targets::targets(self.work.spec(), self.work.estate);
        let (number, annotations) = numbered(self.work.template());
        targets.wanted.number = number;
        targets.wanted.none = self.work.is_going();
        self.doubt_members(&mut targets.wanted).await;
        // Where it is not known yet what is there, nothing is made.
        targets.wanted.targets.retain(|target| !existing.undecided.contains(&target.place));
        self.advance(&targets, annotations, !existing.adopted.is_empty()).await?;
        let is_gone = self.work.is_going() && self.builds.is_empty() && existing.zones.is_empty();
        if is_gone {
            return self.let_go().await;
        }
        self.stamp_in_place().await?;
        report::write(self, Standing::At { targets: &targets, undecided: &existing.zones }).await
    }

    /// Round after round, until everything waits.
    async fn advance(&mut self, targets: &Targets, stamps: Annotations, is_new: bool) -> Result<(), Stop> {
        let mut stamps = stamps;
        let mut is_changed = is_new;
        for _ in 0..ROUNDS {
            let arranged = arrange(&self.builds, &targets.wanted, self.now());
            let mut builds: Vec<_> =
                arranged.builds.iter().map(|build| self.roused(&self.work.with_pool(build))).collect();
            for target in &arranged.missing {
                builds.extend(self.begin(target, &targets.wanted.number));
            }
            if self.work.is_going() {
                stamps.clear();
            }
            if is_changed || builds != self.builds || !stamps.is_empty() {
                self.write(builds, std::mem::take(&mut stamps)).await?;
                is_changed = false;
            }
            if !self.round().await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What failed is tried again at once when the spec was changed.
    fn roused(&self, build: &TemplateBuild) -> TemplateBuild {
        let is_changed = build.in_place.as_ref() != Some(&self.work.in_place);
        if build.attempt == 0 || !is_changed || build.step >= TemplateStep::Ready {
            return build.clone();
        }
        TemplateBuild { attempt: 0, in_place: Some(self.work.in_place.clone()), ..build.clone() }
    }

    /// Looks at every build, writes down what is decided, or makes the changes that were written down. `false` if everything
    /// waits now.
    async fn round(&mut self) -> Result<bool, Stop> {
        let mut sights = Sights::look(self).await;
        let in_place = self.work.in_place.clone();
        let order = BuildOrder {
            now: self.now(),
            in_place: &in_place,
            has_checksum: self.work.spec().source_image.checksum.is_some(),
            certifies: !self.work.spec().source_image.insecure_skip_tls_verify.unwrap_or_default(),
        };
        let mut next = Vec::new();
        let mut changes = Vec::new();
        for (index, build) in self.builds.clone().iter().enumerate() {
            let decision = match sights.seen(index) {
                Some(sight) => next_template_step(build, sight, &order),
                None => TemplateDecision::Wait,
            };
            let build = sights.at_its_host(index, build);
            match decision {
                TemplateDecision::Record(after) => next.push(TemplateBuild { place: build.place.clone(), ..after }),
                TemplateDecision::Move { why, leftover } => next.extend(self.moved(&build, &why, leftover)),
                TemplateDecision::Forget => self.events.extend(report::gone(&build)),
                TemplateDecision::Wait => next.push(build),
                TemplateDecision::Perform(change) => match self.shared.take_turn(&build, change) {
                    Ok(()) => {
                        changes.push((index, change));
                        next.push(build);
                    }
                    Err(why) => next.push(TemplateBuild { error: Some(why), ..build }),
                },
            }
            self.events.extend(sights.refusal(index, &self.builds));
        }
        if next != self.builds {
            self.write(next, Annotations::new()).await?;
            return Ok(true);
        }
        self.perform(&mut sights, changes).await
    }

    /// Makes the changes, all at once, and writes down what came of them. A host that does not answer holds up no other.
    async fn perform(&mut self, sights: &mut Sights, changes: Vec<(usize, TemplateChange)>) -> Result<bool, Stop> {
        let changes = self.permitted(changes).await;
        let builds = &self.builds;
        let mut acts = Vec::new();
        for (index, change) in changes {
            let Some(build) = builds.get(index) else { continue };
            let Some(pve) = self.context.regions.get(&build.place.region) else { continue };
            let action = Action { pve, work: &self.work, build, proven: sights.take_proven(index) };
            let memory = &self.context.memory;
            let now = self.now();
            acts.push(
                async move {
                    let acted = tokio::time::timeout(ACT_WITHIN, action.perform(change)).await;
                    let acted = acted.unwrap_or_else(|_| {
                        memory.note_hanging(&build.place, now);
                        Acted::Again(format!("host {} does not answer", build.place.host))
                    });
                    (index, change, acted)
                }
                .boxed(),
            );
        }
        let outcomes: Vec<_> = join_all(acts).await;
        let mut next = self.builds.clone();
        for (index, change, acted) in outcomes {
            if let Some(build) = next.get_mut(index) {
                self.events.extend(report::acted(&self.work, build, change, &acted));
                *build = self.after(build, change, acted);
            }
        }
        if next == self.builds {
            return Ok(false);
        }
        let is_further = next.iter().zip(&self.builds).any(|(after, before)| after.step != before.step);
        self.write(next, Annotations::new()).await?;
        Ok(is_further)
    }

    /// The record after a change.
    fn after(&self, build: &TemplateBuild, change: TemplateChange, acted: Acted) -> TemplateBuild {
        let now = self.now();
        match (acted, change) {
            (Acted::Begun(upid), _) => {
                let upid = Some(upid.to_string());
                TemplateBuild { upid, error: None, last_progress_at: now, ..build.clone() }
            }
            (Acted::Done(_), TemplateChange::Configure) if build.step == TemplateStep::Configure => {
                TemplateBuild { pool: self.work.spec().resource_pool.clone(), ..build.advanced(now) }
            }
            (Acted::Done(_), TemplateChange::Configure) => {
                self.context.memory.was_read(&build.uuid, now);
                TemplateBuild {
                    in_place: Some(self.work.in_place.clone()),
                    pool: self.work.spec().resource_pool.clone(),
                    ..build.at(build.step, now)
                }
            }
            (Acted::Done(_), _) => TemplateBuild { upid: None, ..build.clone() },
            (Acted::Failed(why), _) => build.failed(why, now),
            (Acted::Again(why), _) if why.is_empty() => build.clone(),
            (Acted::Again(why), _) => TemplateBuild { error: Some(why), ..build.clone() },
        }
    }

    /// Writes the builds down, if nobody else wrote the object.
    async fn write(&mut self, builds: Vec<TemplateBuild>, stamps: Annotations) -> Result<(), Stop> {
        self.events.extend(report::transitions(&self.builds, &builds));
        let mut annotations = stamps;
        annotations.insert(names::ANNOTATION_TEMPLATE_BUILDS.to_owned(), template_record::write(&builds));
        let mut patch = json!({ "metadata": { "annotations": annotations } });
        let template = self.work.template();
        let finalizer = names::TEMPLATE_FINALIZER.to_owned();
        if !self.work.is_going() && !template.finalizers().contains(&finalizer) {
            let finalizers: Vec<_> = template.finalizers().iter().cloned().chain([finalizer]).collect();
            patch["metadata"]["finalizers"] = json!(finalizers);
        }
        self.merge(patch, "write down the VM templates").await?;
        self.builds = builds;
        Ok(())
    }

    async fn merge(&mut self, patch: serde_json::Value, what: &str) -> Result<(), Stop> {
        let template = self.work.template();
        match writes::merge(&self.context.workload, template, patch).await {
            Ok(Written::Done(template)) => self.work.replace(*template),
            Ok(Written::Outdated) => return Err(Stop::Outdated),
            Err(source) => {
                let action = format!("{what} of ProxmoxTemplate {}", self.work.name());
                return Err(Stop::Failed(StatusError::new(action, source)));
            }
        }
        Ok(())
    }

    /// Nothing is left of it.
    async fn let_go(&mut self) -> Result<(), Stop> {
        let template = self.work.template();
        let others: Vec<&String> =
            template.finalizers().iter().filter(|name| *name != names::TEMPLATE_FINALIZER).collect();
        if others.len() == template.finalizers().len() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "finalizers": others } });
        self.merge(patch, "remove the finalizer").await
    }

    /// Says that every template has what can be given without making it anew.
    async fn stamp_in_place(&mut self) -> Result<(), Stop> {
        let stamp = &self.work.in_place;
        let is_done = {
            let mut ready =
                self.builds.iter().filter(|build| !build.retired && build.step == TemplateStep::Ready).peekable();
            ready.peek().is_some() && ready.all(|build| build.in_place.as_ref() == Some(stamp))
        };
        let is_said = self.work.template().annotations().get(names::ANNOTATION_TEMPLATE_IN_PLACE_HASH) == Some(stamp);
        if !is_done || is_said || self.work.is_going() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_TEMPLATE_IN_PLACE_HASH: stamp } } });
        self.merge(patch, "write the hash").await
    }

    /// What all builds from the same images are.
    pub(super) fn image_book<'b>(&'b self, others: &'b [TemplateBuild]) -> ImageBook<'b> {
        ImageBook { own: &self.builds, others, shared: &self.shared.shared_storages, estate: self.work.estate }
    }
}

/// The number that new templates are made from, and what has to be noted about it on the object. A number that is there is
/// believed until what it stands for changes; a new one is what the Go controller would write.
fn numbered(template: &ProxmoxTemplate) -> (String, Annotations) {
    let written = template.annotations().get(names::ANNOTATION_TEMPLATE_HASH);
    let number = written.cloned().unwrap_or_else(|| hash_reference::of_template(&template.spec));
    let mut annotations = match hash_template::judge(template.annotations(), &template.spec) {
        TemplateStanding::Outdated { number, annotations } => return (number, annotations),
        TemplateStanding::FirstSeen(note) => note,
        TemplateStanding::Holds => Annotations::new(),
    };
    if written.is_none() {
        annotations.insert(names::ANNOTATION_TEMPLATE_HASH.to_owned(), number.clone());
        annotations.insert(names::ANNOTATION_TEMPLATE_HASH_VERSION.to_owned(), hash::CLASS_VERSION.to_owned());
    }
    (number, annotations)
}
