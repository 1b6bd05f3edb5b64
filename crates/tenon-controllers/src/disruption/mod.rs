//! Which nodes may be taken away, and why the others stay.
//!
//! Decisions first: `emptiness` (the verdict), `node` and `pods` (what is asked of each), `budget` (how many at once) with
//! `duration` (texts in units of the clock), `keep` (the reasons in words). Objects and the time are handed in, a verdict
//! comes out. Then `quiet` notes when pods come and go, and `pass` takes away what the verdict says.

mod budget;
mod duration;
mod emptiness;
mod keep;
mod node;
mod pass;
pub(crate) mod pods;
pub(crate) mod quiet;

pub use budget::{Allowed, UNBOUNDED, allowed};
pub use duration::{parse_duration, parse_duration_or_never, parse_go_duration};
pub use emptiness::{Consolidatable, EmptinessInput, EmptinessVerdict, PoolBudget, judge};
pub use keep::{Keep, Protected};
pub use node::NodeFacts;
pub(crate) use pass::run;
pub use pods::eviction_cost;
