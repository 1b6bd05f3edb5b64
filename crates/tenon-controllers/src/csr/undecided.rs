//! Which certificates has Tenon not decided about, and why? For whoever asks why a node has not joined.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::context::Context;
use crate::settings::CsrApprover;

/// Requests that are remembered at most. Beyond it all are forgotten: whatever is still undecided is looked at again soon.
const MOST: usize = 10_000;

/// Why each request is not decided, by its name.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    why: Mutex<BTreeMap<String, String>>,
}

impl Undecided {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, request: &str, why: impl Into<String>) {
        let mut all = self.lock();
        if all.len() >= MOST && !all.contains_key(request) {
            all.clear();
        }
        all.insert(request.to_owned(), why.into());
    }

    pub(super) fn forget(&self, request: &str) {
        self.lock().remove(request);
    }

    /// Why each is not decided, by its name.
    pub(super) fn all(&self) -> BTreeMap<String, String> {
        self.lock().clone()
    }
}

/// Why Tenon has not decided about each request, by its name; nothing if Tenon does not decide.
pub(crate) fn undecided(context: &Context) -> Option<BTreeMap<String, String>> {
    (context.settings.csr_approver == CsrApprover::Tenon).then(|| context.memory.undecided.all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_is_forgotten_and_a_flood_is_kept_within_bounds() {
        let undecided = Undecided::default();
        undecided.note("a", "no agent");
        assert_eq!(undecided.all()["a"], "no agent");
        undecided.forget("a");
        assert!(undecided.all().is_empty());
        for number in 0..=MOST {
            undecided.note(&number.to_string(), "x");
        }
        assert_eq!(undecided.lock().len(), 1);
    }
}
