//! Makes one change for one VM template. What it comes to shows at the next look.

use tenon_engine::template::{BuildFailure, TemplateChange};
use tenon_model::TemplateBuild;
use tenon_pve::{Advice, Cause, Client, Doubt, Download, Error, ProvenVm, RefusalKind, TemplateMark, Upid};

use super::desired::{DesiredTemplate, Options};
use super::failure;
use super::image_book::ImageFile;
use super::work::Work;

/// What came of a change.
#[derive(Debug)]
pub(super) enum Acted {
    /// Proxmox works on it.
    Begun(Upid),
    /// It is done; what was changed, in words.
    Done(String),
    /// It was refused.
    Failed(String),
    /// Nothing is known, or nothing happened: look again. Why.
    Again(String),
}

/// One change.
pub(super) struct Action<'a> {
    pub(super) pve: Client,
    pub(super) work: &'a Work<'a>,
    pub(super) build: &'a TemplateBuild,
    pub(super) proven: Option<ProvenVm>,
}

impl Action<'_> {
    /// Makes the change.
    pub(super) async fn perform(mut self, change: TemplateChange) -> Acted {
        let (work, build, proven) = (self.work, self.build, self.proven.take());
        match self.try_to(change, proven).await {
            Ok(acted) => acted,
            Err(error) => judged(work, build, &error),
        }
    }

    async fn try_to(&self, change: TemplateChange, proven: Option<ProvenVm>) -> Result<Acted, Error> {
        let TemplateBuild { place, vmid, image_storage, .. } = self.build;
        match (change, proven) {
            (TemplateChange::Download, _) => {
                let download = download(self.work, self.build);
                Ok(Acted::Begun(self.pve.download(&place.host, image_storage, &download).await?))
            }
            (TemplateChange::Create, _) => {
                let mark = self.work.mark(*vmid);
                let options = desired(self.work, self.build, &mark).creation();
                Ok(Acted::Begun(self.pve.create_vm(&place.host, *vmid, &params(&options)).await?))
            }
            (TemplateChange::Configure, Some(vm)) => self.configure(&vm).await,
            (TemplateChange::Convert, Some(vm)) => match self.proven_again(&vm).await? {
                Ok(vm) => Ok(Acted::Begun(self.pve.make_template(&vm).await?)),
                Err(doubt) => Ok(Acted::Again(format!("VM {vmid} is not converted: {doubt}"))),
            },
            (TemplateChange::Destroy, Some(vm)) => {
                // Once more, at the last moment: it may have another owner by now.
                match self.proven_again(&vm).await? {
                    Ok(vm) => Ok(Acted::Begun(self.pve.destroy_proven(vm).await?)),
                    Err(doubt) => Ok(Acted::Again(format!("VM {vmid} is not destroyed: {doubt}"))),
                }
            }
            (TemplateChange::DeleteImage, _) => {
                let volume = ImageFile::of(self.build).volume();
                Ok(Acted::Begun(self.pve.delete_volume(&place.host, &volume).await?))
            }
            (TemplateChange::StopTask, _) => {
                if let Some(upid) = self.build.upid.as_ref().and_then(|upid| upid.parse().ok()) {
                    self.pve.stop_task(&upid).await?;
                }
                Ok(Acted::Done(String::new()))
            }
            // The engine asks for these only with a proof in hand; without one nothing is changed.
            (_, None) => Ok(Acted::Again(format!("VM {vmid} could not be read"))),
        }
    }

    /// The VM as it is now: since the look, its id may have gone to another one.
    async fn proven_again(&self, vm: &ProvenVm) -> Result<Result<ProvenVm, Doubt>, Error> {
        self.pve.prove_template(vm.host(), &self.work.proof(self.build)).await
    }

    /// Writes what differs, and moves it into its pool or out of it. A write that fails in the middle leaves keys that wait for
    /// the next start, which a template never has: they are taken back.
    async fn configure(&self, vm: &ProvenVm) -> Result<Acted, Error> {
        let (pve, mark) = (&self.pve, self.work.mark(self.build.vmid));
        let difference = desired(self.work, self.build, &mark).difference(vm.config());
        let mut changed = difference.keys();
        if !difference.is_none() {
            let options = difference.params(vm.config());
            if let Err(error) = pve.configure_vm(vm.host(), vm.vmid(), &params(&options)).await {
                if let Ok(keys) = pve.pending_keys(vm.host(), vm.vmid()).await
                    && !keys.is_empty()
                {
                    pve.revert_pending(vm.host(), vm.vmid(), &keys).await?;
                }
                return Err(error);
            }
        }
        if let Some((pool, change)) = self.work.pool_change(self.build) {
            // Pools know only ids, and no digest.
            if let Err(doubt) = self.proven_again(vm).await? {
                return Ok(Acted::Again(format!("the resource pool of VM {} is not changed: {doubt}", vm.vmid())));
            }
            match pve.change_pool(pool, &[vm.vmid()], change).await {
                Err(error) if change.is_done_already(&error) => {}
                outcome => {
                    outcome?;
                    let separator = if changed.is_empty() { "" } else { ", " };
                    changed = format!("{changed}{separator}resource pool {pool}");
                }
            }
        }
        Ok(Acted::Done(changed))
    }
}

fn desired<'a>(work: &'a Work<'a>, build: &'a TemplateBuild, mark: &'a TemplateMark) -> DesiredTemplate<'a> {
    DesiredTemplate { spec: work.spec(), name: work.name(), build, mark }
}

fn params(options: &Options) -> Vec<(&str, String)> {
    options.iter().map(|(key, value)| (key.as_str(), value.clone())).collect()
}

fn download(work: &Work<'_>, build: &TemplateBuild) -> Download {
    let source = &work.spec().source_image;
    let algorithm = source.checksum_type.and_then(|kind| Some(serde_json::to_value(kind).ok()?.as_str()?.to_owned()));
    Download {
        content: "import".to_owned(),
        url: source.url.clone(),
        name: build.image_name.clone(),
        checksum: algorithm.zip(source.checksum.clone()),
        // Proxmox checks them unless it is told otherwise.
        verify_certificates: source.insecure_skip_tls_verify.filter(|skip| *skip).map(|_| false),
    }
}

/// What a failed call means for the step.
fn judged(work: &Work<'_>, build: &TemplateBuild, error: &Error) -> Acted {
    let Some(refusal) = error.refusal() else {
        let next = if matches!(error.cause(), Cause::NotSent(_)) { "retrying" } else { "looking for what came of it" };
        return Acted::Again(format!("{}; {next}", error.full_message()));
    };
    match failure::of_task(work, build, refusal) {
        // Whose VM it is shows at the next look.
        BuildFailure::IdTaken => Acted::Again(String::new()),
        failure => match refusal.advice() {
            Advice::Wait => Acted::Again(failure.words().to_owned()),
            _ if refusal.kind == RefusalKind::Changed => Acted::Again(failure.words().to_owned()),
            _ => Acted::Failed(failure.words().to_owned()),
        },
    }
}
