//! The embedded ground: API server, actors, estate, guests and controllers in one thread, on a clock that jumps.
//!
//! kill -9 is the end of the controllers' tasks where they stand, with nothing flushed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::body::Body;
use http::{Request, Response};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tenon_api::{instance_types_file, plan_options};
use tenon_controllers::{
    Clients, Clock, CloudControllerManager, Controllers, CsrApprover, Metrics, Probe, RegionChange, RegionSetup,
    Regions, RunError, Settings,
};
use tenon_model::{LaunchLimits, NodePolicy, RegionCapacity, VmIdRange};
use tenon_pve::{Endpoint, Password, Token, Transport};
use tenon_sim::{Actors, Cluster, ClusterConfig, Estate, EstateConfig};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::fuse::Fuse;
use crate::world::TOKEN;

/// Where guests are told to find the API server; they are connected in memory.
const SERVER: &str = "https://cluster.example:6443";

pub(crate) struct Embedded {
    pub(crate) cluster: Cluster,
    actors: Option<Actors>,
    controller: Option<Running>,
    /// The regions of the controllers that run, which may be replaced.
    live: Regions,
    gate: Arc<Mutex<Gate>>,
    token: Mutex<(String, String)>,
    /// How the next controllers reach the API server.
    pub(crate) workload: Client,
    /// After which call the next controllers die.
    pub(crate) fuse: Fuse,
    /// What becomes of requests to a second region of the next controllers, if there is one.
    pub(crate) beside: Option<Gate>,
    /// A second region of the next controllers, with its name.
    pub(crate) second: Option<(String, Estate)>,
    /// What the next controllers have switched on.
    pub(crate) gates: String,
    /// The repair policies of the next controllers, as the text of their flag; empty: the default ones.
    pub(crate) repair_policies: String,
    /// Whether the next controllers replace nodes on hosts that are offline, however many.
    pub(crate) repairs_offline_hosts: bool,
    /// Whether the next controllers start VMs that are stopped.
    pub(crate) starts_stopped_vms: bool,
    /// Whether the next controllers approve certificates.
    pub(crate) csr_approver: &'static str,
    /// How long a launch of the next controllers may stand still.
    pub(crate) launch_timeout: Option<Duration>,
    /// Where the guests of the next controllers find the API server.
    pub(crate) server: String,
    /// The id of the cluster, if not its own.
    pub(crate) cluster_id: Option<String>,
    /// The VM ids of the next controllers.
    pub(crate) ids: VmIdRange,
    /// What the next controllers may have of the hosts of the region of every world.
    pub(crate) rules: RegionCapacity,
    /// Whether the next controllers expect a cloud controller manager.
    pub(crate) ccm: CloudControllerManager,
    /// The text of the file of instance types that the next controllers have; empty: the built-in ones.
    pub(crate) types: String,
    /// Whether the next controllers bind VMs to CPUs.
    pub(crate) node_policy: NodePolicy,
    clock: Clock,
    log: Log,
    _logged: tracing::subscriber::DefaultGuard,
}

struct Running {
    task: JoinHandle<Result<(), RunError>>,
    stop: oneshot::Sender<()>,
    metrics: Arc<Metrics>,
    probe: Probe,
}

impl Embedded {
    /// A cluster with its actors. Another seed gives other names and uids.
    pub(crate) fn new(seed: u64) -> anyhow::Result<Embedded> {
        let config = ClusterConfig { seed, ..ClusterConfig::default() };
        let epoch = Timestamp::from_second(i64::try_from(config.epoch_s)?)?;
        let clock = Clock::Runtime { epoch, origin: Instant::now() };
        let cluster = Cluster::new(config)?;
        cluster.bind_bootstrappers();
        let actors = Some(Actors::start(cluster.client(), epoch));
        let log = Log::default();
        // One thread does everything, so what is said in it is said by this world.
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(log.clone())
            .finish();
        let _logged = tracing::subscriber::set_default(subscriber);
        let (gate, workload) = (Arc::default(), cluster.client());
        let token = Mutex::new((TOKEN.0.to_owned(), TOKEN.1.to_owned()));
        Ok(Embedded {
            cluster,
            actors,
            controller: None,
            live: Regions::default(),
            gate,
            token,
            workload,
            fuse: Fuse::default(),
            beside: None,
            second: None,
            gates: String::new(),
            repair_policies: String::new(),
            repairs_offline_hosts: false,
            starts_stopped_vms: false,
            csr_approver: "false",
            launch_timeout: None,
            server: SERVER.to_owned(),
            cluster_id: None,
            ids: VmIdRange::default(),
            rules: RegionCapacity::default(),
            ccm: CloudControllerManager::default(),
            types: String::new(),
            node_policy: NodePolicy::default(),
            clock,
            log,
            _logged,
        })
    }

    pub(crate) fn server() -> &'static str {
        SERVER
    }

    /// How Proxmox answers from now on.
    pub(crate) fn answer(&self, gate: Gate) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate;
    }

    /// The token the next controller starts with.
    pub(crate) fn configure(&self, (id, secret): (&str, &str)) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = (id.to_owned(), secret.to_owned());
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    /// Starts the controllers.
    pub(crate) fn start_controller(&mut self, estate: &Estate) -> anyhow::Result<()> {
        let client = self.fuse.client(self.workload.clone());
        self.live = self.regions(estate)?.into();
        let clients = Clients { workload: client, home: None, regions: self.live.clone() };
        let mut planning = plan_options::read(&format!("featureGates: '{}'", self.gates))?;
        planning.set("repair-policies", &self.repair_policies)?;
        planning.set("start-stopped-vms", if self.starts_stopped_vms { "true" } else { "false" })?;
        planning.set("repair-offline-hosts", if self.repairs_offline_hosts { "true" } else { "false" })?;
        let settings = Settings {
            cluster_endpoint: Some(self.server.clone()),
            cluster_id: self.cluster_id.clone(),
            batch_idle: Duration::from_millis(300),
            batch_max: Duration::from_secs(1),
            planning,
            csr_approver: match self.csr_approver {
                "true" => CsrApprover::Tenon,
                "external" => CsrApprover::External,
                _ => CsrApprover::KubeControllerManager,
            },
            launch_limits: self.launch_timeout.map_or_else(LaunchLimits::default, |limit| LaunchLimits {
                stalled_s: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
                ..LaunchLimits::default()
            }),
            ccm: self.ccm,
            ids: self.ids,
            types: match self.types.as_str() {
                "" => Settings::default().types,
                text => instance_types_file::read(text)?,
            },
            node_policy: self.node_policy,
            ..Settings::default()
        };
        let controllers = Controllers::new(clients, settings, self.clock);
        let (metrics, probe) = (controllers.metrics(), controllers.probe());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(controllers.run(async move {
            // Whoever would tell is gone: that is as good.
            let _ = stopped.await;
        }));
        self.controller = Some(Running { task, stop, metrics, probe });
        Ok(())
    }

    /// The controllers that run take over the token, and the region of every world or its absence.
    pub(crate) fn reconfigure(&self, estate: &Estate, has_lab: bool) -> anyhow::Result<()> {
        let all = self.regions(estate)?.into_iter().filter(|(name, _)| has_lab || name != "lab");
        let setup = |client| RegionChange::Use(Box::new(RegionSetup { client, rules: self.rules.clone() }));
        self.live.replace(all.map(|(name, client)| (name, setup(client))).collect());
        Ok(())
    }

    /// The region of every world, perhaps one beside it that has nothing, and perhaps a second one.
    fn regions(&self, estate: &Estate) -> anyhow::Result<BTreeMap<String, tenon_pve::Client>> {
        let mut regions = BTreeMap::from([("lab".to_owned(), self.pve(estate, self.gate.clone())?)]);
        if let Some(gate) = self.beside {
            let estate = Estate::new(EstateConfig::default());
            regions.insert("beside".to_owned(), self.pve(&estate, Arc::new(Mutex::new(gate)))?);
        }
        if let Some((name, estate)) = &self.second {
            regions.insert(name.clone(), self.pve(estate, Arc::default())?);
        }
        Ok(regions)
    }

    /// The real client, over memory that may be cut off.
    fn pve(&self, estate: &Estate, gate: Arc<Mutex<Gate>>) -> anyhow::Result<tenon_pve::Client> {
        let service = estate.service();
        let fuse = self.fuse.clone();
        let gate = tower::service_fn(move |request: Request<Body>| {
            let (service, gate) = (service.clone(), *gate.lock().unwrap_or_else(PoisonError::into_inner));
            let fuse = fuse.clone();
            async move {
                fuse.begin().await;
                match gate {
                    Gate::Open => {}
                    Gate::Closed => return Err(Unreachable),
                    Gate::Hangs => std::future::pending().await,
                    Gate::Panics => panic!("a bug that the test brought in"),
                }
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let answer: Result<Response<Body>, Infallible> = service.oneshot(request).await;
                fuse.end(&method, &path).await;
                answer.map_err(|never| match never {})
            }
        });
        let endpoint = Endpoint::new("https://pve.example:8006").context("not an endpoint")?;
        let (id, secret) = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let transport = Transport::over(gate, |_: &Unreachable| true);
        // A user has no `!` in the name.
        Ok(match id.contains('!') {
            true => tenon_pve::Client::new(vec![endpoint], transport, Token::new(&id, &secret)?),
            false => tenon_pve::Client::new(vec![endpoint], transport, Password::new(&id, &secret)?),
        })
    }

    /// The controllers' tasks end where they stand.
    pub(crate) fn kill_controller(&mut self) -> anyhow::Result<()> {
        self.controller.take().context("no controller runs")?.task.abort();
        Ok(())
    }

    pub(crate) fn is_controller_running(&self) -> anyhow::Result<bool> {
        Ok(!self.controller.as_ref().context("no controller was started")?.task.is_finished())
    }

    /// What a port of the controller would answer.
    pub(crate) fn served(&self, port: &str) -> anyhow::Result<String> {
        let running = self.controller.as_ref().context("no controller runs")?;
        Ok(match port {
            "metrics" => format!("HTTP/1.1 200 OK\n{}", running.metrics.text()),
            _ if running.probe.is_ready() => "HTTP/1.1 200 OK\nok".to_owned(),
            _ => "HTTP/1.1 503 Service Unavailable".to_owned(),
        })
    }

    /// Ends everything, controllers first, politely.
    pub(crate) async fn end(&mut self) -> anyhow::Result<()> {
        if let Some(Running { task, stop, .. }) = self.controller.take() {
            // One that has ended by itself hears nothing any more.
            let _ = stop.send(());
            task.await??;
        }
        if let Some(actors) = self.actors.take() {
            actors.shutdown().await;
        }
        Ok(())
    }
}

/// What becomes of a request to Proxmox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It is answered.
    #[default]
    Open,
    /// Nobody listens.
    Closed,
    /// It is taken, and no answer ever comes.
    Hangs,
    /// Whoever sends it panics, as if the client had a bug.
    Panics,
}

/// Nobody listens.
#[derive(Debug, thiserror::Error)]
#[error("connection refused")]
struct Unreachable;

/// What was logged, in memory.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}
