//! Which kinds of worker there are, and which of them holds the file lock of which VM.

use crate::clone::CloneJob;
use crate::content::DeleteVolumeJob;
use crate::create::CreateJob;
use crate::destroy::DestroyJob;
use crate::download::DownloadJob;
use crate::power::{ShutdownJob, StopJob};
use crate::related::HaStopJob;
use crate::resize::ResizeJob;
use crate::start::StartJob;
use crate::state::State;
use crate::suspend::PauseJob;
use crate::tasks::TaskOutcome;
use crate::template::TemplateJob;
use crate::update::ConfigJob;
use crate::upload::UploadJob;

/// The rest of the work of one task.
#[derive(Debug)]
pub(crate) enum Job {
    Clone(Box<CloneJob>),
    Config(ConfigJob),
    Create(Box<CreateJob>),
    DeleteVolume(DeleteVolumeJob),
    Destroy(DestroyJob),
    Download(Box<DownloadJob>),
    HaStop(HaStopJob),
    Pause(PauseJob),
    Resize(ResizeJob),
    Shutdown(ShutdownJob),
    Start(StartJob),
    Stop(StopJob),
    Template(TemplateJob),
    Upload(Box<UploadJob>),
}

impl Job {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        match self {
            Self::Clone(job) => job.step(state, upid),
            Self::Config(job) => job.step(state, upid),
            Self::Create(job) => job.step(state, upid),
            Self::DeleteVolume(job) => job.step(state, upid),
            Self::Destroy(job) => job.step(state, upid),
            Self::Download(job) => job.step(state, upid),
            Self::HaStop(job) => job.step(state, upid),
            Self::Pause(job) => job.step(state, upid),
            Self::Resize(job) => job.step(state, upid),
            Self::Shutdown(job) => job.step(state, upid),
            Self::Start(job) => job.step(state, upid),
            Self::Stop(job) => job.step(state),
            Self::Template(job) => job.step(state),
            Self::Upload(job) => job.step(state, upid),
        }
    }

    pub(crate) fn locked_vm(&self) -> Option<u32> {
        match self {
            Self::Clone(job) => Some(job.newid),
            Self::Config(job) => Some(job.vmid),
            Self::Create(job) => Some(job.vmid),
            Self::Destroy(job) => Some(job.vmid),
            Self::Pause(job) => Some(job.vmid),
            Self::Template(job) => Some(job.vmid),
            Self::Resize(job) => Some(job.vmid),
            Self::Shutdown(job) => Some(job.vmid),
            Self::Start(job) => Some(job.vmid),
            Self::Stop(job) => Some(job.vmid),
            Self::DeleteVolume(_) | Self::Download(_) | Self::HaStop(_) | Self::Upload(_) => None,
        }
    }

    /// A lock the work needs could not be had in time; the text becomes the exit status.
    pub(crate) fn give_up(&mut self, state: &mut State, text: String) -> String {
        match self {
            Self::Clone(job) => job.give_up(state, text),
            _ => text,
        }
    }

    /// The work fails before it has begun; what the call itself had reserved is given back.
    pub(crate) fn abandon(&self, state: &mut State) {
        if let Self::Create(job) = self {
            state.drop_vm(job.vmid);
        }
    }

    /// Stops the work; the text becomes the exit status.
    pub(crate) fn interrupt(&mut self, state: &mut State, upid: &str) -> String {
        match self {
            Self::Clone(job) => job.interrupt(state),
            Self::Create(job) => job.interrupt(state),
            Self::Download(job) => job.interrupt(state, upid),
            _ => "received interrupt".into(),
        }
    }
}
