//! `tenon controller`: which outside systems there are, what the operator decided, and how it ends.
//!
//! Flags and variables are the reference's where it has one, so that its manifests go on working. A variable that is
//! set to nothing counts as unset wherever a text or a file is expected: charts write such variables.

mod ccm;
pub(crate) mod clients;
mod compatibility;
mod connections;
mod csr_approver;
mod duration;
mod election;
mod endpoint;
#[cfg(test)]
mod flag_tests;
mod node_policy;
mod planning;
mod reload;
mod server;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{ArgAction, Args};
use tenon_api::instance_types_file;
use tenon_controllers::claim::{CloneLimits, is_this_computer};
use tenon_controllers::election::{Bid, Election, Fence};
use tenon_controllers::{Clients, Clock, Controllers, KubeMeter, Settings};
use tenon_model::{InstanceType, LaunchLimits, VmId, VmIdRange};
use tokio::signal::unix::{SignalKind, signal};

use crate::cloud_config::{self, CloudConfig};
use crate::plan;
use crate::telemetry::{self, LogFormat, LogLevel};
use ccm::Ccm;
use clients::Cluster;
use compatibility::CompatibilityArgs;
use csr_approver::Approver;
use election::ElectionArgs;
use endpoint::EndpointParser;
use node_policy::NodePolicyArgs;
use planning::PlanningArgs;
use reload::Reload;
use server::{Server, listen};

/// What still runs when everything has ended (a lookup of a name, say) is left behind after this long.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(1);

/// Threads that work at most, however many cores a host has. Controllers wait most of the time, and what an allocator keeps for
/// itself grows with each thread.
const WORKERS_MOST: usize = 4;

/// Longer than any uid; a description has room for 8192 characters.
const CLUSTER_ID_MAX: usize = 128;

/// Run the controllers: create nodes for pending pods and remove nodes that are no longer needed.
#[derive(Debug, Args)]
pub struct Controller {
    /// Kubeconfig of the cluster whose pods need nodes; unset: the in-cluster config, or else the user's kubeconfig.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", value_parser = OsStringValueParser::new())]
    kubeconfig: Option<OsString>,
    /// Kubeconfig of the cluster that holds the Lease and the Secrets of the controller; unset: the same cluster.
    #[arg(long, value_name = "FILE", env = "HOME_KUBECONFIG", value_parser = OsStringValueParser::new())]
    home_kubeconfig: Option<OsString>,
    /// Maximum time for a reply of the Kubernetes API; a request without reply fails, and later requests use new connections.
    /// Watches have their own limit.
    #[arg(long, value_name = "DURATION", env = "KUBE_REQUEST_TIMEOUT", default_value = "30s", value_parser = duration::parse_positive)]
    kube_request_timeout: Duration,
    /// File with the address and the credentials of each Proxmox cluster.
    #[arg(long, value_name = "FILE", env = "CLOUD_CONFIG", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    cloud_config: PathBuf,
    /// JSON file with instance types; unset: the built-in instance types.
    #[arg(long, value_name = "FILE", env = "INSTANCE_TYPES_FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    instance_types_file: Option<PathBuf>,
    /// First VM ID for new nodes.
    #[arg(long, value_name = "ID", env = "PROXMOX_VMID", default_value = "20000")]
    proxmox_vmid: VmId,
    /// Last VM ID for new nodes.
    #[arg(long, value_name = "ID", env = "PROXMOX_VMID_MAX", default_value = "29999")]
    proxmox_vmid_max: VmId,
    /// ID of the Kubernetes cluster, by which the controller recognizes its own VMs; must be unique among all clusters on the
    /// same Proxmox cluster; unset: the uid of the namespace kube-system.
    #[arg(long, value_name = "TEXT", env = "CLUSTER_ID", value_parser = cluster_id)]
    cluster_id: Option<String>,
    /// Address of the API server for new nodes, as https://host:port; unset: the server in ConfigMap kube-public/cluster-info.
    #[arg(long, value_name = "URL", env = "CLUSTER_ENDPOINT", value_parser = EndpointParser)]
    cluster_endpoint: Option<String>,
    /// How long the bootstrap token of a new VM is valid, at least 10m. The token is extended while its Node may still join, and
    /// deleted once the Node has registered.
    #[arg(long, value_name = "DURATION", env = "BOOTSTRAP_TOKEN_TTL", default_value = "1h", value_parser = token_ttl)]
    bootstrap_token_ttl: Duration,
    /// Namespace of the ConfigMap kube-root-ca.crt, whose certificate authority new nodes trust.
    #[arg(long, value_name = "NAME", env = "SYSTEM_NAMESPACE", default_value = "kube-system")]
    system_namespace: String,
    /// Port of /metrics; 0 selects a free port.
    #[arg(long, value_name = "PORT", env = "METRICS_PORT", default_value_t = 8080)]
    metrics_port: u16,
    /// Leave out metrics of single pods, Nodes, NodeClaims and NodePools.
    #[arg(long, value_name = "BOOL", env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "false")]
    disable_cluster_state_observability: bool,
    /// Port of /healthz and /readyz; 0 selects a free port.
    #[arg(long, value_name = "PORT", env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    health_probe_port: u16,
    /// Maximum time to collect pending pods before they are planned together.
    #[arg(long, value_name = "DURATION", env = "BATCH_MAX_DURATION", default_value = "10s", value_parser = duration::parse)]
    batch_max_duration: Duration,
    /// Pods are planned together once no new pending pod was seen for this time.
    #[arg(long, value_name = "DURATION", env = "BATCH_IDLE_DURATION", default_value = "1s", value_parser = duration::parse)]
    batch_idle_duration: Duration,
    /// Maximum time without progress in the launch of a VM; then the NodeClaim is deleted and its pods are planned again.
    #[arg(long, value_name = "DURATION", env = "LAUNCH_TIMEOUT", default_value = "5m", value_parser = duration::parse_positive)]
    launch_timeout: Duration,
    /// Maximum time a single Proxmox task of a launch may run, such as a full clone on slow storage.
    #[arg(long, value_name = "DURATION", env = "PROXMOX_TASK_TIMEOUT", default_value = "30m", value_parser = duration::parse_positive)]
    proxmox_task_timeout: Duration,
    /// Maximum number of clone tasks that run on one Proxmox host at the same time; further NodeClaims wait for their turn.
    #[arg(long, value_name = "COUNT", env = "MAX_CLONES_PER_HOST", default_value = "4")]
    max_clones_per_host: NonZero<usize>,
    /// Maximum number of clone tasks that write to one Proxmox storage at the same time.
    #[arg(long, value_name = "COUNT", env = "MAX_CLONES_PER_STORAGE", default_value = "4")]
    max_clones_per_storage: NonZero<usize>,
    /// Time that the guest of a drained node has to shut down before its VM is stopped; 0s stops it at once.
    #[arg(long, value_name = "DURATION", env = "VM_SHUTDOWN_TIMEOUT", default_value = "30s", value_parser = duration::parse)]
    vm_shutdown_timeout: Duration,
    /// Whether the cluster has a cloud controller manager. With `external`, a node takes pods once that has removed the taint
    /// node.cloudprovider.kubernetes.io/uninitialized; with `none`, Tenon removes the taint of its own nodes.
    #[arg(long, value_name = "CCM", env = "CCM", default_value = "external")]
    ccm: Ccm,
    /// Approve certificates of kubelets: only for the Node and the addresses of the NodeClaim whose VM asks. Use `true` without
    /// the ClusterRoleBindings by which kube-controller-manager approves any name. With `external`, another approver or a person
    /// approves them, and no such ClusterRoleBinding is required.
    #[arg(long, value_name = "APPROVER", env = "CSR_APPROVER", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "false")]
    csr_approver: Approver,
    #[command(flatten)]
    nodes: NodePolicyArgs,
    #[command(flatten)]
    planning: PlanningArgs,
    #[command(flatten)]
    election: ElectionArgs,
    /// Log level.
    #[arg(long, value_name = "LEVEL", env = "LOG_LEVEL", default_value = "info")]
    log_level: LogLevel,
    /// Log format.
    #[arg(long, value_name = "FORMAT", env = "LOG_FORMAT", default_value = "json")]
    log_format: LogFormat,
    #[command(flatten)]
    compatibility: CompatibilityArgs,
}

/// Runs until SIGINT or SIGTERM, and then until running requests are finished.
pub fn run(args: &Controller) -> anyhow::Result<()> {
    telemetry::install(args.log_level, args.log_format)?;
    let settings = settings(args)?;
    let bid = args.election.bid()?;
    let cloud = cloud(&args.cloud_config)?;
    introduce(args, &cloud);
    planning::introduce(&settings.planning);
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(WORKERS_MOST);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let outcome = runtime.block_on(serve(args, (settings, bid), &cloud));
    runtime.shutdown_timeout(LEFT_BEHIND_AFTER);
    outcome
}

async fn serve(args: &Controller, decided: (Settings, Bid), cloud: &CloudConfig) -> anyhow::Result<()> {
    // From here on a signal to stop is handled, also one that comes while things are still being set up.
    let end = end()?;
    let (settings, bid) = decided;
    let is_alone = args.election.is_disabled();
    let fence = if is_alone { Fence::open() } else { Fence::closed(Clock::Wall) };
    let layers = Layers { fence: fence.clone(), meter: KubeMeter::default() };
    let (clients, home) = clients(args, cloud, &bid.identity, &layers).await?;
    args.nodes.introduce(&clients.regions.clients());
    let reload = Reload::new(&args.cloud_config, cloud, (clients.regions.clone(), fence.clone()));
    let metrics_port = listen(args.metrics_port, "--metrics-port").await?;
    let health_port = listen(args.health_probe_port, "--health-probe-port").await?;
    let controllers = Controllers::new(clients, settings, Clock::Wall);
    let controllers = if is_alone {
        controllers
    } else {
        controllers.led_by(Election::new(home.unfenced(bid.timing.request())?, bid, fence))
    };
    controllers.metrics().show_requests(&layers.meter);
    if args.disable_cluster_state_observability {
        controllers.metrics().leave_out_cluster_state();
    }
    let metrics = Server::start(metrics_port, server::metrics(controllers.metrics()))?;
    let health = Server::start(health_port, server::health(controllers.probe()))?;
    tracing::info!(address = %metrics.address(), "serving metrics");
    tracing::info!(address = %health.address(), "serving health");
    let outcome = reload.beside(controllers.run(end)).await.context("controllers stopped");
    tokio::join!(metrics.shutdown(), health.shutdown());
    tracing::info!("stopped");
    outcome
}

/// Completes on SIGTERM or SIGINT.
fn end() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot handle SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot handle Ctrl-C")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("received signal to stop");
    })
}

fn introduce(args: &Controller, cloud: &CloudConfig) {
    let regions: Vec<&str> = cloud.regions.iter().map(|region| region.name.as_str()).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        regions = regions.join(","),
        vm_ids = format!("{}-{}", args.proxmox_vmid, args.proxmox_vmid_max),
        "starting controller"
    );
    if let Some(endpoint) = args.cluster_endpoint.as_deref().filter(|endpoint| is_this_computer(endpoint)) {
        tracing::warn!(endpoint, "--cluster-endpoint leads every VM to itself; give an address that VMs can reach");
    }
    for note in args.compatibility.notes() {
        tracing::warn!("{note}");
    }
    for note in &cloud.notes {
        tracing::warn!(file = %args.cloud_config.display(), "cloud config: {note}");
    }
}

fn settings(args: &Controller) -> anyhow::Result<Settings> {
    let ids = VmIdRange::new(args.proxmox_vmid, args.proxmox_vmid_max)
        .context("cannot use --proxmox-vmid and --proxmox-vmid-max")?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let standard = Settings::default();
    let mut planning = args.planning.options()?;
    let legacy_node_repair = planning::take_legacy_node_repair(&args.planning, &mut planning);
    let types = instance_types(args.instance_types_file.as_deref())?.unwrap_or(standard.types);
    Ok(Settings {
        cluster_id: given(&args.cluster_id),
        cluster_endpoint: given(&args.cluster_endpoint),
        bootstrap_token_ttl: args.bootstrap_token_ttl,
        system_namespace: given(&Some(args.system_namespace.clone())).unwrap_or(standard.system_namespace),
        types: types.into_iter().map(|size| size.priced_by(&planning.prices)).collect(),
        ids,
        batch_idle: args.batch_idle_duration,
        batch_max: args.batch_max_duration,
        launch_limits: LaunchLimits {
            stalled_s: whole_seconds(args.launch_timeout),
            task_s: whole_seconds(args.proxmox_task_timeout),
        },
        termination_grace_period: standard.termination_grace_period,
        ccm: args.ccm.into(),
        planning,
        legacy_node_repair,
        csr_approver: args.csr_approver.into(),
        clones: CloneLimits {
            per_host: args.max_clones_per_host.get(),
            per_storage: args.max_clones_per_storage.get(),
        },
        shutdown_within: args.vm_shutdown_timeout,
        node_policy: args.nodes.policy(),
        node_settings: args.nodes.settings()?,
    })
}

/// A token that expires before it can be extended would keep slow VMs from joining.
fn token_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration::parse_positive(text)?;
    let least = Settings::TOKEN_TTL_LEAST;
    if ttl >= least {
        Ok(ttl)
    } else {
        Err(format!("give at least {}m, so that slow VMs can join", least.as_secs() / 60))
    }
}

fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// The id stands in the description of every VM as one word of a line: with a blank in it no mark could be read again.
fn cluster_id(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_graphic();
    if text.chars().all(is_plain) && text.len() <= CLUSTER_ID_MAX {
        return Ok(text.to_owned());
    }
    Err(format!("use up to {CLUSTER_ID_MAX} ASCII letters, digits and punctuation marks, without blanks"))
}

pub(crate) fn instance_types(path: Option<&Path>) -> anyhow::Result<Option<Vec<InstanceType>>> {
    let Some(path) = path.filter(|path| !path.as_os_str().is_empty()) else { return Ok(None) };
    let text = plan::text(path, "instance types file", "--instance-types-file")?;
    let types = instance_types_file::read(&text);
    Ok(Some(types.with_context(|| format!("cannot use instance types file {}", path.display()))?))
}

pub(crate) fn cloud(path: &Path) -> anyhow::Result<CloudConfig> {
    if path.as_os_str().is_empty() {
        return Err(anyhow!("no cloud config is given; give its path with --cloud-config"));
    }
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        anyhow!("cannot read cloud config {shown}: {error}; check the path given with --cloud-config")
    })?;
    cloud_config::parse(&text, &|path| fs::read(path)).with_context(|| format!("cannot use cloud config {shown}"))
}

/// What is around every client of the Kubernetes API.
struct Layers {
    fence: Fence,
    meter: KubeMeter,
}

/// Every client is behind the fence; the election makes one of its own for the home cluster.
async fn clients(
    args: &Controller,
    cloud: &CloudConfig,
    identity: &str,
    layers: &Layers,
) -> anyhow::Result<(Clients, Cluster)> {
    let Layers { fence, meter } = layers;
    let workload = clients::cluster(args.kubeconfig.as_deref(), "--kubeconfig", identity).await?;
    let workload = workload.within(args.kube_request_timeout);
    let home = match args.home_kubeconfig.as_deref().filter(|path| !path.is_empty()) {
        Some(path) => {
            let home = clients::cluster(Some(path), "--home-kubeconfig", identity).await?;
            Some(home.within(args.kube_request_timeout))
        }
        None => None,
    };
    let setup = |region: &cloud_config::Region| {
        let setup = region
            .setup(fence)
            .with_context(|| format!("cannot create the Proxmox client of region {}", region.name))?;
        Ok((region.name.clone(), setup))
    };
    let regions = cloud.regions.iter().map(setup).collect::<anyhow::Result<BTreeMap<_, _>>>()?.into();
    let apart = home.as_ref().map(|home| home.metered(fence, meter)).transpose()?;
    let clients = Clients { workload: workload.metered(fence, meter)?, home: apart, regions };
    Ok((clients, home.unwrap_or(workload)))
}
