//! One look at every pool, class and claim: hashes first, then what has drifted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use tenon_api::drift::{DriftInput, DriftStatus, KnownInstanceTypes, standing};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, event_reasons, hash, hash_stamp, names};

use super::proxmox::{ProxmoxCache, known_images};
use super::report::report;
use super::stamp::{Claims, Owner, stamp};
use super::writer::Writer;
use crate::context::{Context, is_our_class, is_ours};
use crate::events::Event;
use crate::metrics::{DriftedIn, Loop};
use crate::panics::{caught, note};
use crate::provision::requirements;
use crate::settled::{Inputs, REFRESHED_EVERY, Settled};
use crate::stop::Stop;

/// How often it is asked whether anything changed. If so, or once in a while, everything is looked through.
const EVERY: Duration = Duration::from_secs(5);

/// Compares until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut proxmox = ProxmoxCache::default();
    let mut settled = Settled::new("nodeclaim.disruption", REFRESHED_EVERY);
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        let inputs = Inputs::of(&context);
        if settled.skips(&context, &inputs) {
            continue;
        }
        let Looked { failures, is_done } = pass(&context, &mut proxmox).await;
        settled.note(inputs, is_done);
        if let Some(first) = failures.first() {
            context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.disruption" }).inc();
            tracing::warn!(
                failures = failures.len(),
                first,
                "cannot write all hashes and Drifted conditions; retrying"
            );
        }
    }
}

/// What claims are compared with.
struct Rules {
    pools: BTreeMap<String, Arc<NodePool>>,
    classes: BTreeMap<String, Arc<ProxmoxNodeClass>>,
}

/// What came of a look.
struct Looked {
    /// What could not be written.
    failures: Vec<String>,
    /// Whether all is written and was known.
    is_done: bool,
}

/// One look.
async fn pass(context: &Context, proxmox: &mut ProxmoxCache) -> Looked {
    let mut writer = Writer::new(&context.workload);
    let claims = context.watched.claims.state().into_iter().filter(|claim| is_ours(claim));
    let mut claims: Claims = claims.map(|claim| (claim.name_any(), claim)).collect();
    let rules = stamped(context, &mut claims, &mut writer).await;
    if !claims.is_empty() {
        proxmox.look(context, context.clock.now()).await;
    }
    let (mut drifted, mut panics) = (BTreeMap::new(), 0);
    for claim in claims.values().filter(|claim| claim.metadata.deletion_timestamp.is_none()) {
        // What panics about one claim is said of that one, and the others are looked at.
        let judged = caught(judge(context, &rules, claim, proxmox)).await.unwrap_or_else(|panic| {
            note(&context.metrics, "nodeclaim.disruption", &format!("NodeClaim {}", claim.name_any()), &panic);
            panics += 1;
            None
        });
        let Some(standing) = judged else { continue };
        report(context, &mut writer, claim, &standing).await;
        if let DriftStatus::Drifted(drift) = standing {
            let nodepool = claim.labels().get(names::LABEL_NODEPOOL).cloned().unwrap_or_default();
            *drifted.entry((nodepool, drift.reason.as_str())).or_insert(0) += 1;
        }
    }
    count(context, drifted);
    let is_done = writer.has_written_all() && !proxmox.is_incomplete() && panics == 0;
    Looked { failures: writer.failures(), is_done }
}

/// Every pool and class of ours with the hash it should have.
async fn stamped(context: &Context, claims: &mut Claims, writer: &mut Writer<'_>) -> Rules {
    let (mut pools, mut classes) = (BTreeMap::new(), BTreeMap::new());
    for (name, object) in by_name(context.watched.pools.state()) {
        if is_our_class(&object.spec.template.spec.node_class_ref) {
            let owner = Owner { stamp: hash_stamp::POOL, hash: hash::of_pool(&object), object };
            let is_its = |claim: &NodeClaim| claim.labels().get(names::LABEL_NODEPOOL) == Some(&name);
            let object = stamp(writer, owner, claims, is_its).await;
            pools.insert(name, object);
        }
    }
    for (name, object) in by_name(context.watched.classes.state()) {
        let owner = Owner { stamp: hash_stamp::CLASS, hash: hash::of_class(&object), object };
        let is_its = |claim: &NodeClaim| claim.spec.node_class_ref.name == name;
        let object = stamp(writer, owner, claims, is_its).await;
        classes.insert(name, object);
    }
    Rules { pools, classes }
}

/// Always in the same order, whatever order a store has.
fn by_name<K: ResourceExt>(objects: Vec<Arc<K>>) -> BTreeMap<String, Arc<K>> {
    objects.into_iter().map(|object| (object.name_any(), object)).collect()
}

/// What is to be said of a claim; nothing of one that belongs to no pool there is.
async fn judge(context: &Context, rules: &Rules, claim: &NodeClaim, proxmox: &mut ProxmoxCache) -> Option<DriftStatus> {
    let pool = rules.pools.get(claim.labels().get(names::LABEL_NODEPOOL)?)?;
    let class = rules.classes.get(&claim.spec.node_class_ref.name);
    if class.is_none() {
        let note = format!("ProxmoxNodeClass {} does not exist; create it", claim.spec.node_class_ref.name);
        context.events.publish(claim, &Event::new(&event_reasons::NODE_CLASS_RESOLUTION_ERROR, note)).await;
    }
    let now = context.clock.now();
    let images = match class {
        Some(class) => proxmox.images(context, claim, class).await,
        None => Some(Vec::new()),
    };
    let sizes = proxmox.sizes(claim, now);
    let is_size_asked = matches!(sizes, KnownInstanceTypes::Are(_));
    let wanted = requirements(&pool.spec.template.spec.requirements);
    let standing = standing(&DriftInput {
        claim,
        pool,
        wanted: &wanted,
        class: class.map(AsRef::as_ref),
        sizes,
        images: known_images(images.as_ref()),
    });
    if is_size_asked && is_size_fine(&standing) {
        proxmox.size_is_found(claim, now);
    }
    Some(standing)
}

/// Whether the size was looked for and found: an earlier reason hides whether it was.
fn is_size_fine(standing: &DriftStatus) -> bool {
    use tenon_api::drift::DriftReason::{ImageDrift, NodeClassDrift};
    match standing {
        DriftStatus::Current | DriftStatus::AsBefore => true,
        DriftStatus::Drifted(drift) => matches!(drift.reason, NodeClassDrift | ImageDrift),
    }
}

fn count(context: &Context, drifted: BTreeMap<(String, &'static str), i64>) {
    let gauge = &context.metrics.claims_drifted;
    gauge.clear();
    for ((nodepool, reason), number) in drifted {
        gauge.get_or_create(&DriftedIn { nodepool, reason }).set(number);
    }
}
