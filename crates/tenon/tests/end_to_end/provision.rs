//! Pods that fit nowhere become claims with a launch written into them, and are not planned for twice.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_api::{NodeClaim, launch_record, names};
use tenon_controllers::provision::{ProvisionContext, gather, to_claims, to_snapshot};
use tenon_engine::{check, plan};
use tenon_model::{InstanceType, LaunchStep, Plan, Seconds, VmIdRange};

use crate::bench::{eventually, from_json};
use crate::line::{Line, claims_become_nodes_and_go};

const NAMESPACE: &str = "provision";

/// Three pods of two cores each, which the real scheduler has found no place for.
async fn waiting_pods(admin: &Client) -> anyhow::Result<Api<Pod>> {
    let namespace: Namespace = from_json(json!({ "metadata": { "name": NAMESPACE } }))?;
    Api::all(admin.clone()).create(&PostParams::default(), &namespace).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), NAMESPACE);
    eventually("the default ServiceAccount exists", async || Ok(accounts.get_opt("default").await?)).await?;
    let pods: Api<Pod> = Api::namespaced(admin.clone(), NAMESPACE);
    for name in ["a", "b", "c"] {
        let pod: Pod = from_json(json!({
            "metadata": { "name": name },
            "spec": {
                // No node of another test has this label.
                "nodeSelector": { "karpenter.sh/nodepool": "default" },
                "containers": [{ "name": "c", "image": "registry.example/c:1", "resources": { "requests": { "cpu": "7", "memory": "4Gi" } } }],
            },
        }))?;
        pods.create(&PostParams::default(), &pod).await?;
    }
    eventually("the scheduler gave up on all three", async || {
        let list = pods.list(&ListParams::default()).await?.items;
        let gave_up = |pod: &&Pod| {
            let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|condition| condition.reason.as_deref() == Some("Unschedulable"))
        };
        Ok((list.iter().filter(gave_up).count() == 3).then_some(()))
    })
    .await?;
    Ok(pods)
}

/// The part of a plan that speaks of our pods.
fn ours(plan: &Plan) -> (usize, usize, Vec<String>) {
    let is_ours = |namespace: &str| namespace == NAMESPACE;
    let new = plan.new_nodes.iter().filter(|node| node.pods.iter().any(|pod| is_ours(&pod.namespace))).count();
    let placed = plan.placements.iter().filter(|placement| is_ours(&placement.pod.namespace)).count();
    let waiting = plan.unplaced.iter().filter(|unplaced| is_ours(&unplaced.pod.namespace));
    (new, placed, waiting.map(|unplaced| unplaced.reason.to_string()).collect())
}

/// Plans for the pods, writes the claims, and plans again.
pub(crate) async fn pods_become_claims(line: &Line<'_>) -> anyhow::Result<()> {
    let Line { admin, pve, .. } = *line;
    let pods = waiting_pods(admin).await?;
    let context = ProvisionContext {
        workload: admin.clone(),
        regions: BTreeMap::from([("lab".to_owned(), pve.clone())]),
        types: InstanceType::built_in(),
        ids: VmIdRange::default(),
    };
    // A kind that was just defined answers 429 to its first list, and asks to be asked again.
    let gathered = eventually("all kinds can be listed", async || Ok(gather(&context).await.ok())).await?;
    let snapshot = to_snapshot(&gathered, &context.types);
    let first = plan(&snapshot);
    assert_eq!(check(&snapshot, &first), []);
    // Two hosts have a template and 16 cores each: three pods of 7 cores fit on two VMs.
    assert_eq!(ours(&first), (2, 0, vec![]), "{first:#?}");

    let claims: Api<NodeClaim> = Api::all(admin.clone());
    let written =
        to_claims(&first, &gathered, context.ids, Seconds(1_000)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let (mut records, mut made_claims) = (Vec::new(), Vec::new());
    for claim in &written {
        let made = claims.create(&PostParams::default(), claim).await?;
        assert!(made.name_any().starts_with("default-") && made.finalizers() == [names::FINALIZER]);
        let record = launch_record::read(&made.annotations()[names::ANNOTATION_LAUNCH])?;
        assert_eq!(record.step, LaunchStep::Clone);
        assert_eq!(made.labels()[names::LABEL_ZONE], record.place.host.as_str());
        records.push((record.place.host.to_string(), record.template.get(), record.vmid.get()));
        made_claims.push(made);
    }
    records.sort();
    assert_eq!(
        records.iter().map(|(host, template, _)| (host.as_str(), *template)).collect::<Vec<_>>(),
        [("pve1", 9001), ("pve2", 9002)]
    );
    let mut ids: Vec<u32> = records.iter().map(|(_, _, id)| *id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [20_000, 20_001], "each claim has an id of its own");

    // The pods still wait, and the claims are on their way: nothing is planned twice, and the hosts are held.
    let snapshot = to_snapshot(&gather(&context).await?, &context.types);
    let second = plan(&snapshot);
    assert_eq!(ours(&second), (0, 3, vec![]), "{second:#?}");
    claims_become_nodes_and_go(line, &made_claims, &pods).await?;
    for claim in claims.list(&ListParams::default()).await?.items {
        let none = json!({ "metadata": { "finalizers": null } });
        claims.patch(&claim.name_any(), &kube::api::PatchParams::default(), &kube::api::Patch::Merge(none)).await?;
        claims.delete(&claim.name_any(), &DeleteParams::default()).await?;
    }
    pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}
