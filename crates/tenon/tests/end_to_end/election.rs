//! Several controllers, one leader: who works when one is killed, frozen, cut off or asked to end?

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testbed::{AuditEvent, Program};

use crate::bench::quick_guests;
use crate::disrupting::{marked, uids};
use crate::fleet::{Member, lease, until_leads};
use crate::ground::Kind;
use crate::world::World;

/// Times that make a test short, and leave a busy machine room.
pub(crate) const QUICK: [&str; 3] = ["--lease-duration=8s", "--renew-deadline=5s", "--retry-period=1s"];

/// What those say, and what a busy machine may take besides.
const LEASE: Duration = Duration::from_secs(8);
const SLACK: Duration = Duration::from_secs(5);

async fn world() -> anyhow::Result<Option<World>> {
    let Some(world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(None) };
    world.add_rules().await?;
    Ok(Some(world))
}

/// A leader, and one who stands by.
pub(crate) async fn two(world: &World, times: &[&str]) -> anyhow::Result<(Member, Member)> {
    let begun = Instant::now();
    let first = Member::start(world, "first", times).await?;
    first.until_said(world, "acquired leadership").await?;
    println!("the first leads after {:?}", begun.elapsed());
    let second = Member::start(world, "second", times).await?;
    second
        .until_said(world, &format!("waiting for leadership: {} is the leader", first.identity().unwrap_or_default()))
        .await?;
    Ok((first, second))
}

/// What one controller asked to be changed.
fn writes<'a>(events: &'a [AuditEvent], who: &Member) -> Vec<&'a AuditEvent> {
    let identity = who.identity().unwrap_or_default();
    let is_write = |event: &&AuditEvent| !["get", "list", "watch"].contains(&event.verb.as_str());
    events.iter().filter(|event| event.user_agent.contains(&identity)).filter(is_write).collect()
}

fn readyz(member: &Member) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(member.health().context("it does not say how it is")?)?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: tenon\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_is_followed_and_the_work_goes_on() -> anyhow::Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    let (first, mut second) = two(&world, &QUICK).await?;
    assert!(readyz(&second)?.starts_with("HTTP/1.1 200"), "whoever stands by is ready");
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    drop(first);
    let died = Instant::now();
    let spec = until_leads(&world, &second).await?;
    println!("the second leads {:?} after the first was killed", died.elapsed());
    assert!(died.elapsed() < LEASE + SLACK, "{:?}", died.elapsed());
    assert_eq!(spec.lease_transitions, Some(1));
    world.scale("web", 2).await?;
    world.until_running("web", 2).await?;
    println!("another pod runs {:?} after the first was killed", died.elapsed());
    assert_eq!(world.vms().len(), 2);
    second.signal("TERM")?;
    assert!(second.ended(SLACK * 2).await?.success(), "{}", second.log());
    world.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_while_it_replaces_a_node_is_followed_by_one_that_finishes_it() -> anyhow::Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    let (first, mut second) = two(&world, &QUICK).await?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let before = uids(&world).await?;
    world.estate.hold_tasks("qmclone");
    world.relabel("followed").await?;
    world
        .until("the node waits for its replacement", async || {
            let claims = world.claims().await?;
            Ok((claims.len() == 2 && marked(&claims) == 1).then_some(()))
        })
        .await?;
    drop(first);
    world.estate.release_tasks();
    until_leads(&world, &second).await?;
    world
        .until_within(LEASE * 15, "the node is replaced", async || {
            let now = uids(&world).await?;
            Ok((now.len() == 1 && now.is_disjoint(&before)).then_some(()))
        })
        .await?;
    world.until_running("web", 1).await?;
    assert_eq!((marked(&world.claims().await?), world.clones().len()), (0, 2), "{}", second.log());
    second.signal("TERM")?;
    assert!(second.ended(SLACK * 2).await?.success(), "{}", second.log());
    world.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_frozen_changes_nothing_when_it_wakes() -> anyhow::Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    let (mut first, second) = two(&world, &QUICK).await?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let mut audit = world.testbed()?.audit();
    first.signal("STOP")?;
    until_leads(&world, &second).await?;
    // Something to do for both, in the moment in which the first wakes.
    world.deploy("more", 1).await?;
    let before = audit.read()?;
    assert!(!writes(&before, &first).is_empty() && !writes(&before, &second).is_empty(), "both can be told apart");
    let woken = Instant::now();
    first.signal("CONT")?;
    let status = first.ended(SLACK * 2).await?;
    println!("the first ended {:?} after it woke", woken.elapsed());
    let log = first.log();
    assert_eq!(status.code(), Some(1), "{log}");
    let taken = format!("{} holds the Lease now", second.identity().unwrap_or_default());
    assert!(log.contains(&format!("lost leadership: {taken}")), "{log}");
    let said = format!("error: controllers stopped: lost leadership: {taken}");
    assert!(log.contains(&said), "{log}");
    assert!(!log.contains(&format!("{taken}: ")), "the cause is said twice: {log}");
    // Whoever leads now may have finished the launch that this process was in the middle of.
    assert!(!log.contains("bootstrap token was deleted"), "{log}");
    world.until_running("more", 1).await?;
    let after = audit.read()?;
    assert!(writes(&after, &first).is_empty(), "{:#?}", writes(&after, &first));
    assert_eq!(lease(&world).await?.lease_transitions, Some(1));
    drop(second);
    world.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_ends_by_itself() -> anyhow::Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    // With the times that people have.
    let (mut first, mut second) = two(&world, &[]).await?;
    world.testbed()?.pause(Program::KubeApiserver)?;
    let frozen = Instant::now();
    let outcome = first.ended(Duration::from_secs(20)).await;
    println!("the first ended {:?} after the API server froze", frozen.elapsed());
    tokio::time::sleep_until((frozen + Duration::from_secs(20)).into()).await;
    world.testbed()?.resume(Program::KubeApiserver)?;
    let (status, log) = (outcome?, first.log());
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("lost leadership: the Lease was not renewed for 10 s: no answer within"), "{log}");
    let spec = until_leads(&world, &second).await?;
    println!("the second leads {:?} after the API server froze", frozen.elapsed());
    assert_eq!(spec.lease_transitions, Some(1));
    second.signal("TERM")?;
    assert!(second.ended(SLACK * 2).await?.success(), "{}", second.log());
    world.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_asked_to_end_gives_the_lease_back() -> anyhow::Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    let (mut first, second) = two(&world, &QUICK).await?;
    let told = Instant::now();
    first.signal("TERM")?;
    let spec = until_leads(&world, &second).await?;
    println!("the second leads {:?} after the first was asked to end", told.elapsed());
    assert!(told.elapsed() < Duration::from_secs(3), "{:?}\n{}", told.elapsed(), first.log());
    assert_eq!(spec.lease_transitions, Some(1));
    assert!(first.ended(SLACK * 2).await?.success(), "{}", first.log());
    assert!(first.log().contains("released the Lease"), "{}", first.log());

    // The second is alone now. Frozen for longer than its Lease, it goes on, but reads the Lease before it does anything.
    let mut audit = world.testbed()?.audit();
    second.signal("STOP")?;
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    world.deploy("web", 1).await?;
    audit.read()?;
    second.signal("CONT")?;
    world.until_running("web", 1).await?;
    let after = audit.read()?;
    let identity = second.identity().unwrap_or_default();
    let of_lease = |event: &&AuditEvent| event.object_ref.as_ref().is_some_and(|object| object.resource == "leases");
    let looks = after.iter().filter(|event| event.user_agent.contains(&identity)).filter(of_lease);
    let first_look = looks.map(|event| event.verb.as_str()).next();
    assert_eq!(first_look, Some("get"), "{after:#?}");
    let changes = writes(&after, &second);
    ensure!(changes.first().is_some_and(of_lease) && changes.len() > 1, "{changes:#?}");
    assert_eq!(lease(&world).await?.lease_transitions, Some(1));
    drop(second);
    world.end().await
}
