//! The Proxmox clusters, and which of them are silent. One that does not answer is left out of every look at once and asked
//! again in the background: nothing about the others waits for it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tenon_pve::Client;

use crate::status::{Estate, RegionTrouble, RegionView};
use crate::stop::Stop;

/// A listing comes in well under a second. An endpoint that takes longer than this is passed over for the next one …
/// A wrong token is refused only after three seconds, and a connection has five.
const LISTED_WITHIN: Duration = Duration::from_secs(6);

/// … and a region whose endpoints, or the queue before them, take longer than this is silent.
const SEEN_WITHIN: Duration = Duration::from_secs(13);

/// A silent region is asked again this often.
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// Clients of every Proxmox cluster, by region. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    clients: Arc<BTreeMap<String, Client>>,
    /// Regions that did not answer when they were asked last, and why.
    silent: Arc<Mutex<BTreeMap<String, RegionTrouble>>>,
}

impl From<BTreeMap<String, Client>> for Regions {
    fn from(clients: BTreeMap<String, Client>) -> Regions {
        Regions { clients: Arc::new(clients), silent: Arc::default() }
    }
}

impl Deref for Regions {
    type Target = BTreeMap<String, Client>;

    fn deref(&self) -> &BTreeMap<String, Client> {
        &self.clients
    }
}

impl Regions {
    /// Looks at every region that is not silent, all at once.
    pub async fn look(&self) -> Estate {
        let looks = self.clients.iter().map(async |(region, client)| {
            let silent = self.silent().get(region).cloned();
            let view = match silent {
                Some(why) => Err(why),
                None => self.ask(region, client).await,
            };
            (region.clone(), view)
        });
        Estate { regions: join_all(looks).await.into_iter().collect() }
    }

    /// Asks one region, and remembers if it does not answer. One that refuses is not silent: that costs no time.
    async fn ask(&self, region: &str, client: &Client) -> RegionView {
        let listed = tokio::time::timeout(SEEN_WITHIN, client.within(LISTED_WITHIN).resources()).await;
        let (view, is_silent) = match listed {
            Ok(Ok(resources)) => (Ok(resources), false),
            Ok(Err(error)) => (Err(RegionTrouble::from(&error)), error.refusal().is_none()),
            Err(_) => {
                let why = format!("no reply within {} s; retrying", SEEN_WITHIN.as_secs());
                (Err(RegionTrouble::Silent(why)), true)
            }
        };
        match &view {
            Err(why) if is_silent => drop(self.silent().insert(region.to_owned(), why.clone())),
            _ => drop(self.silent().remove(region)),
        }
        view
    }

    /// Whether a region did not answer when it was asked last.
    pub(crate) fn is_silent(&self, region: &str) -> bool {
        self.silent().contains_key(region)
    }

    fn silent(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, RegionTrouble>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks silent regions until they answer, and until told to stop.
    pub(crate) async fn ask_silent(&self, mut stop: Stop) {
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return,
                () = tokio::time::sleep(ASKED_EVERY) => {}
            }
            let silent: Vec<String> = self.silent().keys().cloned().collect();
            let known = silent.iter().filter_map(|region| Some((region, self.clients.get(region)?)));
            let asked = join_all(known.map(|(region, client)| self.ask(region, client)));
            tokio::select! {
                biased;
                () = stop.wait() => return,
                _ = asked => {}
            }
        }
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
            async move { regions.ask_silent(stop).await }
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
}
