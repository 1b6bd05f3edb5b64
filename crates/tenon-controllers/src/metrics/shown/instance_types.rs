//! What do instance types have, what do they cost, and which hosts had room for them when pods were last planned?

use std::collections::BTreeMap;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Host, InstanceType};

use super::amount;
use crate::context::Context;
use crate::metrics::catalogue::karpenter;
use crate::metrics::exposition::Exposition;

/// Writes down every instance type, and what it is on each host.
pub(super) fn show(context: &Context, page: &mut Exposition<'_>) {
    let planned = context.memory.planned_hosts();
    // Hosts of two regions may have one name, and the reference's labels do not tell regions apart.
    let mut hosts: BTreeMap<&str, Vec<&Host>> = BTreeMap::new();
    for host in planned.iter() {
        hosts.entry(host.place.host.as_str()).or_default().push(host);
    }
    for kind in &context.settings.types {
        let name = kind.name.as_str();
        for (metric, resource) in [(&karpenter::INSTANCE_TYPE_CPU, CPU), (&karpenter::INSTANCE_TYPE_MEMORY, MEMORY)] {
            if let Some(mut lines) = page.of(metric) {
                lines.number(&[name], amount(resource, kind.capacity.get(resource)));
            }
        }
        for (host, of_name) in &hosts {
            let values = [name, kind.capacity_type.as_str(), host];
            if let Some(mut lines) = page.of(&karpenter::OFFERING_PRICE) {
                lines.number(&values, kind.price().value());
            }
            if let Some(mut lines) = page.of(&karpenter::OFFERING_AVAILABLE) {
                let has_room = of_name.iter().any(|host| has_room(host, kind));
                lines.number(&values, f64::from(u8::from(has_room)));
            }
        }
    }
}

fn has_room(host: &Host, kind: &InstanceType) -> bool {
    let fits = |resource: &str| kind.capacity.get(resource) <= host.free.get(resource);
    host.closed.is_none() && fits(CPU) && fits(MEMORY)
}
