//! Everything that is seen of the builds of one object in one round.

use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use tenon_api::event_reasons;
use tenon_engine::is_host_gone;
use tenon_engine::template::{BuildSight, ObservedTemplate, TemplateTask, is_resting};
use tenon_model::{Place, TemplateBuild, TemplateStep};
use tenon_pve::ProvenVm;

use super::observe::{Look, Seen, is_due};
use super::one::Run;
use crate::events::Event;

/// Builds that are looked at at the same time: a large estate has one on every host.
const AT_ONCE: usize = 8;

/// A look takes well under a second. A host on which one takes longer hangs, and is not asked again for a while.
pub(super) const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// What is seen of each build, in their order; nothing of one that nobody looked at.
pub(super) struct Sights {
    seen: Vec<Option<Seen>>,
}

impl Sights {
    /// Looks at every build that is due.
    pub(super) async fn look(run: &Run<'_>) -> Sights {
        let uid = run.work.uid();
        let others: Vec<TemplateBuild> = run
            .shared
            .builds
            .iter()
            .filter(|(owner, _)| **owner != uid)
            .flat_map(|(_, builds)| builds.clone())
            .collect();
        let looks: Vec<_> = run.builds.iter().map(|build| look_at(run, build, &others).boxed()).collect();
        let seen = stream::iter(looks).buffered(AT_ONCE).collect().await;
        Sights { seen }
    }

    pub(super) fn seen(&self, index: usize) -> Option<&BuildSight> {
        self.seen.get(index)?.as_ref().map(|seen| &seen.sight)
    }

    pub(super) fn take_proven(&mut self, index: usize) -> Option<ProvenVm> {
        self.seen.get_mut(index)?.as_mut()?.proven.take()
    }

    /// The build with the host its VM is on by now.
    pub(super) fn at_its_host(&self, index: usize, build: &TemplateBuild) -> TemplateBuild {
        let seen = self.seen.get(index).and_then(Option::as_ref);
        match seen.and_then(|seen| seen.proven.as_ref()) {
            Some(vm) => {
                let place = Place { host: vm.host().clone(), ..build.place.clone() };
                TemplateBuild { place, ..build.clone() }
            }
            None => build.clone(),
        }
    }

    /// What is told of a VM that has the id of a build that is to go, and is not ours.
    pub(super) fn refusal(&self, index: usize, builds: &[TemplateBuild]) -> Option<Event> {
        let build = builds.get(index).filter(|build| build.step == TemplateStep::Destroy)?;
        let ObservedTemplate::Foreign(why) = &self.seen(index)?.vm else { return None };
        let note = format!("VM {} on host {} is left alone: {why}", build.vmid, build.place.host);
        Some(Event::new(&event_reasons::TEMPLATE_LEFT_ALONE, note))
    }
}

/// Whether the host of a VM template that is to go with its object left the cluster, and no other has the VM.
fn is_lost_with_its_host(run: &Run<'_>, build: &TemplateBuild) -> bool {
    let is_listed = run.work.estate.host_of(&build.place.region, build.vmid).is_some();
    run.work.is_going() && is_host_gone(build, run.now()) && !is_listed
}

async fn look_at(run: &Run<'_>, build: &TemplateBuild, others: &[TemplateBuild]) -> Option<Seen> {
    let now = run.now();
    let Place { region, .. } = &build.place;
    let pve = run.context.regions.get(region)?;
    let estate = run.work.estate;
    let listed = estate.host_of(region, build.vmid);
    let host = listed.unwrap_or(&build.place.host);
    if estate.is_silent(region) {
        return None;
    }
    if is_lost_with_its_host(run, build) {
        return Some(Seen::nothing());
    }
    if !estate.is_online(&Place { region: region.clone(), host: host.clone() }) {
        return None;
    }
    let is_waiting = is_resting(build, now) && !build.retired && build.in_place.as_ref() == Some(&run.work.in_place);
    if is_waiting {
        return None;
    }
    let is_ready = build.step == TemplateStep::Ready && !build.retired;
    let is_as_listed = listed == Some(&build.place.host);
    let read_at = run.context.memory.read_at(&build.uuid);
    let is_thorough = !is_as_listed || is_due(build, &run.work.in_place, read_at, now);
    if is_ready && !is_thorough {
        return None;
    }
    let at = Place { region: region.clone(), host: host.clone() };
    if run.context.memory.hangs(&at, now) {
        return Some(Seen::unreachable());
    }
    let look = Look { pve: &pve, work: &run.work, build, is_thorough };
    let book = run.image_book(others);
    let seen = match tokio::time::timeout(LOOK_WITHIN, look.see(&book, run.shared.users.as_ref())).await {
        Ok(Ok(seen)) => seen,
        Err(_) => {
            run.context.memory.note_hanging(&at, now);
            return Some(Seen::unreachable());
        }
        Ok(Err(error)) => {
            tracing::debug!(template = run.work.name(), vmid = %build.vmid, error = error.full_message(), "cannot look at VM template; retrying");
            return None;
        }
    };
    if is_ready && seen.sight.task == TemplateTask::None {
        run.context.memory.was_read(&build.uuid, now);
    }
    Some(seen)
}
