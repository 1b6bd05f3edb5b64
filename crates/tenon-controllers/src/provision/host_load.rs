//! How busy is each host, with VMs that are still being created?

use std::collections::BTreeMap;

use tenon_api::{Condition, ConditionStatus, NodeClaim};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{HostLoad, InstanceType, Place, Resources};
use tenon_pve::HostRow;

use super::gather::Gathered;
use super::hosts::{instance_type_of, record_of};

/// Shares are counted in millionths.
const WHOLE: u32 = 1_000_000;

/// The load of every host that shows it.
pub(crate) fn loads(gathered: &Gathered, types: &[InstanceType]) -> BTreeMap<Place, HostLoad> {
    let mut loads = BTreeMap::new();
    for (region, view) in &gathered.estate.regions {
        for row in view.iter().flat_map(|resources| &resources.hosts) {
            let place = Place { region: region.clone(), host: row.host.clone() };
            loads.extend(measured(row).map(|load| (place, load)));
        }
    }
    // Until its node takes pods, a VM shows little of what it will use.
    for claim in gathered.claims.iter().filter(|claim| is_rising(claim)) {
        let Some((record, size)) = record_of(claim).zip(instance_type_of(claim, types)) else { continue };
        if let Some(load) = loads.get_mut(&record.place) {
            let vm: Resources = [CPU, MEMORY].into_iter().map(|name| (name, size.capacity.get(name))).collect();
            load.rising.add(&vm);
        }
    }
    loads
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 1")]
fn measured(row: &HostRow) -> Option<HostLoad> {
    let (used, all) = (row.mem?, row.maxmem.filter(|all| *all > 0)?);
    let memory = u128::from(used.min(all)) * u128::from(WHOLE) / u128::from(all);
    let cpu = (row.cpu?.clamp(0.0, 1.0) * f64::from(WHOLE)) as u32;
    Some(HostLoad { cpu, memory: u32::try_from(memory).unwrap_or(WHOLE), rising: Resources::default() })
}

fn is_rising(claim: &NodeClaim) -> bool {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_up = |told: &Condition| told.type_ == "Initialized" && told.status == ConditionStatus::True;
    claim.metadata.deletion_timestamp.is_none() && !conditions.any(is_up)
}
