//! The two HTTP ports of the controller: metrics and health probes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tenon_controllers::{Metrics, Probe};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Prometheus' text format, as the reference serves it.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whoever has not taken his answer by then does not get it.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// One port that answers.
pub(super) struct Server {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

/// Takes the port on every address; `flag` is where it was given.
pub(super) async fn listen(port: u16, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        .await
        .map_err(|error| anyhow!("cannot listen on port {port}: {error}; give another port with {flag}"))
}

/// Answers on /metrics.
pub(super) fn metrics(metrics: Arc<Metrics>) -> Router {
    let answer = async move || {
        // With tens of thousands of pods this takes a while, in which no task of the same worker would go on.
        let text = tokio::task::spawn_blocking(move || metrics.text()).await;
        let status = if text.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        (status, [(CONTENT_TYPE, TEXT_FORMAT)], text.unwrap_or_default())
    };
    Router::new().route("/metrics", get(answer))
}

/// Answers on /healthz and /readyz.
pub(super) fn health(probe: Probe) -> Router {
    let ready = async move || {
        if probe.is_ready() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "caches are not synced yet")
        }
    };
    Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(ready))
}

impl Server {
    /// Answers from now on.
    pub(super) fn start(listener: TcpListener, router: Router) -> anyhow::Result<Server> {
        let address = listener.local_addr().context("cannot read the local address of the listener")?;
        let (end, ended) = oneshot::channel();
        let serve = axum::serve(listener, router).with_graceful_shutdown(async move {
            // A sender that is gone means the same as one that spoke.
            let _ = ended.await;
        });
        Ok(Server { address, end, task: tokio::spawn(serve.into_future()) })
    }

    /// Where it answers.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more questions, and ends when those that were asked are answered.
    pub(super) async fn shutdown(self) {
        let _ = self.end.send(());
        let task = self.task.abort_handle();
        if tokio::time::timeout(LAST_ANSWERS, self.task).await.is_err() {
            task.abort();
        }
    }
}
