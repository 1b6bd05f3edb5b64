//! Who works, when several controllers run: the one that holds the Lease, and only while it holds it.
//!
//! Read in this order: `timing` (how long things take), `decide` (pure: take, renew, wait or step down), `lease` (what is
//! written), `driver` (who asks the API server), `fence` (what keeps a former leader from writing).
//!
//! The times fit together like this. A leader counts `renew deadline` from the moment it *sent* its last good renewal, and
//! writes nothing after that. Another takes over no sooner than `lease duration` from the moment it *saw* that renewal,
//! which is later than when it was sent. Both count on their own monotonic clock, so nobody's wall clock needs to be right.
//! What lies between the two times is what a request may take to land.
//!
//! What this cannot do: a request that left before the fence closed may land after another leads, and so may one that was
//! let through and then waited for its connection. Kubernetes' resourceVersion and VM ids that nobody used before are what
//! makes that harmless; the fence only makes it rare.

mod decide;
#[cfg(test)]
mod decide_tests;
mod driver;
#[cfg(test)]
mod driver_tests;
mod fence;
mod lease;
mod timing;

pub use decide::Lost;
pub use driver::{Bid, Election, LeaseName, NoRandomness, identity};
pub use fence::{Fence, Fenced, Withheld};
pub use timing::{Timing, TimingError};
