//! How far is a running command? Its NodeClaims, their Nodes and its replacements, from the caches or from the API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use tenon_api::{DisruptionRecord, NodeClaim, condition_reasons, names};
use tenon_engine::disruption_command::{Candidate, ObservedCommand, Stage, Successor, time_limit};
use tenon_model::Timestamp;

use super::taint::has_disrupted_taint;
use crate::claim::{ClaimError, is_true};
use crate::context::Context;

/// The objects of a command.
#[derive(Debug, Default)]
pub(super) struct CommandObjects {
    /// Its NodeClaims, those that go and those that come, by name.
    pub(super) claims: BTreeMap<String, Arc<NodeClaim>>,
    /// The Nodes of those that go, by name.
    pub(super) nodes: BTreeMap<String, Arc<Node>>,
}

impl CommandObjects {
    /// As the caches show them, with the claims that we created and they do not show yet.
    pub(super) fn cached(context: &Context, record: &DisruptionRecord, shown: &[Arc<NodeClaim>]) -> CommandObjects {
        let is_its = |claim: &&Arc<NodeClaim>| is_named(record, &claim.name_any());
        let claims = shown.iter().filter(is_its).map(|claim| (claim.name_any(), claim.clone())).collect();
        let node = |name: &String| Some((name.clone(), context.watched.nodes.get(&ObjectRef::new(name))?));
        CommandObjects { claims, nodes: record.candidates.iter().filter_map(node).collect() }
    }

    /// As the API server has them: before anything is changed, no cache is trusted.
    pub(super) async fn read(context: &Context, record: &DisruptionRecord) -> Result<CommandObjects, ClaimError> {
        let claims: Api<NodeClaim> = Api::all(context.workload.clone());
        let nodes: Api<Node> = Api::all(context.workload.clone());
        let mut objects = CommandObjects::default();
        for name in record.candidates.iter().chain(&record.replacements) {
            let failed = |source| ClaimError::kube(&format!("read NodeClaim {name}"), source);
            if let Some(claim) = claims.get_opt(name).await.map_err(failed)? {
                objects.claims.insert(name.clone(), Arc::new(claim));
            }
        }
        for name in &record.candidates {
            let failed = |source| ClaimError::kube(&format!("read Node {name}"), source);
            if let Some(node) = nodes.get_opt(name).await.map_err(failed)? {
                objects.nodes.insert(name.clone(), Arc::new(node));
            }
        }
        Ok(objects)
    }

    /// The command as the engine sees it, while so many nodes are disrupted.
    pub(super) fn observed(&self, record: &DisruptionRecord, is_planned: bool, nodes: usize) -> ObservedCommand {
        ObservedCommand {
            stage: if record.replacing { Stage::Replacing } else { Stage::Marking },
            candidates: record.candidates.iter().map(|name| self.candidate(record, name)).collect(),
            successors: record.replacements.iter().map(|name| self.successor(record, name)).collect(),
            is_planned,
            deadline: Timestamp::from(record.started()).after(time_limit(nodes)),
        }
    }

    /// A claim that goes.
    pub(super) fn candidate(&self, record: &DisruptionRecord, name: &str) -> Candidate {
        let Some(claim) = self.claims.get(name) else { return Candidate::Gone };
        if claim.metadata.deletion_timestamp.is_some() {
            return Candidate::Deleting;
        }
        let is_tainted = self.nodes.get(name).is_none_or(|node| has_disrupted_taint(node));
        match DisruptionRecord::of(claim) {
            Some(Ok(found)) if found.id != record.id => Candidate::Taken,
            Some(Ok(_)) if is_tainted && is_true(claim, &condition_reasons::DISRUPTION_REASON) => Candidate::Marked,
            Some(Ok(_)) => Candidate::Recorded,
            Some(Err(_)) | None => Candidate::Unrecorded,
        }
    }

    /// A claim that comes.
    pub(super) fn successor(&self, record: &DisruptionRecord, name: &str) -> Successor {
        let Some(claim) = self.claims.get(name) else { return Successor::Absent };
        let is_ours = claim.annotations().get(names::ANNOTATION_REPLACEMENT_FOR) == Some(&record.id);
        if !is_ours || claim.metadata.deletion_timestamp.is_some() {
            Successor::Lost
        } else if is_true(claim, &condition_reasons::INITIALIZED) {
            Successor::Initialized
        } else {
            Successor::Rising
        }
    }
}

fn is_named(record: &DisruptionRecord, name: &str) -> bool {
    record.candidates.iter().chain(&record.replacements).any(|known| known == name)
}
