//! One address, several API servers behind it, and one of them accepts connections and never answers: does the work go on?

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::api::{Api, ListParams};
use tenon_api::NodeClaim;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::bench::quick_guests;
use crate::fleet::Member;
use crate::ground::Kind;
use crate::world::World;

/// The most from a pending pod to a NodeClaim, whatever a connection meets.
const GOES_ON_WITHIN: Duration = Duration::from_secs(30);

/// Each new connection goes to the next of three servers; the second is a black hole.
struct Balancer {
    port: u16,
    connections: Arc<AtomicUsize>,
    swallowed: Arc<AtomicUsize>,
    /// From now on the third server is the black hole, also for connections that stand.
    frozen: Arc<AtomicBool>,
    _accepting: JoinSet<()>,
}

impl Balancer {
    async fn before(server: &str) -> anyhow::Result<Balancer> {
        let target = server.rsplit('/').next().context("no address")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (connections, swallowed, frozen) = (Arc::default(), Arc::default(), Arc::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(
            listener,
            target,
            (Arc::clone(&connections), Arc::clone(&swallowed), Arc::clone(&frozen)),
        ));
        Ok(Balancer { port, connections, swallowed, frozen, _accepting: accepting })
    }

    /// The kubeconfig of a testbed, by way of this address.
    fn kubeconfig(&self, world: &World) -> anyhow::Result<PathBuf> {
        let testbed = world.testbed()?;
        let host = testbed.server().trim_start_matches("https://").split(':').next().context("no host")?;
        let text = std::fs::read_to_string(testbed.kubeconfig())?;
        let text = text.replace(testbed.server(), &format!("https://{host}:{}", self.port));
        anyhow::ensure!(text.contains(&self.port.to_string()), "the kubeconfig names another server");
        let path = testbed.dir().join("balanced.kubeconfig");
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

async fn accept(
    listener: TcpListener,
    target: String,
    (connections, swallowed, frozen): (Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicBool>),
) {
    let mut standing = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = connections.fetch_add(1, Ordering::SeqCst);
        let (target, swallowed, frozen) = (target.clone(), swallowed.clone(), frozen.clone());
        standing.spawn(async move {
            match number % 3 {
                1 if !frozen.load(Ordering::SeqCst) => swallow(client, &swallowed).await,
                2 => relay_until(client, &target, &frozen, &swallowed).await,
                _ => relay(client, &target).await,
            }
        });
    }
}

/// Holds a connection and never answers.
async fn swallow(client: TcpStream, swallowed: &AtomicUsize) {
    swallowed.fetch_add(1, Ordering::SeqCst);
    std::future::pending::<()>().await;
    drop(client);
}

async fn relay(mut client: TcpStream, target: &str) {
    if let Ok(mut server) = TcpStream::connect(target).await {
        // Either side may end it at any time.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

/// The connection stays, and nothing more comes through it.
async fn relay_until(mut client: TcpStream, target: &str, frozen: &AtomicBool, swallowed: &AtomicUsize) {
    if let Ok(mut server) = TcpStream::connect(target).await {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            () = until_set(frozen) => {}
        }
    }
    swallow(client, swallowed).await;
}

async fn until_set(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How long from a pod until there is a claim for it.
async fn until_claims(world: &World, count: usize) -> anyhow::Result<Duration> {
    let (begun, claims) = (Instant::now(), Api::<NodeClaim>::all(world.admin.clone()));
    world
        .until(&format!("there are {count} NodeClaims"), async || {
            Ok((claims.list(&ListParams::default()).await?.items.len() >= count).then_some(()))
        })
        .await?;
    Ok(begun.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_of_three_api_servers_a_black_hole_work_goes_on_within_30_s() -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    world.add_rules().await?;
    let balancer = Balancer::before(world.testbed()?.server()).await?;
    world.real()?.kubeconfig = Some(balancer.kubeconfig(&world)?);
    world.deploy("web", 1).await?;
    let begun = Instant::now();
    let member = Member::start(&world, "balanced", &["--kube-request-timeout=5s"]).await?;
    let waited = until_claims(&world, 1).await?;
    println!("the first NodeClaim is there {:?} after the start", begun.elapsed());
    assert!(waited < GOES_ON_WITHIN, "{waited:?}\n{}", member.log());
    world.until_running("web", 1).await?;
    assert!(balancer.swallowed.load(Ordering::SeqCst) > 0, "nothing met the black hole");

    // Another server freezes with connections that were good: of requests, the Lease and watches.
    balancer.frozen.store(true, Ordering::SeqCst);
    world.scale("web", 2).await?;
    let waited = until_claims(&world, 2).await?;
    println!("the second NodeClaim is there {waited:?} after another server froze");
    // A watch that stood is silent for 25 s at most, and is then begun again.
    assert!(waited < GOES_ON_WITHIN + Duration::from_secs(15), "{waited:?}\n{}", member.log());
    world.until_running("web", 2).await?;
    println!(
        "{} connections, {} swallowed",
        balancer.connections.load(Ordering::SeqCst),
        balancer.swallowed.load(Ordering::SeqCst)
    );
    assert!(!member.log().contains("panicked"), "{}", member.log());
    drop(member);
    world.end().await
}
