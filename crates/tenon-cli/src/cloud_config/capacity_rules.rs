//! How much of the hosts of a Proxmox cluster VMs may have: keys `cpu_overcommit`, `memory_reserve` and `excluded`, for the
//! cluster and for single hosts below `hosts`.

use std::collections::BTreeMap;

use serde::Deserialize;
use tenon_model::{CapacityRules, HostName, Quantity, RegionCapacity};

/// A host has at most this many vCPUs for a thread: more is a slip of the keyboard.
const OVERCOMMIT_MOST: f64 = 100.0;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CapacityRulesWire {
    cpu_overcommit: Option<f64>,
    memory_reserve: Option<serde_json::Value>,
    excluded: Option<bool>,
}

impl CapacityRulesWire {
    /// The rules, with what is not said as it is otherwise.
    fn rules(&self, otherwise: CapacityRules) -> Result<CapacityRules, String> {
        let cpu_overcommit_percent = match self.cpu_overcommit {
            None => otherwise.cpu_overcommit_percent,
            Some(ratio) if (0.01..=OVERCOMMIT_MOST).contains(&ratio) => percent(ratio),
            Some(ratio) => {
                return Err(format!(
                    "invalid cpu_overcommit `{ratio}`; give vCPUs for each thread of the host, such as 2.5"
                ));
            }
        };
        let memory_reserve_bytes = match &self.memory_reserve {
            None => otherwise.memory_reserve_bytes,
            Some(value) => bytes(value)?,
        };
        let excluded = self.excluded.unwrap_or(otherwise.excluded);
        Ok(CapacityRules { cpu_overcommit_percent, memory_reserve_bytes, excluded })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 10,000")]
fn percent(ratio: f64) -> u32 {
    (ratio * 100.0).round() as u32
}

/// A quantity as text, or bytes as a number.
fn bytes(value: &serde_json::Value) -> Result<u64, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let amount = text.parse::<Quantity>().ok().and_then(|amount| u64::try_from(amount.value()).ok());
    amount.ok_or_else(|| format!("invalid memory_reserve `{text}`; give an amount of memory, such as 2Gi"))
}

/// The rules of a cluster.
pub(super) fn region_rules(
    standard: &CapacityRulesWire,
    hosts: &BTreeMap<String, CapacityRulesWire>,
) -> Result<RegionCapacity, String> {
    let standard = standard.rules(CapacityRules::default())?;
    let host = |(name, rules): (&String, &CapacityRulesWire)| {
        let host: HostName = name.parse().map_err(|error| format!("hosts: {error}"))?;
        let rules = rules.rules(standard).map_err(|fault| format!("host {name}: {fault}"))?;
        Ok::<_, String>((host, rules))
    };
    Ok(RegionCapacity { standard, hosts: hosts.iter().map(host).collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<RegionCapacity, String> {
        #[derive(Deserialize)]
        struct Cluster {
            #[serde(flatten)]
            standard: CapacityRulesWire,
            #[serde(default)]
            hosts: BTreeMap<String, CapacityRulesWire>,
        }
        let cluster: Cluster = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        region_rules(&cluster.standard, &cluster.hosts)
    }

    #[test]
    fn a_host_has_the_rules_of_its_cluster_unless_it_has_its_own() {
        let rules = read(
            "cpu_overcommit: 2.5\nmemory_reserve: 4Gi\nhosts:\n  pve2: {memory_reserve: 8Gi}\n  old: {excluded: true}",
        )
        .unwrap();
        let of = |host: &str| rules.of(&host.parse().unwrap());
        assert_eq!((of("pve1").cpu_overcommit_percent, of("pve1").memory_reserve_bytes), (250, 4 << 30));
        assert_eq!((of("pve2").cpu_overcommit_percent, of("pve2").memory_reserve_bytes), (250, 8 << 30));
        assert!(of("old").excluded && !of("pve2").excluded);
        assert_eq!(read("cpu_overcommit: 1\nmemory_reserve: 1073741824").unwrap(), RegionCapacity::default());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_key() {
        for (yaml, words) in [
            ("cpu_overcommit: 0", "invalid cpu_overcommit `0`"),
            ("cpu_overcommit: 1000", "invalid cpu_overcommit `1000`"),
            ("memory_reserve: lots", "invalid memory_reserve `lots`"),
            ("memory_reserve: -1", "invalid memory_reserve `-1`"),
            ("hosts: {pve2: {cpu_overcommit: -2}}", "host pve2: invalid cpu_overcommit"),
            ("hosts: {pve.lan: {excluded: true}}", "hosts: `pve.lan` is not a host name"),
        ] {
            let fault = read(yaml).unwrap_err();
            assert!(fault.contains(words), "{yaml}: {fault}");
        }
    }
}
