//! Instance types as a file that the controllers of both projects read back: the same names, amounts and overheads.

use std::collections::BTreeMap;

use serde::Serialize;
use tenon_model::{CapacityType, InstanceType, Overhead, Price, Resources};

/// One entry, with its keys in the order in which people look for them.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    capacity: Amounts,
    #[serde(rename = "capacitytype", skip_serializing_if = "Option::is_none")]
    capacity_type: Option<&'static str>,
    #[serde(skip_serializing_if = "OverheadEntry::is_nothing")]
    overhead: OverheadEntry,
    #[serde(rename = "volumeAttachmentLimits", skip_serializing_if = "BTreeMap::is_empty")]
    volume_attachment_limits: &'a BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

/// Resources with their quantities as texts.
type Amounts = BTreeMap<String, String>;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct OverheadEntry {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kube_reserved: Amounts,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    system_reserved: Amounts,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    eviction_threshold: Amounts,
}

impl OverheadEntry {
    fn of(overhead: &Overhead) -> OverheadEntry {
        OverheadEntry {
            kube_reserved: amounts(&overhead.kube_reserved),
            system_reserved: amounts(&overhead.system_reserved),
            eviction_threshold: amounts(&overhead.eviction_threshold),
        }
    }

    fn is_nothing(&self) -> bool {
        self.kube_reserved.is_empty() && self.system_reserved.is_empty() && self.eviction_threshold.is_empty()
    }
}

/// The text of a file with these instance types.
pub fn write(types: &[InstanceType]) -> String {
    let entries: Vec<Entry<'_>> = types.iter().map(Entry::of).collect();
    // Texts and finite numbers under texts: nothing of that cannot be written.
    serde_json::to_string_pretty(&entries).unwrap_or_default() + "\n"
}

impl Entry<'_> {
    fn of(size: &InstanceType) -> Entry<'_> {
        // What is not said is on demand.
        let capacity_type = Some(size.capacity_type).filter(|kind| *kind != CapacityType::OnDemand);
        Entry {
            name: &size.name,
            capacity: amounts(&size.capacity),
            capacity_type: capacity_type.map(CapacityType::as_str),
            overhead: OverheadEntry::of(&size.overhead),
            volume_attachment_limits: &size.volume_attachment_limits,
            price: size.price.map(Price::value),
        }
    }
}

fn amounts(resources: &Resources) -> Amounts {
    resources.iter().map(|(resource, amount)| (resource.to_owned(), amount.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use tenon_model::SizeRule;

    use super::super::read;
    use super::*;

    #[test]
    fn what_is_written_is_read_back_the_same() {
        assert_eq!(read(&write(&InstanceType::built_in())).unwrap(), InstanceType::built_in());
        let mut odd = InstanceType::built_in().remove(0);
        odd.capacity_type = CapacityType::Spot;
        odd.price = Some(Price::new(0.5));
        odd.volume_attachment_limits.insert("csi.example".to_owned(), 7);
        odd.overhead = Overhead::default();
        assert_eq!(read(&write(std::slice::from_ref(&odd))).unwrap(), [odd]);
    }

    #[test]
    fn keys_and_quantities_are_those_of_the_reference() {
        let rule = SizeRule { cores: vec![1], memory_factors: vec![2], ..SizeRule::default() };
        let written = r#"[
  {
    "name": "c1.1VCPU-2GB",
    "capacity": {
      "cpu": "1",
      "ephemeral-storage": "30Gi",
      "memory": "2147483648",
      "pods": "64"
    },
    "overhead": {
      "KubeReserved": {
        "cpu": "20m",
        "memory": "256Mi"
      },
      "SystemReserved": {
        "cpu": "10m",
        "memory": "64Mi"
      },
      "EvictionThreshold": {
        "memory": "100Mi"
      }
    }
  }
]
"#;
        assert_eq!(write(&rule.instance_types()), written);
    }
}
