//! After which outside call does a controller die? Counts what changes something, at the API server and at Proxmox, and lets
//! nothing through after the last call that it allows: nobody hears the answer to that one.
//!
//! Reads change nothing, and on events and what is said of NodePools and classes no command depends: to die after one of those is to
//! die after the change before it.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;

/// Parts of paths of requests that are written as changes are, and change nothing for a command.
const ASIDE: [&str; 5] =
    ["/events", "/authentication.k8s.io/", "/authorization.k8s.io/", "/nodepools/", "/karpenter.proxmox.sinextra.dev/"];

#[derive(Clone, Default)]
pub(crate) struct Fuse(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    burnt: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// How many more calls are let through; all, if there is no limit.
    left: Option<usize>,
    /// The call that was the last one.
    last: Option<String>,
    /// How often each pod was asked to leave.
    evictions: BTreeMap<String, usize>,
}

impl Fuse {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// So many calls are let through from now on, or all of them.
    pub(crate) fn set(&self, left: Option<usize>) {
        self.with(|state| (state.left, state.last) = (left, None));
    }

    /// When the last call was answered; what it was.
    pub(crate) async fn burnt(&self) -> String {
        loop {
            let told = self.0.burnt.notified();
            if let Some(last) = self.with(|state| state.last.clone()) {
                return last;
            }
            told.await;
        }
    }

    /// How often each pod was asked to leave since the last time that this was asked.
    pub(crate) fn take_evictions(&self) -> BTreeMap<String, usize> {
        self.with(|state| std::mem::take(&mut state.evictions))
    }

    /// A call begins. Of a controller that died nothing is heard any more.
    pub(crate) async fn begin(&self) {
        if self.with(|state| state.last.is_some()) {
            pending::<()>().await;
        }
    }

    /// A call was answered. After the last one nobody hears it.
    pub(crate) async fn end(&self, method: &Method, path: &str) {
        let is_aside = ASIDE.iter().any(|part| path.contains(part));
        if *method == Method::GET || is_aside {
            return self.begin().await;
        }
        self.with(|state| {
            if path.ends_with("/eviction") {
                *state.evictions.entry(path.to_owned()).or_default() += 1;
            }
            state.left = state.left.map(|left| left.saturating_sub(1));
            if state.left == Some(0) && state.last.is_none() {
                state.last = Some(format!("{method} {path}"));
                self.0.burnt.notify_waiters();
            }
        });
        self.begin().await;
    }

    /// The API server behind the fuse.
    pub(crate) fn client(&self, client: Client) -> Client {
        let fuse = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, fuse) = (client.clone(), fuse.clone());
            async move {
                fuse.begin().await;
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let answer = client.send(request).await;
                fuse.end(&method, &path).await;
                answer
            }
        });
        Client::new(service, "default")
    }
}
