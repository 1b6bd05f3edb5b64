//! Which broken nodes were repaired, and how?

use kube::ResourceExt;
use tenon_api::{NodeClaim, names};

use crate::claim::termination_mode;
use crate::context::Context;
use crate::metrics::UnhealthyDisrupted;

/// What is counted of a node that was repaired.
pub(crate) struct Repaired<'a> {
    /// The type of the condition that it was repaired for.
    pub(crate) condition: &'a str,
    /// How its pods were made to leave, unless only its NodeClaim says.
    pub(crate) mode: Option<&'static str>,
}

/// The NodeClaim of a broken node was deleted, or its VM is to be rebooted.
pub(crate) fn count_repaired(context: &Context, claim: &NodeClaim, Repaired { condition, mode }: Repaired<'_>) {
    let label = |name: &str| claim.labels().get(name).cloned().unwrap_or_default();
    let of = UnhealthyDisrupted {
        condition: snake_case(condition),
        nodepool: label(names::LABEL_NODEPOOL),
        capacity_type: label(names::LABEL_CAPACITY_TYPE),
        image_id: claim.status.as_ref().and_then(|status| status.image_id.clone()).unwrap_or_default(),
        termination_mode: mode.unwrap_or_else(|| termination_mode(claim)),
    };
    context.metrics.unhealthy_disrupted.get_or_create(&of).inc();
}

/// `MemoryPressure` as `memory_pressure`.
fn snake_case(text: &str) -> String {
    let mut words = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
