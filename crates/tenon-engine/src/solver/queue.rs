//! Which pod is next? A pod that fails goes to the end of the queue; when all that are left failed in a row, that is it.

use std::collections::{BTreeMap, VecDeque};

use tenon_model::ReservedTrouble;

use super::Work;
use crate::base::is_out_of_use;
use crate::index::{PodClassIx, PodIx, TemplateIx};

/// Why a pod was not placed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// Nothing took a pod of its class, whatever it gave up.
    Nowhere(PodClassIx),
    /// It must wait for capacity that was set aside, in this pool.
    Reserved(TemplateIx, ReservedTrouble),
    /// There is no pool at all.
    NoPools,
}

impl Work<'_> {
    /// Places the pods.
    pub(crate) fn solve(&mut self) {
        self.failures = match self.base.pools.iter().all(|(pool, _)| is_out_of_use(pool)) {
            true => self.without_pools(),
            false => self.place_all(),
        };
    }

    fn place_all(&mut self) -> BTreeMap<PodIx, Failure> {
        let mut failures: BTreeMap<PodIx, Failure> = BTreeMap::new();
        let tried = std::mem::take(&mut self.tried);
        let mut queue: VecDeque<usize> = (0..tried.len()).collect();
        let mut pushed_at: Vec<usize> = vec![0; queue.len()];
        while let Some(next) = queue.front().copied() {
            if pushed_at[next] == queue.len() || self.needs_too_many {
                break;
            }
            queue.pop_front();
            let pod = tried[next];
            match self.place(pod) {
                Ok(()) => drop(failures.remove(&pod)),
                Err(failure) => {
                    failures.insert(pod, failure);
                    queue.push_back(next);
                    pushed_at[next] = queue.len();
                }
            }
        }
        self.tried = tried;
        failures
    }

    /// Tries a pod with all its wishes, and then with fewer and fewer of them.
    fn place(&mut self, pod: PodIx) -> Result<(), Failure> {
        let (_, class) = self.base.pods[pod];
        let mut last = Failure::NoPools;
        for step in &self.base.classes.classes[class].steps {
            last = Failure::Nowhere(class);
            if self.place_on_existing(step, pod) || self.place_on_open(step, pod) {
                return Ok(());
            }
            let waits = |(template, trouble)| Failure::Reserved(template, trouble);
            if self.place_on_new(step, pod).map_err(waits)? {
                return Ok(());
            }
        }
        Err(last)
    }

    /// Without a pool that could make nodes nothing is decided, as in Karpenter.
    fn without_pools(&self) -> BTreeMap<PodIx, Failure> {
        let nowhere = |pod: PodIx| match self.base.pools.is_empty() {
            true => Failure::NoPools,
            false => Failure::Nowhere(self.base.pods[pod].1),
        };
        self.tried.iter().map(|pod| (*pod, nowhere(*pod))).collect()
    }
}
