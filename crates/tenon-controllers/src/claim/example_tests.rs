//! The reference pages show what is really said: messages of a claim's pass, held to the examples of the tables.

use serde_json::json;
use tenon_api::condition_reasons::{self, ConditionReason};
use tenon_api::{NodeClaim, event_reasons, names};
use tenon_engine::claim::{Obstacle, Unmanaged};
use tenon_model::{LaunchRecord, Place, Seconds};

use super::await_node::still_awaited;
use super::gather::{Observed, observe};
use super::launch_failure::incomplete_clone;
use super::outcome::Outcome;
use super::readiness::awaited;
use super::reconcile::failed;
use super::registration::leave_alone;

fn observed() -> Observed {
    let class = json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" });
    let spec = json!({ "requirements": [], "nodeClassRef": class });
    let claim: NodeClaim =
        serde_json::from_value(json!({ "metadata": { "name": "default-x7", "uid": "u" }, "spec": spec })).unwrap();
    let state = observe(&claim, None);
    Observed { claim, node: None, state }
}

fn record() -> LaunchRecord {
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    LaunchRecord::new(place, "20003".parse().unwrap(), "9000".parse().unwrap(), Seconds(0))
}

/// The one condition of an outcome is the example of its reason.
fn is_example(outcome: &Outcome, reason: &ConditionReason) {
    let (_, verdict) = &outcome.conditions[0];
    assert_eq!((verdict.reason(), verdict.message()), (reason.name(), reason.example()));
}

#[test]
fn conditions_of_a_claim_read_like_their_examples() {
    let observed = observed();
    is_example(&still_awaited(&observed, None), &condition_reasons::NODE_NOT_FOUND);
    is_example(&leave_alone(&observed, &Unmanaged::Unplanned), &condition_reasons::NOT_PLANNED);
    let unreadable = Unmanaged::Unreadable("expected value at line 1 column 1".to_owned());
    is_example(&leave_alone(&observed, &unreadable), &condition_reasons::LAUNCH_RECORD_UNREADABLE);
    for (obstacle, reason) in [
        (Obstacle::NotReady, &condition_reasons::NODE_NOT_READY),
        (
            Obstacle::StartupTaint("node.cilium.io/agent-not-ready:NoExecute".to_owned()),
            &condition_reasons::STARTUP_TAINTS_EXIST,
        ),
        (
            Obstacle::EphemeralTaint("node.cloudprovider.kubernetes.io/uninitialized:NoSchedule".to_owned()),
            &condition_reasons::KNOWN_EPHEMERAL_TAINTS_EXIST,
        ),
        (Obstacle::MissingResource("nvidia.com/gpu".to_owned()), &condition_reasons::RESOURCE_NOT_REGISTERED),
    ] {
        is_example(&awaited(&observed, &obstacle), reason);
    }
}

#[test]
fn events_of_a_claim_read_like_their_examples() {
    let event = incomplete_clone(&record(), "20003".parse().unwrap(), "lock: clone");
    assert_eq!(event.note, event_reasons::INCOMPLETE_CLONE.example());
    let cause = "cannot read the configuration of VM 20003 on host pve1: no reply received";
    assert_eq!(failed(&observed().claim, cause).events[0].note, event_reasons::LAUNCH_FAILED.example());
    let unreadable = Unmanaged::Unreadable("expected value at line 1 column 1".to_owned());
    let note = leave_alone(&observed(), &unreadable).events.remove(0).note;
    assert_eq!(note, event_reasons::LAUNCH_RECORD_UNREADABLE.example());
}

#[test]
fn a_failure_of_a_node_that_runs_is_not_called_a_failed_launch() {
    let mut claim = observed().claim;
    let launched = json!([{ "type": "Launched", "status": "True", "reason": "Launched", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    claim.status = Some(serde_json::from_value(json!({ "conditions": launched })).unwrap());
    let outcome = failed(&claim, "no reply received");
    assert_eq!(outcome.events[0].note, "Cannot reconcile NodeClaim default-x7: no reply received; retrying");
    assert!(outcome.conditions.is_empty());
}
