//! What does it cost to move a pod? Karpenter's scale, so that the same pods go first; a pod of a Job is dearer the nearer it is to
//! its end.

/// Costs far outside say no more than these, and one pod must not outweigh all others.
const LIMITS: (f64, f64) = (-10.0, 10.0);
/// Whoever uses the whole range of deletion costs moves the result by 16.
const DELETION_COST_UNIT: f64 = 134_217_728.0;
/// Whoever uses the whole range of priorities moves the result by 64, so the highest always reach the limit.
const PRIORITY_UNIT: f64 = 33_554_432.0;

/// A pod of a Job that is evicted begins again. Just before its end, all of its work would be lost: it costs as much as this many
/// other pods.
const LOST_WORK: f64 = 4.0;

/// A pod of a Job without `activeDeadlineSeconds` counts as near its end after an hour: few run longer, and whoever evicts it loses
/// that hour.
pub const JOB_LENGTH_S: u32 = 3600;

/// What a pod says about its worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodWorth {
    /// The deletion cost it is annotated with.
    pub deletion_cost: i32,
    /// Its priority.
    pub priority: i32,
    /// Of a pod of a Job: how many seconds it runs at most, or [`JOB_LENGTH_S`] if that is not known.
    pub job_length_s: Option<u32>,
}

impl PodWorth {
    /// What it costs to move the pod, from -10 to 10; 1 where it says nothing.
    pub fn eviction_cost(self) -> f64 {
        let sum = 1.0 + f64::from(self.deletion_cost) / DELETION_COST_UNIT + f64::from(self.priority) / PRIORITY_UNIT;
        sum.clamp(LIMITS.0, LIMITS.1)
    }

    /// The same for a pod that has run for so long. The work of a Job that would be lost comes on top; a pod that costs nothing, or less,
    /// goes on costing that, because somebody said so.
    pub fn eviction_cost_after(self, ran_for_nanos: Option<i64>) -> f64 {
        let cost = self.eviction_cost();
        let (Some(length), Some(ran_for)) = (self.job_length_s, ran_for_nanos) else { return cost };
        if cost <= 0.0 {
            return cost;
        }
        (cost + LOST_WORK * share(ran_for, length)).min(LIMITS.1)
    }
}

/// How much of its time a pod has run, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share of hours in nanoseconds is exact enough")]
fn share(ran_for_nanos: i64, length_s: u32) -> f64 {
    let seconds = ran_for_nanos.max(0) as f64 / 1e9;
    (seconds / f64::from(length_s.max(1))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    #[test]
    fn a_pod_of_a_job_is_dearer_to_move_the_longer_it_has_run() {
        let job = PodWorth { job_length_s: Some(600), ..PodWorth::default() };
        for (minutes, expected) in [(0, 1.0), (-3, 1.0), (5, 3.0), (10, 5.0), (90, 5.0)] {
            let found = job.eviction_cost_after(Some(minutes * MINUTE));
            assert!((found - expected).abs() < 1e-9, "{minutes} minutes: {found}");
        }
        assert_eq!(job.eviction_cost_after(None), 1.0, "it has not started, so nothing would be lost");
        assert_eq!(PodWorth::default().eviction_cost_after(Some(90 * MINUTE)), 1.0, "no Job");
    }

    #[test]
    fn a_pod_of_a_job_stays_within_the_limits_and_worthless_if_it_says_so() {
        let dear = PodWorth { priority: i32::MAX, job_length_s: Some(60), ..PodWorth::default() };
        assert_eq!(dear.eviction_cost_after(Some(MINUTE)), 10.0);
        let worthless = PodWorth { deletion_cost: i32::MIN, ..dear };
        let worthless = PodWorth { priority: 0, ..worthless };
        assert_eq!(worthless.eviction_cost_after(Some(MINUTE)), -10.0);
    }
}
