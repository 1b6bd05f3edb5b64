//! What time it is. Everything that needs to know asks here, so that a test can hand out a time of its own.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tenon_model::Seconds;
use tokio::time::Instant;

use crate::moments::after;

/// Where the time comes from.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clock.
    Wall,
    /// The runtime's clock, counted from an hour of one's choice: it stands still where the runtime's does.
    Runtime {
        /// What time it was …
        epoch: Timestamp,
        /// … at this moment.
        origin: Instant,
    },
}

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::Wall => Timestamp::now(),
            Clock::Runtime { epoch, origin } => {
                SignedDuration::try_from(origin.elapsed()).map_or(*epoch, |passed| after(*epoch, passed))
            }
        }
    }

    /// The same in whole seconds, as records are written.
    pub fn seconds(&self) -> Seconds {
        Seconds(self.now().as_second())
    }

    /// The same as Kubernetes writes it: conditions have no fractions of a second.
    pub fn time(&self) -> Time {
        let now = self.now();
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }
}
