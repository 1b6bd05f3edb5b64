//! Which broken nodes were removed, and how?

use kube::ResourceExt;
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, names, unhealthy_conditions};

use crate::claim::termination_mode;
use crate::context::Context;
use crate::metrics::UnhealthyDisrupted;

/// The NodeClaim of a broken node was deleted once its replacement was ready; its pods have as long as it says.
pub(crate) fn count_unhealthy(context: &Context, claim: &NodeClaim, node: &Node) {
    let fault = unhealthy_conditions(node).first().map(|fault| fault.policy.condition);
    count(context, claim, (fault.unwrap_or_default(), termination_mode(claim)));
}

/// The NodeClaim of a broken node was deleted.
pub(super) fn count(context: &Context, claim: &NodeClaim, (condition, termination_mode): (&str, &'static str)) {
    let label = |name: &str| claim.labels().get(name).cloned().unwrap_or_default();
    let of = UnhealthyDisrupted {
        condition: snake_case(condition),
        nodepool: label(names::LABEL_NODEPOOL),
        capacity_type: label(names::LABEL_CAPACITY_TYPE),
        image_id: claim.status.as_ref().and_then(|status| status.image_id.clone()).unwrap_or_default(),
        termination_mode,
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
