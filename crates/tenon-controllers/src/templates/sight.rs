//! Everything that is seen of the builds of one object in one round.

use futures::{FutureExt as _, StreamExt as _, stream};
use tenon_api::event_reasons;
use tenon_engine::template::{BuildSight, ObservedImage, ObservedTemplate, TemplateTask, is_resting};
use tenon_model::{Place, TemplateBuild, TemplateStep};
use tenon_pve::ProvenVm;

use super::observe::{Look, Seen, is_due};
use super::one::Run;
use crate::events::Event;

/// Builds that are looked at at the same time: a large estate has one on every host.
const AT_ONCE: usize = 8;

/// What is seen of each build, in their order; nothing of one that nobody looked at.
pub(super) struct Sights {
    seen: Vec<Option<Seen>>,
}

impl Sights {
    /// Looks at every build that is due.
    pub(super) async fn look(run: &mut Run<'_>) -> Sights {
        let uid = run.work.uid();
        let others: Vec<TemplateBuild> = run
            .shared
            .builds
            .iter()
            .filter(|(owner, _)| **owner != uid)
            .flat_map(|(_, builds)| builds.clone())
            .collect();
        let mut seen: Vec<Option<Seen>> = {
            let run: &Run<'_> = run;
            let mut looks = Vec::new();
            for build in &run.builds {
                looks.push(look_at(run, build, &others).boxed());
            }
            stream::iter(looks).buffered(AT_ONCE).collect().await
        };
        // A download that another build asked for is ours all the same.
        let book = run.image_book(&others);
        let ours: Vec<bool> = run.builds.iter().map(|build| book.is_ours(build)).collect();
        for ((build, seen), is_ours) in run.builds.iter_mut().zip(&mut seen).zip(ours) {
            let is_there = seen.as_ref().is_some_and(|seen| seen.sight.image == ObservedImage::Present);
            if build.step == TemplateStep::Download && is_there && is_ours {
                build.downloaded = true;
            }
        }
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

async fn look_at(run: &Run<'_>, build: &TemplateBuild, others: &[TemplateBuild]) -> Option<Seen> {
    let now = run.now();
    let Place { region, .. } = &build.place;
    let pve = run.context.regions.get(region)?;
    let estate = run.work.estate;
    let listed = estate.host_of(region, build.vmid);
    let host = listed.unwrap_or(&build.place.host);
    if estate.is_silent(region) || !estate.is_online(&Place { region: region.clone(), host: host.clone() }) {
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
    let look = Look { pve: &pve, work: &run.work, build, is_thorough };
    let seen = match look.see(&run.image_book(others), run.shared.users.as_ref()).await {
        Ok(seen) => seen,
        Err(error) => {
            tracing::debug!(template = run.work.name(), vmid = %build.vmid, error = error.full_message(), "cannot look at VM template; retrying");
            return None;
        }
    };
    if is_ready && seen.sight.task == TemplateTask::None {
        run.context.memory.was_read(&build.uuid, now);
    }
    Some(seen)
}
