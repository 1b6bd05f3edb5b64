//! Reads the CPU of a host, or the options of a guest.

use jiff::Timestamp;
use tenon_engine::cpu::{Bound, CapacityVm, CpuFacts};
use tenon_model::{Place, VmId};
use tenon_pve::{Client, GuestRow, HostRow};

use super::guest_binding::{binding, capacity_vm, is_capacity_vm};
use crate::addresses::is_denied;

/// What was read, when, and of what.
#[derive(Debug, Clone)]
pub(super) struct Reading<T> {
    pub(super) at: Timestamp,
    /// What the listing said then.
    pub(super) row: String,
    pub(super) value: T,
}

/// What the options of a guest say.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Bound(Bound),
    Host(Box<Result<CapacityVm, String>>),
}

/// What is to be read, and from whom.
pub(super) enum Due {
    Host(Client, Place, HostRow),
    Guest(Client, Place, GuestRow),
}

/// What came of it; nothing where nobody answered.
pub(super) enum Read {
    Host(Place, Option<Reading<CpuFacts>>),
    Guest((String, VmId), Option<Reading<Said>>),
}

impl Due {
    pub(super) async fn read(self, now: Timestamp) -> Read {
        match self {
            Due::Host(pve, place, row) => {
                let value = match pve.host_status(&place.host).await {
                    Ok(status) => Some(CpuFacts {
                        cpus: count(status.cpus),
                        cores: count(status.cores),
                        sockets: count(status.sockets),
                        model: status.cpu_model,
                        memory_bytes: status.memory_bytes,
                    }),
                    // What the listing says is one socket of a model nobody knows.
                    Err(error) if is_denied(&error) => Some(CpuFacts {
                        cpus: count(row.maxcpu.unwrap_or_default()),
                        memory_bytes: row.maxmem.unwrap_or_default(),
                        ..CpuFacts::default()
                    }),
                    Err(_) => None,
                };
                let reading = value.map(|value| Reading { at: now, row: host_row(&row), value });
                Read::Host(place, reading)
            }
            Due::Guest(pve, place, row) => {
                let value = match pve.vm_config(&place.host, row.id).await {
                    Ok(config) if is_capacity_vm(&row) => {
                        Some(Said::Host(Box::new(capacity_vm(&config).map_err(|error| error.to_string()))))
                    }
                    Ok(config) => Some(Said::Bound(binding(&config, row.maxcpu.unwrap_or_default()))),
                    // Nobody but an operator can help; it counts like one that is bound to nothing.
                    Err(error) if is_denied(&error) => Some(Said::Bound(Bound::default())),
                    Err(_) => None,
                };
                let reading = value.map(|value| Reading { at: now, row: guest_row(&row), value });
                Read::Guest((place.region, row.id), reading)
            }
        }
    }
}

fn count(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or_default().min(tenon_model::CPUS_MAX)
}

pub(super) fn host_row(row: &HostRow) -> String {
    format!("{:?} {:?}", row.maxcpu, row.maxmem)
}

pub(super) fn guest_row(row: &GuestRow) -> String {
    format!("{:?} {:?} {:?} {:?} {}", row.status, row.name, row.maxcpu, row.maxmem, row.host)
}
