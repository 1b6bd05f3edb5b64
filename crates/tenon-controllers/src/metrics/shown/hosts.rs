//! What do hosts have, what may the guests that run there use of it, and what is held for VMs that do not run yet?

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{HostName, Resources};
use tenon_pve::GuestRow;

use super::{Cluster, amount};
use crate::context::Context;
use crate::metrics::catalogue::{Metric, tenon};
use crate::metrics::exposition::Exposition;
use crate::provision::record_of;

/// Amounts of cores and bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    cpu: f64,
    memory: f64,
}

impl Size {
    fn of(cpu: Option<u64>, memory: Option<u64>) -> Size {
        Size { cpu: cpu.unwrap_or_default() as f64, memory: memory.unwrap_or_default() as f64 }
    }

    fn add(&mut self, other: Size) {
        self.cpu += other.cpu;
        self.memory += other.memory;
    }
}

/// Writes down every host of every region that was listed, and the clones that run there.
pub(super) fn show(context: &Context, cluster: &Cluster, page: &mut Exposition<'_>) {
    for (region, listing) in context.regions.last_listings() {
        let is_running = |guest: &&GuestRow| guest.status.as_deref() == Some("running") && !guest.template;
        let (mut used, mut running) = (BTreeMap::<&HostName, Size>::new(), BTreeSet::new());
        for guest in listing.guests.iter().map(AsRef::as_ref).filter(is_running) {
            used.entry(&guest.host).or_default().add(Size::of(guest.maxcpu, guest.maxmem));
            running.insert(guest.id);
        }
        let mut held: BTreeMap<HostName, Size> = BTreeMap::new();
        for claim in &cluster.claims {
            let Some(record) = record_of(claim).filter(|record| record.place.region == region) else { continue };
            if !running.contains(&record.vmid)
                && claim.metadata.deletion_timestamp.is_none()
                && let Some(kind) = context.instance_type_of(claim)
            {
                held.entry(record.place.host).or_default().add(size(&kind.capacity));
            }
        }
        for row in listing.hosts.iter() {
            let place = [region.as_str(), row.host.as_str()];
            write(page, (&tenon::HOST_CAPACITY, place), Size::of(row.maxcpu, row.maxmem));
            write(page, (&tenon::HOST_USED, place), used.get(&row.host).copied().unwrap_or_default());
            write(page, (&tenon::HOST_HELD, place), held.get(&row.host).copied().unwrap_or_default());
        }
    }
    for (metric, clones) in [
        (&tenon::CLONES_RUNNING, context.memory.clones.running()),
        (&tenon::CLONES_WAITING, context.memory.clones.waiting()),
    ] {
        let Some(mut lines) = page.of(metric) else { continue };
        for ((region, host), count) in clones {
            lines.number(&[region.as_str(), host.as_str()], count as f64);
        }
    }
}

fn size(resources: &Resources) -> Size {
    Size { cpu: amount(CPU, resources.get(CPU)), memory: amount(MEMORY, resources.get(MEMORY)) }
}

fn write(page: &mut Exposition<'_>, (metric, [region, host]): (&'static Metric, [&str; 2]), size: Size) {
    let Some(mut lines) = page.of(metric) else { return };
    lines.number(&[region, host, "cpu"], size.cpu);
    lines.number(&[region, host, "memory"], size.memory);
}
