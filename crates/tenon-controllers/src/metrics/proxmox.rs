//! How long do requests and tasks of Proxmox take, and which fail? By path, with placeholders for names and ids.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon_pve::{Exchange, Observer, TaskEnd, Upid};
use tokio::time::Instant;

use super::catalogue::tenon;
use super::exposition::Exposition;
use super::families::{Series, labels};

/// Tasks that are timed at once. More than that are not under way; whose end nobody saw is forgotten for the next.
const TASKS_TIMED: usize = 1024;

labels! {
    /// Requests of one kind.
    Requests { region: String, method: String, path: String }
    /// The same, as they failed.
    FailedRequests { region: String, method: String, path: String, error: String }
    /// Rows of listings that changed.
    ChangedRows { region: String, row: &'static str }
    /// Tasks of one kind.
    Tasks { region: String, kind: String, result: &'static str }
}

/// What is counted of Proxmox.
#[derive(Debug)]
pub(crate) struct Meter {
    requests: Series<Requests>,
    errors: Series<FailedRequests>,
    tasks: Series<Tasks>,
    rows: Series<ChangedRows>,
    /// When tasks were begun whose end is not seen yet.
    under_way: Mutex<BTreeMap<String, Instant>>,
}

/// What is counted of one region.
#[derive(Debug)]
struct InRegion {
    region: String,
    meter: Arc<Meter>,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            requests: Series::new(&tenon::PVE_REQUESTS),
            errors: Series::new(&tenon::PVE_ERRORS),
            tasks: Series::new(&tenon::PVE_TASKS),
            rows: Series::new(&tenon::ROWS_CHANGED),
            under_way: Mutex::default(),
        }
    }
}

impl Meter {
    /// Counts for a region.
    pub(crate) fn of_region(self: &Arc<Meter>, region: &str) -> Arc<dyn Observer> {
        Arc::new(InRegion { region: region.to_owned(), meter: self.clone() })
    }

    /// Forgets the regions that are not among these.
    pub(crate) fn keep_regions(&self, is_known: impl Fn(&str) -> bool) {
        let is_kept = |values: &[String]| values.first().is_some_and(|region| is_known(region));
        self.requests.retain(is_kept);
        self.errors.retain(is_kept);
        self.tasks.retain(is_kept);
        self.rows.retain(is_kept);
    }

    /// So many rows of the listing of a region changed.
    pub(crate) fn count_rows(&self, region: &str, changed: impl Iterator<Item = (&'static str, usize)>) {
        for (row, count) in changed {
            let region = region.to_owned();
            self.rows.get_or_create(&ChangedRows { region, row }).inc_by(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }

    /// Writes all of it down.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        self.requests.family.show(page);
        self.errors.family.show(page);
        self.tasks.family.show(page);
        self.rows.family.show(page);
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for InRegion {
    fn replied(&self, exchange: &Exchange<'_>) {
        let InRegion { region, meter } = self;
        let (region, method, path) = (region.clone(), exchange.method.to_string(), exchange.path.clone());
        if let Some(error) = exchange.error.clone() {
            let (region, method, path) = (region.clone(), method.clone(), path.clone());
            meter.errors.get_or_create(&FailedRequests { region, method, path, error }).inc();
        }
        meter.requests.get_or_create(&Requests { region, method, path }).observe(exchange.took.as_secs_f64());
    }

    fn task_began(&self, task: &Upid) {
        let mut under_way = self.meter.under_way();
        if under_way.len() >= TASKS_TIMED
            && let Some(oldest) = under_way.iter().min_by_key(|(_, began)| **began).map(|(task, _)| task.clone())
        {
            under_way.remove(&oldest);
        }
        under_way.insert(task.as_str().to_owned(), Instant::now());
    }

    fn task_ended(&self, task: &Upid, end: TaskEnd) {
        // Of a task that was begun before a restart nobody knows for how long it was waited for.
        let Some(began) = self.meter.under_way().remove(task.as_str()) else { return };
        let result = if end == TaskEnd::Done { "done" } else { "failed" };
        let of = Tasks { region: self.region.clone(), kind: task.kind().to_owned(), result };
        self.meter.tasks.get_or_create(&of).observe(began.elapsed().as_secs_f64());
    }
}
