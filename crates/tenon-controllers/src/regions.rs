//! The Proxmox clusters: one poll of each feeds every loop. One that does not answer is left out of every look at once and
//! asked again in the background: nothing about the others waits for it.
//!
//! What changed from poll to poll is found out once, in `listing`: a loop that compares `facts` with those of its last pass
//! knows whether it would see anything new.

mod listing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use tenon_model::RegionCapacity;
use tenon_pve::{Client, Resources};
use tokio::time::Instant;

use self::listing::{Generations, Listing};
use crate::metrics::Meter;
use crate::proxmox_reads::ProxmoxReads;
use crate::status::{Estate, RegionTrouble, RegionView};
use crate::stop::Stop;

/// A listing comes in well under a second. An endpoint that takes longer than this is passed over for the next one …
/// A wrong token is refused only after three seconds, and a connection has five.
const LISTED_WITHIN: Duration = Duration::from_secs(6);

/// … and a region whose endpoints, or the queue before them, take longer than this is silent.
const SEEN_WITHIN: Duration = Duration::from_secs(13);

/// Loops that look at nearly the same moment share one listing. Proxmox itself is up to ten seconds behind.
const RECENT: Duration = Duration::from_secs(2);

/// Who asks for nothing that must be true this very moment does with what the last poll showed: a launch, which asks only who
/// has its name, and loops that compare what changes rarely.
const RECENT_POLL: Duration = Duration::from_secs(15);

/// A silent region is asked again this often …
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// … and one that answers is polled this often, if nobody looked at it meanwhile.
const POLLED_EVERY: Duration = Duration::from_secs(10);

/// Clients of every Proxmox cluster, by region, and what each showed last. Cheap to clone; all clones see the same regions,
/// which may be replaced while loops run. Whoever has begun with a client ends with it.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    known: Arc<RwLock<Arc<BTreeMap<String, Region>>>>,
    /// Templates and bridges as they were read last.
    pub(crate) reads: Arc<ProxmoxReads>,
    /// What is counted of requests and tasks.
    pub(crate) meter: Arc<Meter>,
    generations: Arc<Generations>,
}

/// What is known of every region, loads left out: of each the generation of its last listing, and why it shows nothing now.
/// Two that are equal say that in between nothing changed that a listing shows, but for loads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RegionFacts(BTreeMap<String, (u64, Option<RegionTrouble>)>);

/// One Proxmox cluster.
#[derive(Debug, Clone)]
struct Region {
    name: String,
    client: Client,
    rules: RegionCapacity,
    shown: Arc<Shown>,
    told: Told,
}

/// Who is told what changed from listing to listing.
#[derive(Debug, Clone)]
struct Told {
    generations: Arc<Generations>,
    meter: Arc<Meter>,
    reads: Arc<ProxmoxReads>,
}

/// How a Proxmox cluster is reached, and what VMs may have of it.
#[derive(Debug, Clone)]
pub struct RegionSetup {
    /// Its client.
    pub client: Client,
    /// How much of its hosts VMs may have.
    pub rules: RegionCapacity,
}

/// What becomes of a region when the cloud config changes.
#[derive(Debug, Clone)]
pub enum RegionChange {
    /// It stays as it is, with its connections.
    Keep,
    /// It is new, or reached in another way.
    Use(Box<RegionSetup>),
}

/// What a region showed last.
#[derive(Debug, Default)]
struct Shown {
    /// Held by whoever asks: others wait for the same answer.
    asking: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    /// The last answer, and when it was asked for.
    view: Option<(Instant, RegionView)>,
    /// The last listing there was.
    listing: Listing,
    /// When the last listing was asked for.
    listed_at: Option<Instant>,
    /// Whether it did not answer when it was asked last.
    is_silent: bool,
    /// How often it was asked.
    asked: u64,
}

impl Region {
    /// Every request to it is counted.
    fn new(name: &str, setup: RegionSetup, told: &Told) -> Region {
        let client = setup.client.observed(told.meter.of_region(name));
        Region { name: name.to_owned(), client, rules: setup.rules, shown: Arc::default(), told: told.clone() }
    }
}

impl From<BTreeMap<String, RegionSetup>> for Regions {
    fn from(setups: BTreeMap<String, RegionSetup>) -> Regions {
        let regions = Regions::default();
        let told = regions.told();
        let region = |(name, setup): (String, RegionSetup)| (name.clone(), Region::new(&name, setup, &told));
        let known: BTreeMap<String, Region> = setups.into_iter().map(region).collect();
        Regions { known: Arc::new(RwLock::new(Arc::new(known))), ..regions }
    }
}

impl From<BTreeMap<String, Client>> for Regions {
    fn from(clients: BTreeMap<String, Client>) -> Regions {
        let setup = |client| RegionSetup { client, rules: RegionCapacity::default() };
        let setups: BTreeMap<_, _> = clients.into_iter().map(|(name, client)| (name, setup(client))).collect();
        setups.into()
    }
}

impl Regions {
    fn known(&self) -> Arc<BTreeMap<String, Region>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn told(&self) -> Told {
        let Regions { generations, meter, reads, .. } = self.clone();
        Told { generations, meter, reads }
    }

    /// Replaces all regions: those that are not named are gone.
    pub fn replace(&self, wanted: BTreeMap<String, RegionChange>) {
        let (before, told) = (self.known(), self.told());
        let region = |(name, change): (String, RegionChange)| {
            let region = match change {
                RegionChange::Keep => before.get(&name)?.clone(),
                RegionChange::Use(setup) => Region::new(&name, *setup, &told),
            };
            Some((name, region))
        };
        let after: Arc<BTreeMap<String, Region>> = Arc::new(wanted.into_iter().filter_map(region).collect());
        self.meter.keep_regions(|region| after.contains_key(region));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = after;
    }

    /// The client of a region.
    pub fn get(&self, region: &str) -> Option<Client> {
        Some(self.known().get(region)?.client.clone())
    }

    /// The client of a region, or what to do if there is none.
    pub fn client(&self, region: &str) -> Result<Client, String> {
        let missing = || {
            let known = self.names().join(", ");
            format!("region {region} is not in the cloud config, which has {known}; add the region")
        };
        self.get(region).ok_or_else(missing)
    }

    /// The names of all regions, sorted.
    pub fn names(&self) -> Vec<String> {
        self.known().keys().cloned().collect()
    }

    /// The clients of all regions.
    pub fn clients(&self) -> BTreeMap<String, Client> {
        self.known().iter().map(|(name, region)| (name.clone(), region.client.clone())).collect()
    }

    /// How much of the hosts of each region VMs may have.
    pub(crate) fn capacity_rules(&self) -> BTreeMap<String, RegionCapacity> {
        self.known().iter().map(|(name, region)| (name.clone(), region.rules.clone())).collect()
    }

    /// Every region as it was at most two seconds ago. One that is silent is not asked.
    pub async fn look(&self) -> Estate {
        self.look_within(RECENT).await
    }

    /// Every region as it is now, for whoever is about to destroy something.
    pub(crate) async fn look_now(&self) -> Estate {
        self.look_within(Duration::ZERO).await
    }

    /// Every region as the last poll showed it.
    pub(crate) async fn look_polled(&self) -> Estate {
        self.look_within(RECENT_POLL).await
    }

    /// What is known of every region without asking, to be compared with what was known before. Whoever is about to look takes
    /// this first: what changes meanwhile is then new at the next comparison.
    pub(crate) fn facts(&self) -> RegionFacts {
        let facts = |(name, region): (&String, &Region)| {
            let last = region.shown.last();
            let trouble = last.view.as_ref().and_then(|(_, view)| view.as_ref().err().cloned());
            (name.clone(), (last.listing.facts, trouble))
        };
        RegionFacts(self.known().iter().map(facts).collect())
    }

    async fn look_within(&self, age: Duration) -> Estate {
        let known = self.known();
        let looks = known.iter().map(async |(name, region)| {
            let view = match region.silence() {
                Some(why) => Err(why),
                None => region.ask(age).await,
            };
            (name.clone(), view)
        });
        Estate { regions: join_all(looks).await.into_iter().collect() }
    }

    /// What a region showed at the last poll, for a launch. No listing is asked for each launch.
    pub(crate) async fn polled(&self, region: &str) -> Option<Arc<Resources>> {
        let region = self.known().get(region).filter(|region| !region.is_silent())?.clone();
        region.ask(RECENT_POLL).await.ok()
    }

    /// Whether a region did not answer when it was asked last.
    pub(crate) fn is_silent(&self, region: &str) -> bool {
        self.known().get(region).is_some_and(Region::is_silent)
    }

    /// How old the last listing of each region is; nothing of one that was never listed.
    pub(crate) fn ages(&self) -> BTreeMap<String, Duration> {
        let age = |region: &Region| Some(region.shown.last().listed_at?.elapsed());
        self.known().iter().filter_map(|(name, region)| Some((name.clone(), age(region)?))).collect()
    }

    /// What every region that ever answered showed last, without asking.
    pub(crate) fn last_listings(&self) -> BTreeMap<String, Arc<Resources>> {
        let listing = |region: &Region| region.shown.last().view.as_ref()?.1.as_ref().ok().cloned();
        self.known().iter().filter_map(|(name, region)| Some((name.clone(), listing(region)?))).collect()
    }

    /// Polls every region, silent ones more often, until told to stop.
    pub(crate) async fn poll(&self, mut stop: Stop) {
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return,
                () = tokio::time::sleep(ASKED_EVERY) => {}
            }
            let known = self.known();
            let age = |region: &Region| if region.is_silent() { Duration::ZERO } else { POLLED_EVERY };
            let asked = join_all(known.values().map(|region| region.ask(age(region))));
            tokio::select! {
                biased;
                () = stop.wait() => return,
                _ = asked => {}
            }
        }
    }
}

impl Region {
    /// Asks one region, unless an answer is young enough, and remembers what it says. One that refuses is not silent: that
    /// costs no time.
    async fn ask(&self, age: Duration) -> RegionView {
        let Region { client, shown, .. } = self;
        let (called_at, before) = (Instant::now(), shown.last().asked);
        let _asking = shown.asking.lock().await;
        if let Some(view) = shown.last().view_within(called_at, age, before) {
            return view;
        }
        let asked_at = Instant::now();
        shown.last().asked += 1;
        let listed = tokio::time::timeout(SEEN_WITHIN, client.within(LISTED_WITHIN).resources()).await;
        let (view, is_silent) = match listed {
            Ok(Ok(resources)) => (Ok(self.listed(resources)), false),
            Ok(Err(error)) => (Err(RegionTrouble::from(&error)), error.refusal().is_none()),
            Err(_) => {
                let why = format!("no reply within {} s; retrying", SEEN_WITHIN.as_secs());
                (Err(RegionTrouble::Silent(why)), true)
            }
        };
        let mut last = shown.last();
        last.listed_at = if view.is_ok() { Some(asked_at) } else { last.listed_at };
        (last.is_silent, last.view) = (is_silent, Some((asked_at, view.clone())));
        view
    }

    /// Takes a listing in place of the last one, and tells what changed. Nobody else does so now: whoever asks holds a lock.
    fn listed(&self, resources: Resources) -> Arc<Resources> {
        let Told { generations, meter, reads } = &self.told;
        let before = self.shown.last().listing.clone();
        let (listing, changes) = before.followed_by(resources, generations);
        reads.forget_guests(&self.name, &changes.guests);
        if before.facts > 0 {
            let counts = [("guest", changes.guests.len()), ("host", changes.hosts), ("storage", changes.storages)];
            meter.count_rows(&self.name, counts.into_iter().chain([("load", changes.loads)]));
        }
        let resources = listing.resources.clone();
        self.shown.last().listing = listing;
        resources
    }

    /// Whether it did not answer when it was asked last.
    fn is_silent(&self) -> bool {
        self.shown.last().is_silent
    }

    /// Why it is silent, if it is.
    fn silence(&self) -> Option<RegionTrouble> {
        let last = self.shown.last();
        last.view.as_ref().filter(|_| last.is_silent)?.1.as_ref().err().cloned()
    }
}

impl Last {
    /// The last answer, if it is young enough, or was asked for since this call, which makes it as good as another.
    fn view_within(&self, called_at: Instant, age: Duration, asked_before: u64) -> Option<RegionView> {
        let (at, view) = self.view.as_ref()?;
        let is_young = !age.is_zero() && called_at.saturating_duration_since(*at) <= age;
        (is_young || self.asked > asked_before).then(|| view.clone())
    }
}

impl Shown {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use tenon_pve::{Endpoint, Token, Transport};
    use tenon_sim::{Estate as SimulatedEstate, EstateConfig};
    use tokio::time::Instant;
    use tower::ServiceExt as _;

    use super::*;

    /// A simulated region that can be frozen, and how often it was asked.
    #[derive(Clone, Default)]
    struct Freezer {
        is_frozen: Arc<AtomicBool>,
        asked: Arc<AtomicUsize>,
    }

    impl Freezer {
        fn client(&self) -> Client {
            let (estate, freezer) = (SimulatedEstate::new(EstateConfig::default()), self.clone());
            let service = estate.service().then(move |outcome| {
                let freezer = freezer.clone();
                async move {
                    freezer.asked.fetch_add(1, Ordering::SeqCst);
                    if freezer.is_frozen.load(Ordering::SeqCst) {
                        std::future::pending::<()>().await;
                    }
                    outcome
                }
            });
            let never: fn(&Infallible) -> bool = |_| false;
            let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
            Client::new(
                vec![Endpoint::new("https://pve.example:8006").unwrap()],
                Transport::over(service, never),
                token,
            )
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_region_delays_one_look_by_seconds_and_no_other_and_comes_back_by_itself() {
        let (frozen, well) = (Freezer::default(), Freezer::default());
        let clients = BTreeMap::from([("frozen".to_owned(), frozen.client()), ("well".to_owned(), well.client())]);
        let regions = Regions::from(clients);
        let is_seen = |estate: &Estate, region: &str| estate.regions[region].is_ok();
        assert!(is_seen(&regions.look().await, "frozen"));
        frozen.is_frozen.store(true, Ordering::SeqCst);
        assert!(is_seen(&regions.look().await, "frozen"), "it was seen a moment ago");
        tokio::time::sleep(RECENT * 2).await;

        let begun = Instant::now();
        let estate = regions.look().await;
        assert_eq!(begun.elapsed().as_secs(), LISTED_WITHIN.as_secs());
        assert!(is_seen(&estate, "well") && !is_seen(&estate, "frozen"));
        let why = estate.regions["frozen"].clone().unwrap_err().to_string();
        assert!(why.contains("no reply within 6 s"), "{why}");
        for _ in 0..100 {
            assert!(is_seen(&regions.look().await, "well"));
        }
        assert_eq!((begun.elapsed().as_secs(), frozen.asked.load(Ordering::SeqCst)), (6, 2), "nobody waits again");

        let (stopper, stop) = crate::stop::stop();
        let asking = tokio::spawn({
            let regions = regions.clone();
            async move { regions.poll(stop).await }
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!is_seen(&regions.look().await, "frozen"));
        assert!((7..11).contains(&frozen.asked.load(Ordering::SeqCst)), "{:?}", frozen.asked);
        frozen.is_frozen.store(false, Ordering::SeqCst);
        tokio::time::sleep(ASKED_EVERY + LISTED_WITHIN).await;
        assert!(is_seen(&regions.look().await, "frozen"));
        stopper.tell();
        asking.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_listing_serves_everybody_who_looks_at_about_the_same_time() {
        let region = Freezer::default();
        let regions = Regions::from(BTreeMap::from([("lab".to_owned(), region.client())]));
        let asked = || region.asked.load(Ordering::SeqCst);
        join_all((0..50).map(|_| regions.look())).await;
        assert!(regions.polled("lab").await.is_some());
        assert_eq!(asked(), 1);
        regions.look_now().await;
        assert_eq!(asked(), 2, "who is about to destroy something looks now");
        tokio::time::sleep(RECENT * 2).await;
        assert_eq!(regions.ages()["lab"], RECENT * 2);
        assert!(regions.polled("lab").await.is_some());
        assert_eq!(asked(), 2, "a launch goes by the last poll");
        regions.look().await;
        assert_eq!(asked(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_by_path_until_their_region_is_taken_out_of_the_cloud_config() {
        let regions = Regions::from(BTreeMap::from([("lab".to_owned(), Freezer::default().client())]));
        let metrics = crate::metrics::Metrics::with(regions.meter.clone());
        let client = regions.client("lab").unwrap();
        client.resources().await.unwrap();
        let (host, id) = ("pve1".parse().unwrap(), tenon_model::VmId::try_from(20_000).unwrap());
        client.vm_config(&host, id).await.unwrap_err();
        let text = metrics.text();
        let of = |path: &str| format!("region=\"lab\",method=\"GET\",path=\"{path}\"");
        for line in [
            format!("tenon_pve_request_duration_seconds_count{{{}}} 1", of("/cluster/resources")),
            format!("tenon_pve_request_duration_seconds_count{{{}}} 1", of("/nodes/{node}/qemu/{vmid}/config")),
            format!("tenon_pve_errors_total{{{},error=\"NotFound\"}} 1", of("/nodes/{node}/qemu/{vmid}/config")),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
        regions.replace(BTreeMap::from([("lab".to_owned(), RegionChange::Keep)]));
        assert!(metrics.text().contains("tenon_pve_"));
        regions.replace(BTreeMap::new());
        assert!(!metrics.text().contains("tenon_pve_"), "{}", metrics.text());
    }

    #[tokio::test(start_paused = true)]
    async fn a_region_that_nobody_looks_at_is_polled_every_ten_seconds() {
        let region = Freezer::default();
        let regions = Regions::from(BTreeMap::from([("lab".to_owned(), region.client())]));
        let (stopper, stop) = crate::stop::stop();
        let polling = tokio::spawn({
            let regions = regions.clone();
            async move { regions.poll(stop).await }
        });
        tokio::time::sleep(Duration::from_secs(121)).await;
        let asked = region.asked.load(Ordering::SeqCst);
        assert!((8..=13).contains(&asked), "{asked}");
        assert!(regions.ages()["lab"] <= POLLED_EVERY + ASKED_EVERY);
        stopper.tell();
        polling.await.unwrap();
    }
}
