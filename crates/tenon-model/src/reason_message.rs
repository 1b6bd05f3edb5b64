//! How the reasons of a plan read. Some begin with words that people's alerts on Karpenter already look for.

use std::fmt;

use crate::plan::{Met, NoHost, NoType, PoolRefusal, Reason, ReservedTrouble};
use crate::quantity::Quantity;
use crate::resources::{CPU, Resources};
use crate::skipped_hosts::write_skipped;

/// As many cores no host has; whoever asks for them meant thousandths.
const CORES_BY_MISTAKE: i64 = 1_000_000;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Invalid(why) => f.write_str(why),
            Reason::ResourceClaims => {
                f.write_str("the pod has resource claims (DRA), and such pods are ignored; to plan them, set --ignore-dra-requests=false")
            }
            Reason::NoPools => f.write_str("no dynamic nodepools found; create a NodePool without spec.replicas"),
            Reason::NothingOffered => f.write_str(
                "nodepool requirements filtered out all available instance types; relax the requirements of a NodePool",
            ),
            Reason::Refused(refusals) => {
                for (index, (pool, refusal)) in refusals.iter().enumerate() {
                    let divide = if index == 0 { "" } else { "; " };
                    write!(f, "{divide}NodePool {pool}: {refusal}")?;
                }
                Ok(())
            }
            Reason::Reserved { pool, why } => write!(f, "NodePool {pool}: {why}; Tenon retries with the next plan"),
            Reason::Truncated(short) => {
                write!(f, "minValues requirement is not met by the instance types that one NodeClaim can list: {short}")
            }
            Reason::Internal(what) => f.write_str(&internal(what)),
            Reason::CheckFailed(rule) => {
                write!(f, "the plan for this pod failed its check: {rule}; this is a bug in Tenon, please report it")
            }
        }
    }
}

impl fmt::Display for ReservedTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReservedTrouble::Taken => {
                "other nodes of the same plan take all of the reserved capacity that fits the pod"
            }
            ReservedTrouble::Full => "only reserved capacity fits the pod, and all of it is in use",
            ReservedTrouble::WouldLose => "with the pod, the node would lose its reserved capacity",
        })
    }
}

impl fmt::Display for PoolRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolRefusal::NotReady(why) => write!(f, "not ready ({why})"),
            PoolRefusal::Static => f.write_str("static NodePool (spec.replicas is set), which adds no nodes for pods"),
            PoolRefusal::NothingOffered => {
                f.write_str("nodepool requirements filtered out all available instance types")
            }
            PoolRefusal::Taint(taint) => write!(f, "did not tolerate taint {taint}"),
            PoolRefusal::Labels(why) => write!(f, "incompatible requirements, {why}"),
            PoolRefusal::Topology(why) => why.fmt(f),
            PoolRefusal::Volumes(why) => why.fmt(f),
            PoolRefusal::NoType(why) => why.fmt(f),
            PoolRefusal::MinValues(short) => write!(f, "minValues requirement is not met: {short}"),
            PoolRefusal::Limit { resource, .. } if resource == "nodes" => {
                f.write_str("node limits have been exhausted for nodepool; raise spec.limits.nodes")
            }
            PoolRefusal::Limit { resource, limit } => write!(
                f,
                "all available instance types exceed limits for nodepool: the limit of {} {resource} is reached; raise \
                 spec.limits.{resource}",
                shown(resource, *limit)
            ),
            PoolRefusal::Reserved(why) => why.fmt(f),
            PoolRefusal::NoHost(why) => why.fmt(f),
            PoolRefusal::HostExcluded { place, others } => write!(
                f,
                "{others}; host {} was skipped: spec.placementStrategy.excludedHosts of the ProxmoxNodeClass names it",
                place.host
            ),
            PoolRefusal::HostsSkipped { skipped, others } => {
                others.fmt(f)?;
                write_skipped(f, skipped)
            }
        }
    }
}

impl fmt::Display for NoHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoHost { instance_type, shortage, largest_on, kept_free, skipped } = self;
        let resource = &shortage.resource;
        let (wanted, most) = (shortage.wanted, shortage.available);
        match (largest_on, kept_free) {
            (Some(place), None) => {
                write!(f, "no host has {} free for instance type {instance_type}; ", named(resource, wanted))?;
                write!(f, "the most is {} on host {}", shown(resource, most), place.host)?;
            }
            (Some(place), Some(kept)) => {
                write!(f, "no host keeps enough {resource} free with a VM of instance type {instance_type}: ")?;
                write!(f, "host {} has {} free, ", place.host, named(resource, most))?;
                write!(f, "the VM needs {}, and {} must stay free ", shown(resource, wanted), shown(resource, *kept))?;
                f.write_str("(spec.placementStrategy.minAvailable of the ProxmoxNodeClass)")?;
            }
            // How much is free does not matter where nothing can be made.
            (None, _) => write!(f, "no host can be used for instance type {instance_type}")?,
        }
        write_skipped(f, skipped)?;
        match (largest_on, kept_free) {
            (Some(_), None) => write!(f, "; free up {resource} on a host or add a host"),
            (Some(_), Some(_)) => {
                write!(f, "; free up {resource} on a host, add a host, or lower minAvailable.{resource}")
            }
            (None, _) => Ok(()),
        }
    }
}

impl fmt::Display for NoType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = &self.resources;
        f.write_str(phrase(self.met))?;
        if self.met.requirements && self.met.offering && !self.met.resources {
            if least.get(CPU) >= Quantity::whole(CORES_BY_MISTAKE) {
                f.write_str(" (CPU request >= 1 Million, m vs M typo?)")?;
            }
            if let Some(short) = &self.shortage {
                let (wanted, left) = (shown(&short.resource, short.wanted), shown(&short.resource, short.available));
                write!(
                    f,
                    ", {}: {wanted} requested, but the largest instance type has {left} for pods",
                    short.resource
                )?;
                f.write_str(" (lower the request or add a larger instance type)")?;
            }
        }
        write!(f, ", requirements={}", self.requirements)?;
        if !self.volumes.is_empty() {
            write!(f, " (required by a volume of the pod: {})", self.volumes)?;
        }
        f.write_str(", resources=")?;
        if least == most {
            f.write_str(&listed(least))
        } else {
            write!(f, "min={} max={}", listed(least), listed(most))
        }
    }
}

fn phrase(met: Met) -> &'static str {
    match (met.requirements, met.resources, met.offering) {
        (false, false, false) => {
            "no instance type met the scheduling requirements or had enough resources or had a required offering"
        }
        (false, false, true) => "no instance type met the scheduling requirements or had enough resources",
        (false, true, false) => "no instance type met the scheduling requirements or had a required offering",
        (true, false, false) => "no instance type had enough resources or had a required offering",
        (false, true, true) => "no instance type met all requirements",
        (true, false, true) => "no instance type has enough resources",
        (true, true, false) => "no instance type has the required offering",
        (true, true, true) if met.requirements_and_resources => {
            "no instance type which met the scheduling requirements and had enough resources, had a required offering"
        }
        (true, true, true) if met.resources_and_offering => {
            "no instance type which had enough resources and the required offering met the scheduling requirements"
        }
        (true, true, true) if met.requirements_and_offering => {
            "no instance type which met the scheduling requirements and the required offering had the required resources"
        }
        (true, true, true) => "no instance type met the requirements/resources/offering tuple",
    }
}

fn internal(what: &str) -> String {
    format!("internal error of the planner: {what} was not found; this is a bug in Tenon, please report it")
}

fn listed(amounts: &Resources) -> String {
    let entries: Vec<String> = amounts.iter().map(|(name, amount)| format!("{name}: {amount}")).collect();
    format!("{{{}}}", entries.join(", "))
}

/// An amount with its resource: `64 GiB of memory`, `16 CPU`, `110 pods`.
fn named(resource: &str, amount: Quantity) -> String {
    match shown(resource, amount) {
        cores if resource == CPU => format!("{cores} CPU"),
        bytes if bytes.ends_with('B') => format!("{bytes} of {resource}"),
        count => format!("{count} {resource}"),
    }
}

/// An amount as people say it: bytes in GiB or MiB, cores in cores.
fn shown(resource: &str, amount: Quantity) -> String {
    let bytes = amount.value();
    match resource {
        CPU => amount.to_string(),
        _ if bytes >= 1 << 30 => format!("{} GiB", tenths(bytes, 30)),
        _ if bytes >= 1 << 20 => format!("{} MiB", tenths(bytes, 20)),
        _ => amount.to_string(),
    }
}

/// A number of bytes in units of two to the power, with one decimal where it is not whole, rounded down.
fn tenths(bytes: i64, power: u32) -> String {
    let tenths = (i128::from(bytes) * 10) >> power;
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::resources::{MEMORY, Shortage};
    use crate::skipped_hosts::SkippedHosts;

    #[test]
    fn a_pod_that_waits_says_how_large_the_largest_gap_is_and_where() {
        let gib = |n: i64| Quantity::whole(n << 30);
        let shortage = Shortage { resource: MEMORY.to_owned(), wanted: gib(64), available: gib(48) };
        let largest_on = Some(Place { region: "lab".to_owned(), host: "pve3".parse().unwrap() });
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let skipped = vec![SkippedHosts { why: "it is offline".to_owned(), places: vec![place] }];
        let refusal = PoolRefusal::NoHost(Box::new(NoHost {
            instance_type: "m1.8VCPU-64GB".to_owned(),
            shortage,
            largest_on,
            kept_free: None,
            skipped,
        }));
        let reason = Reason::Refused(vec![("default".to_owned(), refusal)]);
        assert_eq!(
            reason.to_string(),
            "NodePool default: no host has 64 GiB of memory free for instance type m1.8VCPU-64GB; the most is 48 GiB on \
             host pve3; host pve1 was skipped: it is offline; free up memory on a host or add a host"
        );
    }

    #[test]
    fn where_no_host_can_be_used_the_reason_is_not_hidden_behind_amounts() {
        let wanted = Quantity::whole(64 << 30);
        let shortage = Shortage { resource: MEMORY.to_owned(), wanted, available: Quantity::ZERO };
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let skipped = vec![SkippedHosts { why: "it is offline".to_owned(), places: vec![place] }];
        let size = "m1.8VCPU-64GB".to_owned();
        let refusal = PoolRefusal::NoHost(Box::new(NoHost {
            instance_type: size,
            shortage,
            largest_on: None,
            kept_free: None,
            skipped,
        }));
        assert_eq!(
            refusal.to_string(),
            "no host can be used for instance type m1.8VCPU-64GB; host pve1 was skipped: it is offline"
        );
    }

    #[test]
    fn a_pod_that_waits_for_what_must_stay_free_hears_which_host_and_how_much() {
        let gib = |n: i64| Quantity::whole(n << 30);
        let place = |host: &str| Place { region: "lab".to_owned(), host: host.parse().unwrap() };
        let shortage = Shortage { resource: MEMORY.to_owned(), wanted: gib(8), available: gib(10) };
        let (instance_type, largest_on) = ("m1.2VCPU-8GB".to_owned(), Some(place("pve3")));
        let others = PoolRefusal::NoHost(Box::new(NoHost {
            instance_type,
            shortage,
            largest_on,
            kept_free: Some(gib(4)),
            skipped: Vec::new(),
        }));
        let refusal = PoolRefusal::HostExcluded { place: place("pve2"), others: Box::new(others) };
        assert_eq!(
            refusal.to_string(),
            "no host keeps enough memory free with a VM of instance type m1.2VCPU-8GB: host pve3 has 10 GiB of memory free, \
             the VM needs 8 GiB, and 4 GiB must stay free (spec.placementStrategy.minAvailable of the ProxmoxNodeClass); \
             free up memory on a host, add a host, or lower minAvailable.memory; host pve2 was skipped: \
             spec.placementStrategy.excludedHosts of the ProxmoxNodeClass names it"
        );
    }

    #[test]
    fn amounts_read_as_people_say_them() {
        assert_eq!(shown(MEMORY, Quantity::whole((3 << 30) / 2)), "1.5 GiB");
        assert_eq!(shown(MEMORY, Quantity::whole(500 << 20)), "500 MiB");
        assert_eq!(shown(CPU, Quantity::milli(1500)), "1500m");
        assert_eq!(shown("pods", Quantity::whole(110)), "110");
        assert_eq!(named(MEMORY, Quantity::whole(64 << 30)), "64 GiB of memory");
        assert_eq!(named(CPU, Quantity::milli(1500)), "1500m CPU");
        assert_eq!(named("pods", Quantity::whole(110)), "110 pods");
    }
}
