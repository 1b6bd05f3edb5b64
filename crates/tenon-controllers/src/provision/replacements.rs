//! Which nodes count as leaving because others come for them? Those whose replacements are all there: the pods of a node whose
//! replacement was lost stay where they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::{DisruptionRecord, NodeClaim, names};

/// The claims, of which those that count as leaving without a replacement do not say so any more.
pub(super) fn with_replacements(claims: &[Arc<NodeClaim>]) -> Vec<Arc<NodeClaim>> {
    let stays = |claim: &&Arc<NodeClaim>| claim.metadata.deletion_timestamp.is_none();
    let there = || claims.iter().filter(stays).map(|claim| claim.name_any()).collect::<BTreeSet<String>>();
    let mut known: Option<BTreeSet<String>> = None;
    let kept = |claim: &Arc<NodeClaim>| match DisruptionRecord::of(claim) {
        Some(Ok(record)) if record.is_leaving() => {
            let known = known.get_or_insert_with(there);
            match record.replacements.iter().all(|name| known.contains(name)) {
                true => claim.clone(),
                false => Arc::new(without_command(claim)),
            }
        }
        _ => claim.clone(),
    };
    claims.iter().map(kept).collect()
}

fn without_command(claim: &NodeClaim) -> NodeClaim {
    let mut claim = claim.clone();
    if let Some(annotations) = &mut claim.metadata.annotations {
        annotations.remove(names::ANNOTATION_DISRUPTION);
    }
    claim
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(name: &str, more: &Value) -> Arc<NodeClaim> {
        let class = json!({ "group": "g", "kind": "k", "name": "n" });
        let mut metadata = json!({ "name": name });
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let spec = json!({ "requirements": [], "nodeClassRef": class });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
    }

    #[test]
    fn a_node_leaves_only_as_long_as_all_its_replacements_are_there() {
        let record = r#"{"id":"1","method":"drift","reason":"Drifted","candidates":["a"],"replacements":["b"],"startedAt":0,"replacing":true}"#;
        let old = claim("a", &json!({ "annotations": { names::ANNOTATION_DISRUPTION: record } }));
        let says = |claims: &[Arc<NodeClaim>]| {
            with_replacements(claims)[0].annotations().contains_key(names::ANNOTATION_DISRUPTION)
        };
        assert!(says(&[old.clone(), claim("b", &json!({}))]));
        assert!(!says(std::slice::from_ref(&old)));
        assert!(!says(&[old.clone(), claim("b", &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }))]));
        assert!(
            Arc::ptr_eq(&with_replacements(&[old.clone(), claim("b", &json!({}))])[0], &old),
            "nothing is read again"
        );
    }
}
