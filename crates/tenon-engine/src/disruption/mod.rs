//! Which nodes are disrupted, and why the others are not?
//!
//! `scanner` keeps what it read from one look to the next; `scan` looks at a snapshot once, method by method: `repair`,
//! `empty_nodes`, `drift` (with `terminate_first`), `multi_node`, `single_node`, `further` where they all find nothing, and last
//! `host_goal` (`pack_hosts`, `spread_hosts`, reasons in `host_stay`). What all methods ask of
//! a node is in `candidates`, what budgets leave in `pool_budgets`, whether moved pods find a place in `consolidation`, whether a
//! replacement costs less in `prices`, whether a move is worth it in `balanced`. `kept` and `blocked` have the reasons against
//! it. `deletion_cost` says which pods a ReplicaSet should delete first. `confirmation` decides a second time before something is done; `expected` is the cluster once a move is done.
//!
//! `emptiness` has the rules for empty nodes, and decides once more about one that is about to be deleted.

mod balanced;
mod blocked;
mod budget;
mod candidates;
mod command;
mod confirmation;
mod consolidation;
mod deletion_cost;
mod drift;
mod emptiness;
mod empty_nodes;
mod expected;
mod further;
mod host_goal;
mod host_stay;
mod kept;
mod multi_node;
mod node_health;
mod pack_hosts;
mod pool_budgets;
mod prices;
mod repair;
mod scan;
mod scanner;
mod single_node;
mod spread_hosts;
mod terminate_first;

pub use balanced::THRESHOLD;
pub use blocked::{DisruptionBlocked, Protected};
pub use budget::{AllowedDisruptions, InvalidBudget, UNBOUNDED, allowed_disruptions};
pub use candidates::prices;
pub use command::{Command, Destination, Method, Move, PoolScore, RemovedNode, Replacement, TerminateFirst};
pub use confirmation::Rejection;
pub use deletion_cost::{
    CostGroup, CostWrite, CostWrites, NodeDeletionCost, cost_writes, deletion_cost_state, deletion_costs,
};
pub use emptiness::{Consolidatable, EmptinessInput, EmptinessVerdict, judge_emptiness, validate_emptiness};
pub use expected::expected;
pub use host_stay::HostStay;
pub use kept::{BudgetLimit, Kept};
pub use node_health::{HealthClaim, HealthVerdict, NodeHealth, TooManyUnhealthy, judge_node_health};
pub use pool_budgets::{PoolDisruption, TightestBudget};
pub use scan::{Disruption, KeptNode};
pub use scanner::{Scanner, confirm, decide};
