//! Everything that runs, as one thing that can be started, asked and stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenon_api::kube_objects::{DaemonSet, Node, Pod};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use kube::{Client, Resource as _, ResourceExt};
use tenon_api::{NodeClaim, names};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::addresses::AddressSurvey;
use crate::clock::Clock;
use crate::cluster_id::cluster_id;
use crate::context::Context;
use crate::cpus::CpuSurvey;
use crate::disruption::pod_events::{self, PodStates};
use crate::election::{Election, Lost};
use crate::events::Events;
use crate::first_boot::NodeSecrets;
use crate::follow::{KindWatch, follow, follow_related};
use crate::join::{Board, Reviewer};
use crate::memory::Memory;
use crate::metrics::{Metrics, OfLease};
use crate::panics::restarted;
use crate::regions::Regions;
use crate::settings::{CsrApprover, Settings};
use crate::stop::{Stop, stop};
use crate::vm_id_book::VmIdBook;
use crate::watched::{Changes, Watches, watch_all};
use crate::{
    claim, csr, deletion_cost, disruption, drift, garbage_collection, in_place, node_health, overlays, provision,
    static_pools, status, templates, token_sweep,
};

/// Wake-ups of claims that wait to be heard.
const WAKES: usize = 1024;

/// How often nodes are counted for whoever reads metrics.
const COUNTED_EVERY: Duration = Duration::from_secs(5);

/// The outside systems.
#[derive(Clone)]
pub struct Clients {
    /// The cluster whose pods need nodes.
    pub workload: Client,
    /// The cluster the controller itself lives in, if it is another one.
    pub home: Option<Client>,
    /// A client for each Proxmox cluster, by region.
    pub regions: Regions,
}

/// The controllers, ready to run.
pub struct Controllers {
    clients: Clients,
    settings: Settings,
    clock: Clock,
    metrics: Arc<Metrics>,
    probe: Probe,
    election: Option<Election>,
}

/// Whether the controllers work. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Probe {
    ready: Arc<AtomicBool>,
    waiting: Arc<AtomicBool>,
}

impl Probe {
    /// Whether everything that is watched was read once, or another is seen to lead: one who stands by does all that is
    /// asked of it, and a rollout that waited for it to do more would wait for ever.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) || self.waiting.load(Ordering::Relaxed)
    }
}

/// Why the controllers ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something that should run for ever did not.
    #[error("a controller task ended unexpectedly: {0}; please report this bug")]
    Ended(String),
    /// Another may work now; this process must end, and may begin again as one who waits.
    #[error("lost leadership")]
    Lost(#[from] Lost),
}

impl Controllers {
    /// Controllers that have not begun yet.
    pub fn new(clients: Clients, settings: Settings, clock: Clock) -> Controllers {
        let (metrics, probe) = (Arc::new(Metrics::with(clients.regions.meter.clone())), Probe::default());
        Controllers { clients, settings, clock, metrics, probe, election: None }
    }

    /// The same, but they work only while they lead.
    #[must_use]
    pub fn led_by(self, election: Election) -> Controllers {
        Controllers { election: Some(election), ..self }
    }

    /// Whether they work.
    pub fn probe(&self) -> Probe {
        self.probe.clone()
    }

    /// What they count.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Runs until `shutdown` ends, and then until what was begun is finished; if there is an election, only while it is
    /// won. One that is lost ends everything at once.
    pub async fn run(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), RunError> {
        let Some(mut election) = self.election.take() else { return self.work(shutdown, pending()).await };
        tokio::pin!(shutdown);
        let waiting = self.probe.waiting.clone();
        let lease = OfLease { name: election.lease_name().to_owned() };
        let metrics = self.metrics.clone();
        let leads = metrics.leads.get_or_create(&lease);
        leads.set(0_i64);
        let is_won = tokio::select! {
            biased;
            () = election.win(|| waiting.store(true, Ordering::Relaxed)) => true,
            () = &mut shutdown => false,
        };
        waiting.store(false, Ordering::Relaxed);
        leads.set(i64::from(is_won));
        let outcome = if is_won { self.work(shutdown, election.keep()).await } else { Ok(()) };
        leads.set(0_i64);
        if !matches!(outcome, Err(RunError::Lost(_))) {
            election.release().await;
        }
        outcome
    }

    async fn work(self, shutdown: impl Future<Output = ()>, lost: impl Future<Output = Lost>) -> Result<(), RunError> {
        let (stopper, stop) = stop();
        tokio::pin!(shutdown, lost);
        let cluster_id = tokio::select! {
            biased;
            id = cluster_id(&self.clients.workload, &self.settings) => id,
            () = &mut shutdown => return Ok(()),
            lost = &mut lost => return Err(lost.into()),
        };
        let mut parts = self.begin(cluster_id, &stop);
        let ended = tokio::select! {
            biased;
            () = &mut shutdown => Ok(()),
            ended = parts.join_next() => Err(RunError::Ended(match ended {
                Some(Err(error)) => error.to_string(),
                _ => "it returned".to_owned(),
            })),
            lost = &mut lost => Err(lost.into()),
        };
        stopper.tell();
        // What was begun is finished only by one who leads: nothing else tells a slow request from a late one.
        if !matches!(ended, Err(RunError::Lost(_))) {
            tokio::select! {
                biased;
                () = async { while parts.join_next().await.is_some() {} } => return ended,
                lost = &mut lost => tracing::warn!(error = %lost, "lost leadership during shutdown; stopping at once"),
            }
        }
        parts.shutdown().await;
        ended
    }

    fn begin(self, cluster_id: String, stop: &Stop) -> JoinSet<()> {
        let Controllers { clients: Clients { workload, home, regions }, settings, clock, metrics, probe, .. } = self;
        let secrets = NodeSecrets::new(&workload, home);
        tracing::info!(cluster_id, "started controllers");
        let (watched, watches) = watch_all(&workload, settings.owners());
        let events = Events::new(workload.clone(), clock);
        let memory = Memory::default();
        let ids = VmIdBook::new(workload.clone(), &settings.system_namespace);
        let needs_binding = settings.csr_approver == CsrApprover::KubeControllerManager;
        let board = Board::new(Arc::new(Reviewer::new(workload.clone(), needs_binding)));
        let context = Arc::new(Context {
            workload,
            secrets,
            regions,
            settings,
            cluster_id,
            clock,
            events,
            metrics,
            watched,
            memory,
            ids,
            survey: AddressSurvey::default(),
            cpus: CpuSurvey::default(),
            board,
        });
        let mut parts = JoinSet::new();
        let (disturbed, pod_event_nodes) = mpsc::channel(pod_events::QUEUE_LENGTH);
        let (wake, woken) = mpsc::channel(WAKES);
        follow_watches(&context, &mut parts, Wires { watches, disturbed, wake, woken }, stop);
        parts.spawn(pod_events::run(context.clone(), pod_event_nodes, stop.clone()));
        context.metrics.state.begin();
        context.metrics.show(&context);
        parts.spawn(once_ready(context.clone(), stop.clone(), move |context, stop| {
            probe.ready.store(true, Ordering::Relaxed);
            context.metrics.state.is_read();
            tracing::info!("caches synced");
            work_loops(context, stop)
        }));
        parts
    }
}

/// The loops that read what tenants write. One that panics begins again, and the others go on.
async fn work_loops(context: Arc<Context>, stop: Stop) {
    let again = |controller, begin: fn(Arc<Context>, Stop) -> BoxFuture<'static, ()>| {
        let (context, stop) = (&context, &stop);
        restarted(context, controller, stop.clone(), move || begin(context.clone(), stop.clone()))
    };
    tokio::join!(
        again("status", |context, stop| status::run(context, stop).boxed()),
        again("nodetemplateclass", |context, stop| templates::run(context, stop).boxed()),
        again("nodeoverlay.controller", |context, stop| overlays::run(context, stop).boxed()),
        again("nodepool.counter", |context, stop| status::counter::run(context, stop).boxed()),
        again("provisioner", |context, stop| provision::run(context, stop).boxed()),
        again("static.provisioning", |context, stop| static_pools::run(context, stop).boxed()),
        again("disruption", |context, stop| disruption::run(context, stop).boxed()),
        again("nodeclaim.disruption", |context, stop| drift::run(context, stop).boxed()),
        again("pod.deletioncost", |context, stop| deletion_cost::run(context, stop).boxed()),
        again("node.health", |context, stop| node_health::run(context, stop).boxed()),
        again("nodeclaim.inplaceupdate", |context, stop| in_place::run(context, stop).boxed()),
        again("regions", |context, stop| async move { context.regions.poll(stop).await }.boxed()),
        again("csr.approver", |context, stop| csr::run(context, stop).boxed()),
        again("metrics.node", |context, stop| count_nodes(context, stop).boxed()),
        again("nodeclaim.garbagecollection", |context, stop| garbage_collection::run(context, stop).boxed()),
        again("bootstraptoken", |context, stop| token_sweep::run(context, stop).boxed()),
    );
}

/// Keeps count of nodes that are there and claims whose node is not yet, and of conditions.
async fn count_nodes(context: Arc<Context>, mut stop: Stop) {
    let (nodes, claims) = (&context.watched.nodes, &context.watched.claims);
    let is_coming = |claim: &NodeClaim| nodes.get(&ObjectRef::new(&claim.name_any())).is_none();
    loop {
        context.metrics.state.count_nodes(nodes.len() + claims.state_filter(is_coming).len());
        context.metrics.look_at_conditions(&context);
        context.metrics.keep_pools(&pools_that_count(&context));
        context.metrics.keep_classes(&classes_that_count(&context));
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep(COUNTED_EVERY) => {}
        }
    }
}

/// The names of all NodePools, and of those that are gone but still have NodeClaims.
fn pools_that_count(context: &Context) -> BTreeSet<String> {
    let pools = context.watched.pools.state().into_iter().map(|pool| pool.name_any());
    let claims = context.watched.claims.state();
    let of_claims = claims.iter().filter_map(|claim| claim.labels().get(names::LABEL_NODEPOOL).cloned());
    pools.chain(of_claims).collect()
}

/// The names of all ProxmoxNodeClasses, and of those that are gone but still have NodeClaims.
fn classes_that_count(context: &Context) -> BTreeSet<String> {
    let classes = context.watched.classes.state().into_iter().map(|class| class.name_any());
    let claims = context.watched.claims.state();
    classes.chain(claims.iter().map(|claim| claim.spec.node_class_ref.name.clone())).collect()
}

/// Does something once every store was filled.
async fn once_ready<F, W>(context: Arc<Context>, mut stop: Stop, work: W)
where
    W: FnOnce(Arc<Context>, Stop) -> F,
    F: Future<Output = ()>,
{
    let stopping = stop.clone();
    tokio::select! {
        biased;
        () = context.watched.ready() => work(context.clone(), stopping).await,
        () = stop.wait() => {}
    }
}

/// The watches, and the ends of the channels to those who are woken by them.
struct Wires {
    watches: Watches,
    /// Nodes on which pods changed.
    disturbed: mpsc::Sender<String>,
    /// Claims to reconcile, because their nodes changed.
    wake: mpsc::Sender<String>,
    woken: mpsc::Receiver<String>,
}

fn follow_watches(context: &Arc<Context>, parts: &mut JoinSet<()>, wires: Wires, stop: &Stop) {
    let Wires { watches, disturbed, wake, woken } = wires;
    let Watches { pods, nodes, daemons, pools, classes, templates, claims, related } = watches;
    let pods_changed = context.watched.pods_changed.clone();
    let emptied = pods_changed.clone();
    let mut states = PodStates::default();
    let seen_by = context.clone();
    parts.spawn(follow(
        context.clone(),
        KindWatch { kind: "Pod".into(), changes: pods },
        stop.clone(),
        move |event: &Event<Pod>| {
            seen_by.metrics.pods.see(event, seen_by.clock.now());
            if let Some(node) = states.node_with_pod_event(event) {
                // A full queue means that others of this node are in it.
                let _ = disturbed.try_send(node);
            }
            pods_changed.notify_one();
        },
    ));
    parts.spawn(follow(
        context.clone(),
        KindWatch { kind: Node::kind(&()), changes: nodes },
        stop.clone(),
        move |event: &Event<Node>| {
            if let Event::Apply(node) | Event::Delete(node) = event {
                // A lost wake-up costs time: every claim is looked at again before long.
                let _ = wake.try_send(node.name_any());
                if provision::is_being_emptied(node) {
                    emptied.notify_one();
                }
            }
        },
    ));
    parts.spawn(follow(
        context.clone(),
        KindWatch { kind: DaemonSet::kind(&()), changes: daemons },
        stop.clone(),
        |_| {},
    ));
    for watch in related {
        parts.spawn(follow_related(context.clone(), watch, stop.clone()));
    }
    for_rules(context, parts, pools, stop);
    for_rules(context, parts, classes, stop);
    for_rules(context, parts, templates, stop);
    parts.spawn(claim::run(context.clone(), claims, woken, stop.clone()));
}

fn for_rules<K>(context: &Arc<Context>, parts: &mut JoinSet<()>, changes: Changes<K>, stop: &Stop)
where
    K: kube::Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let changed = context.watched.rules_changed.clone();
    // The status is our own word: only a new spec, or an object that comes or goes, is news.
    let mut generations = BTreeMap::new();
    parts.spawn(follow(
        context.clone(),
        KindWatch { kind: K::kind(&()), changes },
        stop.clone(),
        move |event: &Event<K>| {
            let is_news = match event {
                Event::Init | Event::InitDone => false,
                Event::Apply(object) | Event::InitApply(object) => {
                    let meta = object.meta();
                    let now = (meta.uid.clone(), meta.generation, meta.deletion_timestamp.is_some());
                    generations.insert(meta.name.clone(), now.clone()) != Some(now)
                }
                Event::Delete(object) => generations.remove(&object.meta().name).is_some(),
            };
            if is_news {
                changed.notify_one();
            }
        },
    ));
}
