//! How everything that runs hears that it should end.

use tokio::sync::watch;

/// Heard by many, said once.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    told: watch::Receiver<bool>,
}

/// Says it. Dropping it says it too: nothing outlives whoever started it.
#[derive(Debug)]
pub(crate) struct Stopper {
    tell: watch::Sender<bool>,
}

/// A pair that has not been told yet.
pub(crate) fn stop() -> (Stopper, Stop) {
    let (tell, told) = watch::channel(false);
    (Stopper { tell }, Stop { told })
}

impl Stopper {
    /// Tells everyone.
    pub(crate) fn tell(&self) {
        self.tell.send_replace(true);
    }
}

impl Stop {
    /// Ends when it is time to end.
    pub(crate) async fn wait(&mut self) {
        // An error means that the one who would tell is gone.
        let _ = self.told.wait_for(|told| *told).await;
    }
}
