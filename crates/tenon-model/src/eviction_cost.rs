//! What does it cost to move a pod? Karpenter's scale, so that the same pods go first.

/// Costs far outside say no more than these, and one pod must not outweigh all others.
const LIMITS: (f64, f64) = (-10.0, 10.0);
/// Whoever uses the whole range of deletion costs moves the result by 16.
const DELETION_COST_UNIT: f64 = 134_217_728.0;
/// Whoever uses the whole range of priorities moves the result by 64, so the highest always reach the limit.
const PRIORITY_UNIT: f64 = 33_554_432.0;

/// What a pod says about its worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodWorth {
    /// The deletion cost it is annotated with.
    pub deletion_cost: i32,
    /// Its priority.
    pub priority: i32,
}

impl PodWorth {
    /// What it costs to move the pod, from -10 to 10; 1 where it says nothing.
    pub fn eviction_cost(self) -> f64 {
        let sum = 1.0 + f64::from(self.deletion_cost) / DELETION_COST_UNIT + f64::from(self.priority) / PRIORITY_UNIT;
        sum.clamp(LIMITS.0, LIMITS.1)
    }
}
