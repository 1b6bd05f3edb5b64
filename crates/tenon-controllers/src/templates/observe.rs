//! What is true of one VM template right now, in the engine's words: its VM, the task of its step, its image.

use tenon_engine::template::{BuildSight, ObservedImage, ObservedTemplate, TemplateTask};
use tenon_model::{HostName, Seconds, TemplateBuild, TemplateStep};
use tenon_pve::{
    Cause, Client, Doubt, Error, GuestKind, ProvenVm, RefusalKind, TaskFilter, TaskProgress, TaskSource, Upid, VmConfig,
};

use super::desired::DesiredTemplate;
use super::failure;
use super::image_book::{ImageBook, ImageFile};
use super::users::{self, Users};
use super::work::Work;

/// Tasks that are looked through for a lost one, the newest first.
const TASKS: u64 = 50;

/// How far the clocks of a host and ours may be apart.
const CLOCK_SKEW_S: i64 = 60;

/// One build as it is looked at.
pub(super) struct Look<'a> {
    pub(super) pve: &'a Client,
    pub(super) work: &'a Work<'a>,
    pub(super) build: &'a TemplateBuild,
    /// Whether the configuration of a finished template is read, too.
    pub(super) is_thorough: bool,
}

/// What is seen, and the host the VM is on now.
pub(super) struct Seen {
    pub(super) sight: BuildSight,
    pub(super) proven: Option<ProvenVm>,
}

impl Seen {
    /// Of a host that does not answer in time.
    pub(super) fn unreachable() -> Seen {
        let sight = BuildSight { task: TemplateTask::Unreachable, ..BuildSight::default() };
        Seen { sight, proven: None }
    }

    /// Of a host that is no member of its cluster any more: what was on it cannot be removed.
    pub(super) fn nothing() -> Seen {
        let sight = BuildSight { vm: ObservedTemplate::Absent, image_is_needed: true, ..BuildSight::default() };
        Seen { sight, proven: None }
    }
}

impl Look<'_> {
    /// Looks at what the step depends on.
    pub(super) async fn see(&self, book: &ImageBook<'_>, users: Option<&Users>) -> Result<Seen, Error> {
        let build = self.build;
        let mut seen = Seen { sight: BuildSight::default(), proven: None };
        seen.sight.task = self.task().await?;
        if matches!(seen.sight.task, TemplateTask::Running(_) | TemplateTask::Unreachable) {
            return Ok(seen);
        }
        match build.step {
            TemplateStep::Discard => seen.sight.image = self.image(book).await,
            TemplateStep::Download => {
                seen.sight.image = self.image(book).await;
                if seen.sight.task == TemplateTask::Lost {
                    seen.sight.leftover = self.leftover().await;
                }
                // Before it was written down, nothing of ours was asked for.
                let is_ordered = self.build.ordered_at.is_some() && seen.sight.image == ObservedImage::Absent;
                if seen.sight.task == TemplateTask::None && is_ordered {
                    seen.sight.task = self.lost_task("download", TaskSource::Active).await?;
                }
            }
            TemplateStep::Ready if !self.is_thorough => {}
            TemplateStep::DeleteImage => seen.sight.image_is_needed = book.is_needed(build),
            TemplateStep::Create
            | TemplateStep::Configure
            | TemplateStep::Convert
            | TemplateStep::Ready
            | TemplateStep::Destroy => self.see_vm(&mut seen, users).await?,
        }
        Ok(seen)
    }

    async fn see_vm(&self, seen: &mut Seen, users: Option<&Users>) -> Result<(), Error> {
        let (vm, proven) = self.vm().await?;
        let has_no_task = seen.sight.task == TemplateTask::None;
        seen.sight.task = match (self.build.step, &vm) {
            (TemplateStep::Create, ObservedTemplate::Creating | ObservedTemplate::Hidden) if has_no_task => {
                self.lost_task("qmcreate", TaskSource::All).await?
            }
            (TemplateStep::Create, ObservedTemplate::Absent) if has_no_task => {
                self.lost_task("qmcreate", TaskSource::Active).await?
            }
            (TemplateStep::Convert, _) if has_no_task => self.lost_task("qmtemplate", TaskSource::Active).await?,
            (TemplateStep::Destroy, _) if has_no_task => self.lost_task("qmdestroy", TaskSource::Active).await?,
            _ => seen.sight.task.clone(),
        };
        if let (TemplateStep::Destroy, Some(proven), Some(users)) = (self.build.step, &proven, users) {
            seen.sight.users = users::of(self.pve, self.build, proven, users).await;
        }
        if let Some(proven) = &proven {
            match self.build.step {
                TemplateStep::Convert => seen.sight.is_half_converted = is_half_converted(proven.config()),
                // Not to know how many there are is no reason to say anything else.
                TemplateStep::Ready => seen.sight.clones = users::count(self.pve, proven).await,
                _ => {}
            }
        }
        (seen.sight.vm, seen.proven) = (vm, proven);
        Ok(())
    }

    /// The recorded task.
    async fn task(&self) -> Result<TemplateTask, Error> {
        let Some(upid) = &self.build.upid else { return Ok(TemplateTask::None) };
        // A name we cannot read is as good as a task nobody knows.
        let Ok(upid) = upid.parse::<Upid>() else { return Ok(TemplateTask::Lost) };
        match self.pve.task_progress(&upid).await {
            Ok(TaskProgress::Running) => Ok(TemplateTask::Running(self.progress(&upid).await)),
            Ok(TaskProgress::Done(_)) => Ok(TemplateTask::Done),
            Ok(TaskProgress::Failed(refusal)) => {
                Ok(TemplateTask::Failed(failure::of_task(self.work, self.build, &refusal)))
            }
            Ok(TaskProgress::Died) => Ok(TemplateTask::Lost),
            Err(error) if error.is_not_found() || is_denied(&error) => Ok(TemplateTask::Lost),
            Err(error) if matches!(error.cause(), Cause::MaybeDone(_)) => Ok(TemplateTask::Unreachable),
            Err(error) => Err(error),
        }
    }

    /// How much of a download is done, as its log says. The log is a courtesy.
    async fn progress(&self, upid: &Upid) -> Option<u32> {
        if self.build.step != TemplateStep::Download {
            return None;
        }
        let log = self.pve.task_log(upid).await.ok()?;
        log.iter().rev().find_map(|line| percent(line))
    }

    /// The incomplete file of a download whose worker died, as its log names it. Only names that need no quoting are passed on.
    async fn leftover(&self) -> Option<String> {
        let upid = self.build.upid.as_ref()?.parse::<Upid>().ok()?;
        let log = self.pve.task_log(&upid).await.ok()?;
        log.iter().find_map(|line| saved_to(line, &self.build.image_name)).map(str::to_owned)
    }

    /// A task of ours whose reply was lost. One that found the id in use did nothing, and is not looked for.
    async fn lost_task(&self, kind: &str, source: TaskSource) -> Result<TemplateTask, Error> {
        let build = self.build;
        let since = build.last_progress_at.0.saturating_sub(CLOCK_SKEW_S);
        let filter = TaskFilter {
            source: Some(source),
            vmid: (kind != "download").then_some(build.vmid),
            kind: Some(kind.to_owned()),
            since: u64::try_from(since).ok(),
            limit: Some(TASKS),
            ..TaskFilter::default()
        };
        let rows = match self.pve.tasks(&build.place.host, &filter).await {
            Err(error) if is_denied(&error) => return Ok(TemplateTask::None),
            rows => rows?,
        };
        let is_about = |id: &str| kind != "download" || id == build.image_name;
        let mut ours = rows.into_iter().filter(|row| {
            let lost_race = row.end.as_ref().is_some_and(|end| end.contains("already exists"));
            self.pve.is_own_task(&row.upid) && is_about(row.upid.id()) && !lost_race
        });
        Ok(ours.next().map_or(TemplateTask::None, |row| TemplateTask::Found(row.upid.to_string())))
    }

    async fn image(&self, book: &ImageBook<'_>) -> ObservedImage {
        let TemplateBuild { place, image_storage, image_name, .. } = self.build;
        match self.pve.volumes(&place.host, image_storage, "import").await {
            Ok(volumes) => {
                let id = ImageFile::of(self.build).volume();
                let is_there = volumes.iter().any(|volume| volume.id == id);
                let loaded_by = match book.discarded_by(self.build) {
                    None if !is_there && self.build.step == TemplateStep::Download => book.loaded_by(self.build),
                    host => host,
                };
                match loaded_by {
                    Some(host) => ObservedImage::LoadedBy(host.to_string()),
                    None if is_there => ObservedImage::Present(book.file(self.build)),
                    None => ObservedImage::Absent,
                }
            }
            Err(error) => {
                ObservedImage::Unknown(format!("{}; looking for image {image_name} again", error.full_message()))
            }
        }
    }

    /// The VM under the recorded id, wherever it is by now.
    async fn vm(&self) -> Result<(ObservedTemplate, Option<ProvenVm>), Error> {
        let host = &self.build.place.host;
        let first = self.on(host).await?;
        if let Said::Seen(vm, proven) = first {
            return Ok((vm, proven));
        }
        let resources = self.pve.resources().await?;
        let listed = resources.guests.iter().find(|guest| guest.id == self.build.vmid);
        let vm = match (listed, &first) {
            (Some(guest), _) if guest.kind != GuestKind::Qemu => {
                ObservedTemplate::Foreign("it is an LXC container".to_owned())
            }
            (Some(guest), _) if guest.host != *host => match self.on(&guest.host).await? {
                Said::Seen(vm, proven) => return Ok((vm, proven)),
                Said::Denied => ObservedTemplate::Hidden,
                _ => ObservedTemplate::Unreachable,
            },
            (Some(_), Said::Denied) => ObservedTemplate::Hidden,
            (Some(_), _) => ObservedTemplate::Unreachable,
            (None, Said::NotHere) => ObservedTemplate::Absent,
            (None, _) if self.pve.is_id_free(self.build.vmid).await? => ObservedTemplate::Absent,
            (None, Said::NoAnswer) => ObservedTemplate::Unreachable,
            (None, _) => ObservedTemplate::Hidden,
        };
        Ok((vm, None))
    }

    async fn on(&self, host: &HostName) -> Result<Said, Error> {
        match self.pve.prove_template(host, &self.work.proof(self.build)).await {
            Ok(Ok(proven)) => Ok(Said::Seen(self.ours(&proven), Some(proven))),
            Ok(Err(doubt)) => Ok(Said::Seen(doubted(doubt), None)),
            Err(error) if error.is_not_found() => Ok(Said::NotHere),
            Err(error) if is_denied(&error) => Ok(Said::Denied),
            Err(error) if matches!(error.cause(), Cause::MaybeDone(_)) => Ok(Said::NoAnswer),
            Err(error) => Err(error),
        }
    }

    fn ours(&self, proven: &ProvenVm) -> ObservedTemplate {
        let mark = self.work.mark(self.build.vmid);
        let desired =
            DesiredTemplate { spec: self.work.spec(), name: self.work.name(), build: self.build, mark: &mark };
        let is_in_pool = self.work.pool_change(self.build).is_none();
        ObservedTemplate::Ours {
            is_template: proven.config().is_template(),
            is_as_described: is_in_pool && desired.difference(proven.config()).is_none(),
        }
    }
}

/// What one host says about the VM.
enum Said {
    Seen(ObservedTemplate, Option<ProvenVm>),
    /// It is not on this host: gone, or moved.
    NotHere,
    /// The token may not read it; Proxmox says the same of a VM that does not exist.
    Denied,
    /// The host does not answer.
    NoAnswer,
}

fn doubted(doubt: Doubt) -> ObservedTemplate {
    match doubt {
        Doubt::Locked(lock) if lock == "create" => ObservedTemplate::Creating,
        Doubt::Locked(lock) => ObservedTemplate::Locked(lock),
        Doubt::UuidChanged { .. } => ObservedTemplate::Disputed(doubt.to_string()),
        Doubt::OtherUuid { .. } | Doubt::NoMark | Doubt::NotThisTemplate => {
            ObservedTemplate::Foreign(doubt.to_string())
        }
    }
}

pub(super) fn is_denied(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| matches!(refusal.kind, RefusalKind::Denied { .. }))
}

/// Whether a VM is a template and a disk of it is no base image, on a storage that has base images.
fn is_half_converted(config: &VmConfig) -> bool {
    let drives = config.drives();
    let mut disks = drives.iter().filter(|(_, drive)| !drive.is_cdrom()).filter_map(|(_, drive)| drive.file());
    config.is_template() && disks.any(|file| file.rsplit([':', '/']).next().is_some_and(|name| name.starts_with("vm-")))
}

/// Where `wget` puts a file that is not complete yet, as a line of its log says.
fn saved_to<'a>(line: &'a str, image: &str) -> Option<&'a str> {
    let path = line.strip_prefix("Saving to: '")?.strip_suffix('\'')?;
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    (is_plain && path.contains(&format!("/{image}.tmp_dwnl."))).then_some(path)
}

/// The percentage in a line of `wget`.
fn percent(line: &str) -> Option<u32> {
    let read = |word: &str| word.strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 100);
    line.split_whitespace().rev().find_map(read)
}

/// Whether the configuration of a finished template is worth a read.
pub(super) fn is_due(build: &TemplateBuild, in_place: &str, looked_at: Option<Seconds>, now: Seconds) -> bool {
    let is_other = build.in_place.as_deref() != Some(in_place) || build.error.is_some();
    is_other || looked_at.is_none_or(|at| now.since(at) >= LOOK_AGAIN_S)
}

/// What people change by hand on a template is noticed after this long.
const LOOK_AGAIN_S: i64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_incomplete_file_of_a_download_is_known_from_its_log() {
        let path = "/var/lib/vz/import/debian-1.qcow2.tmp_dwnl.4711";
        assert_eq!(saved_to(&format!("Saving to: '{path}'"), "debian-1.qcow2"), Some(path));
        for line in ["Saving to: '/x/debian-1.qcow2.tmp_dwnl.1; reboot'", "Saving to: '/x/other.tmp_dwnl.1'", "100%"] {
            assert_eq!(saved_to(line, "debian-1.qcow2"), None);
        }
    }

    #[test]
    fn the_progress_of_a_download_is_the_last_percentage_in_a_line_of_its_log() {
        assert_eq!(percent(" 32768K ........ ........ ........ ........ 12%  103M 4s"), Some(12));
        assert_eq!(percent("2026-11-18 20:00:00 (100 MB/s) - 'x' saved [3/3]"), None);
        assert_eq!(percent("100% of 7000%"), Some(100));
    }
}
