//! The estate as others hold it: state behind a lock, moved forward by the runtime's clock.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::config::EstateConfig;
use crate::http::EstateService;
use crate::ledger::LedgerEntry;
use crate::serve::{Habits, Server, Tls};
use crate::state::State;
use crate::world::PowerEvent;

/// A Proxmox VE cluster in memory. Cheap to clone; all clones are the same estate.
#[derive(Clone, Debug)]
pub struct Estate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    start: Instant,
    wake: Arc<Notify>,
    driver: OnceLock<AbortHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.get() {
            driver.abort();
        }
    }
}

impl Inner {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.advance(self.start.elapsed());
        let result = act(&mut state);
        state.remember();
        result
    }
}

impl Estate {
    /// Makes an estate. Must be called inside a tokio runtime: workers run on its clock.
    pub fn new(config: EstateConfig) -> Self {
        let (state, wake) = (Mutex::new(State::new(config)), Arc::new(Notify::new()));
        let inner = Arc::new(Inner { state, start: Instant::now(), wake: wake.clone(), driver: OnceLock::new() });
        let driver = tokio::spawn(drive(Arc::downgrade(&inner), wake, inner.start));
        // The cell was made a moment ago, so it is empty.
        let _ = inner.driver.set(driver.abort_handle());
        Self { inner }
    }

    /// The API as a service in memory, without TLS or sockets.
    pub fn service(&self) -> EstateService {
        EstateService::new(self.clone())
    }

    /// Serves the API over HTTPS until the server is shut down or dropped.
    pub fn serve(&self, listener: tokio::net::TcpListener, tls: Tls) -> Server {
        Server::start(self.service(), listener, tls, Habits::PVE)
    }

    /// Every call so far, in the order of execution.
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.with(|state| state.ledger.iter().cloned().collect())
    }

    /// Hears of every VM that is started or stopped from now on.
    pub fn power_events(&self) -> broadcast::Receiver<PowerEvent> {
        self.with(|state| state.power.subscribe())
    }

    /// Time since the estate was made.
    pub fn elapsed(&self) -> Duration {
        self.inner.start.elapsed()
    }

    pub(crate) fn weak(&self) -> WeakEstate {
        WeakEstate(Arc::downgrade(&self.inner))
    }

    /// Looks at or changes the state as it is now.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let result = self.inner.with(act);
        self.inner.wake.notify_one();
        result
    }
}

/// An estate that may be gone: what runs inside its VMs does not keep it alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakEstate(Weak<Inner>);

impl WeakEstate {
    /// Changes the state, if there still is one.
    pub(crate) fn with(&self, act: impl FnOnce(&mut State)) {
        if let Some(inner) = self.0.upgrade() {
            Estate { inner }.with(act);
        }
    }
}

/// Sleeps from one due instant to the next, so that things happen while nobody calls.
async fn drive(inner: Weak<Inner>, wake: Arc<Notify>, start: Instant) {
    loop {
        let Some(next) = inner.upgrade().map(|inner| inner.with(|state| state.tasks.next_due())) else { return };
        match next {
            Some(due) => {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(start + due) => {}
                    () = wake.notified() => {}
                }
            }
            None => wake.notified().await,
        }
    }
}
