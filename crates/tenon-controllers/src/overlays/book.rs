//! What do plans go by? What was found of all NodeOverlays in one look: never half of the last one and half of this one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon_api::planning::EvaluatedOverlays;

/// What was published last; nothing of any pool before the first look.
#[derive(Debug, Default)]
pub(crate) struct OverlayBook {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    evaluated: Arc<EvaluatedOverlays>,
    epoch: u64,
}

impl OverlayBook {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found. Whether it is anything new.
    pub(crate) fn publish(&self, evaluated: EvaluatedOverlays) -> bool {
        let mut inner = self.lock();
        if *inner.evaluated == evaluated {
            return false;
        }
        *inner = Inner { evaluated: Arc::new(evaluated), epoch: inner.epoch.wrapping_add(1) };
        true
    }

    /// What plans go by.
    pub(crate) fn published(&self) -> Arc<EvaluatedOverlays> {
        self.lock().evaluated.clone()
    }

    /// Another number each time something new was published.
    pub(crate) fn epoch(&self) -> u64 {
        self.lock().epoch
    }
}
