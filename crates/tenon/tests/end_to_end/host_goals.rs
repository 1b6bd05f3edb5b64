//! Do nodes move to other hosts as the goal of their ProxmoxNodeClass wants it, over a restart, and then stay?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxNodeClass, names};

use crate::bench::quick_guests;
use crate::disrupting::uids;
use crate::ground::{Kind, scenarios};
use crate::many_vms::{container, estate};
use crate::world::{World, record_of};

/// Each move takes a launch and a drain, and the second decision fifteen seconds.
const PATIENCE: Duration = Duration::from_secs(600);

/// Nodes of two cores, and hosts for eight of them.
const SIX: [(&str, u32, u64); 6] =
    [("pve1", 16, 64), ("pve2", 16, 64), ("pve3", 16, 64), ("pve4", 16, 64), ("pve5", 16, 64), ("pve6", 16, 64)];

scenarios! {
    nodes_are_packed_over_a_restart_then_spread_and_then_stay,
}

async fn nodes_are_packed_over_a_restart_then_spread_and_then_stay(kind: Kind) -> anyhow::Result<()> {
    let estate = estate(&SIX[..2], |_| {})?;
    let Some(mut world) = World::over(kind, estate, Some(quick_guests())).await? else { return Ok(()) };
    world.spread_nodes((4, "100%")).await?;
    world.until_hosts_have(&[2, 2]).await?;
    world.estate.hold_tasks("qmclone");
    world.pursue("PackHosts").await?;
    let claims = world.until_within(PATIENCE, "both nodes of a host wait for their replacements", async || {
        let claims = world.claims().await?;
        let moving = claims.iter().filter(|claim| is_moving(claim)).count();
        Ok((moving == 2 && claims.len() == 6).then_some(claims))
    });
    let records = claims.await?.iter().map(record_of).collect::<anyhow::Result<Vec<_>>>()?;
    let ids: BTreeSet<u32> = records.iter().map(|record| record.vmid.get()).collect();
    assert_eq!(ids.len(), 6, "a VM ID for each replacement: {ids:?}");
    world.kill_controller()?;
    world.estate.release_tasks();
    world.start_controller()?;
    world.until_hosts_have(&[4]).await?;
    world.until_running("web", 4).await?;
    let note = world.until_event("DisruptionTerminating", "moves to another Proxmox host").await?;
    assert!(note.contains("replacement NodeClaim"), "{note}");
    world.stays_as_it_is(1).await?;
    world.pursue("SpreadHosts").await?;
    world.until_hosts_have(&[2, 2]).await?;
    world.stays_as_it_is(1).await?;
    let metrics = world.served("metrics", "/metrics")?;
    let counted = "karpenter_voluntary_disruption_decisions_total{decision=\"replace\",reason=\"underutilized\",\
                   consolidation_type=\"host-goal\"}";
    assert!(metrics.contains(counted), "{metrics}");
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn six_half_used_hosts_become_three_within_the_budget_and_are_evened_out_again() -> anyhow::Result<()> {
    let estate = estate(&SIX, |_| {})?;
    let Some(mut world) = World::over(Kind::Embedded, estate, Some(quick_guests())).await? else { return Ok(()) };
    world.spread_nodes((18, "10%")).await?;
    world.until_hosts_have(&[3; 6]).await?;
    // Without a goal nothing moves.
    world.stays_as_it_is(10).await?;
    world.pursue("PackHosts").await?;
    let mut most = 0;
    world
        .until_within(10 * PATIENCE, "three hosts are free", async || {
            let claims = world.claims().await?;
            most = most.max(claims.iter().filter(|claim| is_moving(claim)).count());
            Ok((world.counts().len() == 3 && claims.len() == 18 && world.vms().len() == 18).then_some(()))
        })
        .await?;
    assert!((1..=2).contains(&most), "{most} nodes moved at once, and the budget is 10 % of 18");
    world.stays_as_it_is(30).await?;
    world.until_running("web", 18).await?;
    world.pursue("SpreadHosts").await?;
    world.until_hosts_have(&[3; 6]).await?;
    world.stays_as_it_is(10).await?;
    world.until_running("web", 18).await?;
    world.end().await
}

/// Whether a node is being moved to another host.
fn is_moving(claim: &NodeClaim) -> bool {
    claim.annotations().get(names::ANNOTATION_DISRUPTION).is_some_and(|record| record.contains("host-goal"))
}

impl World {
    /// Nodes of two cores with a pod each, on as many hosts as there are.
    async fn spread_nodes(&mut self, (count, budget): (u32, &str)) -> anyhow::Result<()> {
        self.add_template("debian-13").await?;
        self.add_class(json!({ "placementStrategy": { "hosts": "Spread" } })).await?;
        let small = json!([{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": ["c1.2VCPU-4GB"] }]);
        let class = json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" });
        self.add_pool(json!({
            "template": { "spec": { "requirements": small, "nodeClassRef": class } },
            "disruption": { "consolidateAfter": "1s", "budgets": [{ "nodes": budget }] },
        }))
        .await?;
        self.start_controller()?;
        self.deploy_pods(("web", count), container("1500m", "1Gi"), json!({})).await?;
        self.until_running("web", usize::try_from(count)?).await
    }

    async fn pursue(&self, goal: &str) -> anyhow::Result<()> {
        let placement = json!({ "hosts": Value::Null, "goal": goal });
        let patch = json!({ "spec": { "placementStrategy": placement } });
        let classes: Api<ProxmoxNodeClass> = Api::all(self.admin.clone());
        classes.patch("default", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// How many VMs each host has that has any, the fewest first.
    fn counts(&self) -> Vec<usize> {
        let mut hosts: BTreeMap<String, usize> = BTreeMap::new();
        for host in self.hosts_of_vms() {
            *hosts.entry(host).or_default() += 1;
        }
        let mut counts: Vec<usize> = hosts.into_values().collect();
        counts.sort_unstable();
        counts
    }

    /// Waits until hosts have so many VMs, and each of them is a node that stays.
    async fn until_hosts_have(&self, expected: &[usize]) -> anyhow::Result<()> {
        let total: usize = expected.iter().sum();
        let found = self.until_within(10 * PATIENCE, "hosts have as many VMs as they should", async || {
            let claims = self.claims().await?;
            let is_over = claims.len() == total && !claims.iter().any(is_moving);
            Ok((is_over && self.counts() == expected).then_some(()))
        });
        found.await
    }

    /// For so many minutes no node is created or removed.
    async fn stays_as_it_is(&self, minutes: u32) -> anyhow::Result<()> {
        let before = (uids(self).await?, self.clones().len());
        for _ in 0..minutes {
            self.let_pass(Duration::from_secs(60)).await?;
            assert_eq!((uids(self).await?, self.clones().len()), before, "{}", self.tail());
        }
        Ok(())
    }
}
