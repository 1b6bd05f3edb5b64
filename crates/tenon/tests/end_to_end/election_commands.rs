//! Two controllers, and the leader is killed in the middle of a command: does the other one finish it, within the budget at every instant?

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bench::quick_guests;
use crate::crash_commands::{Command, no_mark_is_left};
use crate::disrupting::{marked, uids};
use crate::election::{QUICK, two};
use crate::fleet::until_leads;
use crate::ground::Kind;
use crate::recorded::{Recorded, most_disrupted};
use crate::world::World;

/// Nodes wait for their replacements after this long: a move is decided twice, fifteen seconds apart.
const DECIDED: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_while_two_nodes_become_one_is_followed_by_one_that_finishes_it() -> anyhow::Result<()>
{
    followed(Command::MultiNode).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_while_it_replaces_nodes_of_a_static_pool_is_followed_by_one_that_finishes_it()
-> anyhow::Result<()> {
    followed(Command::StaticDrift).await
}

async fn followed(command: Command) -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    command.add_rules(&mut world).await?;
    let (first, second) = two(&world, &QUICK).await?;
    command.prepare(&world).await?;
    let (old, clones, bounds) = (uids(&world).await?, world.clones().len(), command.bounds());
    let mut audit = world.testbed()?.audit();
    audit.read()?;
    let recorded = Recorded::claims(&world).await?;
    world.estate.hold_tasks("qmclone");
    command.begin(&world, 1).await?;
    world
        .until_within(DECIDED, "nodes wait for their replacement", async || {
            let claims = world.claims().await?;
            Ok((claims.len() == old.len() + 1 && marked(&claims) == bounds.disrupted).then_some(()))
        })
        .await?;
    drop(first);
    world.estate.release_tasks();
    until_leads(&world, &second).await?;
    command.until_over(&world, &old).await?;
    assert_eq!(world.clones().len() - clones, bounds.clones, "{}", second.log());
    no_mark_is_left(&world, &second.log()).await?;
    let disrupted = most_disrupted(&recorded.end(&world).await?, command.pool());
    assert!(disrupted <= bounds.disrupted, "{disrupted} at once\n{}", second.log());

    let mut evicted: BTreeMap<String, usize> = BTreeMap::new();
    for event in audit.read()? {
        let pod = event.object_ref.filter(|object| object.resource == "pods" && object.subresource == "eviction");
        if let (Some(pod), true) = (pod, event.response_status.is_some_and(|status| status.code < 300)) {
            *evicted.entry(pod.name).or_default() += 1;
        }
    }
    assert!(evicted.values().all(|times| *times == 1) && evicted.len() == bounds.evictions, "{evicted:?}");
    drop(second);
    world.end().await
}
