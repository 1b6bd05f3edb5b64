//! How much of a VM is left for pods?

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::huge_pages::HugePages;
use super::kubelet_config::KubeletConfig;

/// The kubelet's own, when nothing is configured.
const MAX_PODS: u64 = 110;
const EVICTION_HARD: [(&str, &str); 2] = [("memory.available", "100Mi"), ("nodefs.available", "10%")];

/// What a VM has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hardware {
    pub(crate) cpus: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) huge_pages: HugePages,
}

/// Capacity and allocatable, as a Node's status shows them.
pub(crate) fn of(hardware: Hardware, config: &KubeletConfig) -> (Value, Value) {
    let usual: BTreeMap<String, String> = EVICTION_HARD.map(|(k, v)| (k.into(), v.into())).into();
    let eviction = config.eviction_hard.as_ref().unwrap_or(&usual);
    let left = |resource: &str, signal: Option<&str>, whole_milli: u128| {
        let reserves = [&config.kube_reserved, &config.system_reserved];
        let reserved: u128 = reserves.iter().filter_map(|map| milli(map.get(resource)?, whole_milli)).sum();
        let kept = signal.and_then(|signal| milli(eviction.get(signal)?, whole_milli)).unwrap_or(0);
        whole_milli.saturating_sub(reserved + kept)
    };
    let (cpu, memory) = (u128::from(hardware.cpus) * 1000, u128::from(hardware.memory_bytes) * 1000);
    let disk = u128::from(hardware.disk_bytes) * 1000;
    let HugePages { bytes_2mi, bytes_1gi } = hardware.huge_pages;
    let show = |cpu: u128, memory: u128, disk: u128| {
        let mut shown = json!({
            "cpu": format!("{cpu}m"),
            "memory": format!("{}Ki", memory / 1000 / 1024),
            "ephemeral-storage": (disk / 1000).to_string(),
            "pods": config.max_pods.unwrap_or(MAX_PODS).to_string(),
        });
        for (name, bytes) in [("hugepages-2Mi", bytes_2mi), ("hugepages-1Gi", bytes_1gi)] {
            if bytes > 0 {
                shown[name] = json!(format!("{}Mi", bytes >> 20));
            }
        }
        shown
    };
    // Pages that are set aside are no memory for pods that do not name them.
    let pages = u128::from(bytes_2mi + bytes_1gi) * 1000;
    let allocatable = show(
        left("cpu", None, cpu),
        left("memory", Some("memory.available"), memory).saturating_sub(pages),
        left("ephemeral-storage", Some("nodefs.available"), disk),
    );
    (show(cpu, memory, disk), allocatable)
}

/// A quantity in thousandths; a percentage is one of `whole`.
fn milli(text: &str, whole: u128) -> Option<u128> {
    const SUFFIXES: [(&str, u128); 14] = [
        ("Ki", 1000 << 10),
        ("Mi", 1000 << 20),
        ("Gi", 1000 << 30),
        ("Ti", 1000 << 40),
        ("Pi", 1000 << 50),
        ("Ei", 1000 << 60),
        ("m", 1),
        ("k", 1_000_000),
        ("M", 1_000_000_000),
        ("G", 1_000_000_000_000),
        ("T", 1_000_000_000_000_000),
        ("P", 1_000_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000_000),
        ("", 1000),
    ];
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        return Some(decimal(percent, whole)? / 100);
    }
    let (number, unit) = SUFFIXES.iter().find_map(|(s, unit)| Some((text.strip_suffix(s)?, *unit)))?;
    decimal(number, unit)
}

/// A plain decimal number times `unit`, without floating point.
fn decimal(text: &str, unit: u128) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let scale = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    Some(digits.checked_mul(unit)? / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, expected) in
            [("80m", 80), ("1", 1000), ("1.5", 1500), ("1Ki", 1_024_000), ("0.5Ki", 512_000), ("2k", 2_000_000)]
        {
            assert_eq!(milli(text, 0), Some(expected), "{text}");
        }
        assert_eq!(milli("10%", 5000), Some(500));
        assert_eq!(milli("lots", 0), None);
    }

    #[test]
    fn reserves_and_eviction_thresholds_are_taken_off() {
        let huge_pages = HugePages::default();
        let hardware = Hardware { cpus: 4, memory_bytes: 4 << 30, disk_bytes: 1000, huge_pages };
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        let config = KubeletConfig {
            kube_reserved: [pair("cpu", "100m"), pair("memory", "512Mi")].into(),
            system_reserved: [pair("cpu", "1")].into(),
            max_pods: Some(20),
            ..KubeletConfig::default()
        };
        let (capacity, allocatable) = of(hardware, &config);
        assert_eq!(capacity["cpu"], "4000m");
        assert_eq!(capacity["memory"], "4194304Ki");
        assert_eq!(allocatable["cpu"], "2900m");
        assert_eq!(allocatable["memory"], format!("{}Ki", (4096 - 512 - 100) * 1024));
        assert_eq!((&allocatable["ephemeral-storage"], &allocatable["pods"]), (&json!("900"), &json!("20")));
        let config = KubeletConfig { eviction_hard: Some([pair("memory.available", "50%")].into()), ..config };
        let (_, allocatable) = of(hardware, &config);
        assert_eq!(allocatable["memory"], format!("{}Ki", (2048 - 512) * 1024));
        assert_eq!(allocatable["ephemeral-storage"], "1000");
    }

    #[test]
    fn huge_pages_are_part_of_the_memory_that_is_there_and_not_of_what_pods_can_have() {
        let huge_pages = HugePages { bytes_2mi: 512 << 20, bytes_1gi: 1 << 30 };
        let hardware = Hardware { cpus: 4, memory_bytes: 4 << 30, disk_bytes: 1000, huge_pages };
        let (capacity, allocatable) = of(hardware, &KubeletConfig::default());
        for shown in [&capacity, &allocatable] {
            assert_eq!((&shown["hugepages-2Mi"], &shown["hugepages-1Gi"]), (&json!("512Mi"), &json!("1024Mi")));
        }
        assert_eq!(capacity["memory"], "4194304Ki");
        assert_eq!(allocatable["memory"], format!("{}Ki", (4096 - 100 - 512 - 1024) * 1024));
    }
}
