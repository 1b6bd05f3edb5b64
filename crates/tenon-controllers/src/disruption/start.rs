//! A decided move as a command that can be carried out: its record, and its replacements with the names they will have.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tenon_api::{DisruptionRecord, NodeClaim, NodePool, RepairRecord, names};
use tenon_engine::disruption::{Command, Destination, Replacement};
use tenon_model::{NewNode, Plan};

use super::gather::Look;
use super::queue::Running;
use crate::context::Context;
use crate::provision::{Usage, to_claims};
use crate::static_pools::bare_claim;

/// What Kubernetes makes generated names of: no vowels, so no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Letters that tell the names of one pool's claims apart, as Kubernetes has it.
const RANDOM_LETTERS: usize = 5;

/// A generated name has at most this many letters before those.
const NAME_MOST: usize = 58;

/// A command from a move. A replacement that may not be created any more is an error: then nothing is begun.
pub(super) fn command_of(context: &Context, look: &Look, command: &Command) -> Result<Running, String> {
    let id = id_of(context, command);
    let mut nodes = planned_claims(context, look, command)?.into_iter();
    let mut planned = Vec::new();
    for (number, replacement) in command.replacements.iter().enumerate() {
        let claim = match replacement {
            Replacement::Planned(_) => nodes.next().ok_or_else(|| "no NodeClaim was planned".to_owned())?,
            Replacement::Template { pool } => template_claim(context, look, pool)?,
        };
        planned.push(named(claim, &id, number));
    }
    let record = DisruptionRecord {
        method: command.method.as_str().to_owned(),
        reason: command.method.reason(),
        candidates: command.removed.iter().map(|removed| removed.claim.clone()).collect(),
        replacements: planned.iter().map(ResourceExt::name_any).collect(),
        started_at: context.clock.now().as_second(),
        replacing: false,
        repair: command.repair.as_ref().map(|repair| RepairRecord {
            condition: repair.driver.condition.clone(),
            drain_bound_ns: repair.drain_bound.map(nanos),
        }),
        fingerprint: command.fingerprint,
        id,
    };
    let to_node = |to: &Destination| match to {
        Destination::Node(node) => Some(node.clone()),
        Destination::Replacement(_) => None,
    };
    let destinations: BTreeSet<String> = command.moves.iter().filter_map(|place| to_node(&place.to)).collect();
    Ok(Running { record, planned: Some(planned), destinations, failing: None })
}

fn nanos(bound: Duration) -> u64 {
    u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX)
}

/// The claims of all planned nodes, in their order. They are launched at the same time, so none may have the VM id or an address of
/// another.
fn planned_claims(context: &Context, look: &Look, command: &Command) -> Result<Vec<NodeClaim>, String> {
    let nodes = command.replacements.iter().filter_map(|replacement| match replacement {
        Replacement::Planned(node) => Some(NewNode::clone(node)),
        Replacement::Template { .. } => None,
    });
    let plan = Plan { new_nodes: nodes.collect(), ..Plan::default() };
    let mut usage = Usage::at(&look.snapshot);
    let claims = to_claims(&plan, &look.snapshot, &look.gathered).into_iter().zip(&plan.new_nodes);
    let allowed = claims.map(|(claim, node)| {
        let claim = claim.map_err(|why| why.to_string())?;
        let now = context.watched.pools.get(&ObjectRef::<NodePool>::new(&node.pool));
        usage.allows(pool_of(look, &node.pool)?, now.as_deref()).map_err(|why| why.to_string())?;
        usage.add(node, &look.snapshot);
        Ok(claim)
    });
    allowed.collect()
}

fn template_claim(context: &Context, look: &Look, pool: &str) -> Result<NodeClaim, String> {
    Ok(bare_claim(pool_of(look, pool)?, context.settings.termination_grace_period.as_deref()))
}

fn pool_of<'l>(look: &'l Look, name: &str) -> Result<&'l NodePool, String> {
    let pool = look.gathered.pools.iter().find(|pool| pool.name_any() == name);
    pool.map(AsRef::as_ref).ok_or_else(|| format!("NodePool {name} was deleted"))
}

/// The same for the same claims at the same moment, and for no others.
fn id_of(context: &Context, command: &Command) -> String {
    let mut hasher = DefaultHasher::new();
    context.cluster_id.hash(&mut hasher);
    context.clock.now().as_nanosecond().hash(&mut hasher);
    command.fingerprint.hash(&mut hasher);
    command.names().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The claim under a name of its own, with the command it belongs to.
fn named(mut claim: NodeClaim, id: &str, number: usize) -> NodeClaim {
    let mut stem = claim.metadata.generate_name.take().unwrap_or_default();
    stem.truncate(stem.floor_char_boundary(NAME_MOST));
    let mut hasher = DefaultHasher::new();
    (id, number).hash(&mut hasher);
    let mut rest = hasher.finish();
    for _ in 0..RANDOM_LETTERS {
        let count = LETTERS.len() as u64;
        let letter = usize::try_from(rest % count).ok().and_then(|place| LETTERS.get(place)).copied();
        stem.push(char::from(letter.unwrap_or(b'x')));
        rest /= count;
    }
    claim.metadata.name = Some(stem);
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(names::ANNOTATION_REPLACEMENT_FOR.to_owned(), id.to_owned());
    claim
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_as_kubernetes_generates_them_and_differ_by_command_and_number() {
        let claim = |stem: &str| -> NodeClaim {
            let class = json!({ "group": "g", "kind": "k", "name": "n" });
            let spec = json!({ "requirements": [], "nodeClassRef": class });
            serde_json::from_value(json!({ "metadata": { "generateName": stem }, "spec": spec })).unwrap()
        };
        let name = |stem: &str, id: &str, number| named(claim(stem), id, number);
        let first = name("default-", "1", 0);
        assert_eq!(first.name_any(), name("default-", "1", 0).name_any());
        assert_eq!(first.annotations()[names::ANNOTATION_REPLACEMENT_FOR], "1");
        let (first, second, other) =
            (first.name_any(), name("default-", "1", 1).name_any(), name("default-", "2", 0).name_any());
        assert!(first.starts_with("default-") && first.len() == "default-".len() + 5, "{first}");
        assert!(first != second && first != other && second != other);
        assert_eq!(name(&"a".repeat(80), "1", 0).name_any().len(), 63, "no longer than the name of a host may be");
    }
}
