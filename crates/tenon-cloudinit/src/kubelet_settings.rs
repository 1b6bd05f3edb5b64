//! Which knobs of a node's kubelet can be turned, and which settings would keep it from starting?
//!
//! The serialized names are the kubelet's own. What a kubelet needs beside them is in `kubelet_config`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Error;

/// Settings of one kubelet; what is absent is left to the kubelet. Durations and quantities are texts in Kubernetes'
/// spelling (`30s`, `512Mi`), because that is what the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletSettings {
    /// `none` or `static`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_manager_policy: Option<String>,
    /// Whether CPU limits are enforced.
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// How often CPU limits are settled.
    #[serde(rename = "cpuCFSQuotaPeriod", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota_period: Option<String>,
    /// Options of the CPU manager.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_manager_policy_options: BTreeMap<String, String>,
    /// How often the CPU manager looks again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_manager_reconcile_period: Option<String>,
    /// `None` or `Static`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_manager_policy: Option<String>,
    /// `none`, `best-effort`, `restricted` or `single-numa-node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_manager_policy: Option<String>,
    /// `container` or `pod`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_manager_scope: Option<String>,
    /// Options of the topology manager.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub topology_manager_policy_options: BTreeMap<String, String>,
    /// Images younger than this are kept.
    #[serde(rename = "imageMinimumGCAge", skip_serializing_if = "Option::is_none")]
    pub image_minimum_gc_age: Option<String>,
    /// Unused images older than this go.
    #[serde(rename = "imageMaximumGCAge", skip_serializing_if = "Option::is_none")]
    pub image_maximum_gc_age: Option<String>,
    /// Disk use in percent that starts image collection.
    #[serde(rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    pub image_gc_high_threshold_percent: Option<u32>,
    /// Disk use in percent that ends it.
    #[serde(rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    pub image_gc_low_threshold_percent: Option<u32>,
    /// How long a shutdown waits for pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace_period: Option<String>,
    /// How much of that is kept for critical pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace_period_critical_pods: Option<String>,
    /// Sysctls that pods may set although they reach beyond the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Resolvers of the cluster.
    #[serde(rename = "clusterDNS", skip_serializing_if = "Vec::is_empty")]
    pub cluster_dns: Vec<String>,
    /// How many pods fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
    /// Whether a kubelet refuses to start where swap is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
    /// Kept for the system: resource to quantity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub system_reserved: BTreeMap<String, String>,
    /// Kept for Kubernetes: resource to quantity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kube_reserved: BTreeMap<String, String>,
    /// Signal to threshold. Replaces all of the kubelet's own when not empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub eviction_hard: BTreeMap<String, String>,
    /// The domain of the cluster's services; `cluster.local` when absent.
    #[serde(skip)]
    pub cluster_domain: Option<String>,
    /// Taints the Node is born with. [`Taint::unregistered`] is always among them, given or not.
    #[serde(skip)]
    pub register_with_taints: Vec<Taint>,
    /// Labels the Node is born with. Those a kubelet may not set are left out and reported with the seed.
    #[serde(skip)]
    pub node_labels: BTreeMap<String, String>,
}

impl KubeletSettings {
    /// The kubelet's own defaults, against which a lone threshold is judged.
    const IMAGE_GC_HIGH: u32 = 85;
    const IMAGE_GC_LOW: u32 = 80;

    /// Refuses what a kubelet would only refuse in a VM that is already running and paid for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let high = self.image_gc_high_threshold_percent.unwrap_or(KubeletSettings::IMAGE_GC_HIGH);
        let low = self.image_gc_low_threshold_percent.unwrap_or(KubeletSettings::IMAGE_GC_LOW);
        if low >= high {
            return Err(Error::ImageGcThresholds { high, low });
        }
        let reserved = [&self.kube_reserved, &self.system_reserved].iter().any(|map| map.contains_key("cpu"));
        if self.cpu_manager_policy.as_deref() == Some("static") && !reserved {
            return Err(Error::StaticCpuWithoutReserve);
        }
        Ok(())
    }

    /// The taints to register with.
    pub(crate) fn taints(&self) -> Vec<Taint> {
        // Without it, pods would land before labels and taints are in place.
        let unregistered = Taint::unregistered();
        let absent = !self.register_with_taints.iter().any(|taint| taint.key == unregistered.key);
        absent.then_some(unregistered).into_iter().chain(self.register_with_taints.iter().cloned()).collect()
    }
}

/// A taint, in the kubelet's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taint {
    /// What pods tolerate it by.
    pub key: String,
    /// May be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

impl Taint {
    /// Keeps pods off a Node until its claim has been matched to it.
    pub fn unregistered() -> Taint {
        Taint { key: "karpenter.sh/unregistered".to_owned(), value: String::new(), effect: TaintEffect::NoExecute }
    }
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TaintEffect {
    /// They are not placed.
    NoSchedule,
    /// They are placed elsewhere if possible.
    PreferNoSchedule,
    /// They are not placed, and those that run are evicted.
    NoExecute,
}

impl TaintEffect {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unregistered_taint_is_always_there_and_only_once() {
        let other = Taint { key: "gpu".to_owned(), value: "yes".to_owned(), effect: TaintEffect::NoSchedule };
        let settings = KubeletSettings { register_with_taints: vec![other.clone()], ..KubeletSettings::default() };
        assert_eq!(settings.taints(), [Taint::unregistered(), other.clone()]);

        let given = vec![other, Taint::unregistered()];
        let settings = KubeletSettings { register_with_taints: given.clone(), ..KubeletSettings::default() };
        assert_eq!(settings.taints(), given);
    }

    #[test]
    fn a_lone_image_threshold_is_judged_against_the_default_of_the_other() {
        let settings = KubeletSettings { image_gc_high_threshold_percent: Some(70), ..KubeletSettings::default() };
        assert!(matches!(settings.check(), Err(Error::ImageGcThresholds { high: 70, low: 80 })));
        let settings = KubeletSettings { image_gc_low_threshold_percent: Some(60), ..settings };
        assert!(settings.check().is_ok());
    }

    #[test]
    fn the_static_cpu_policy_needs_a_reserve() {
        let static_cpu = Some("static".to_owned());
        let mut settings = KubeletSettings { cpu_manager_policy: static_cpu, ..KubeletSettings::default() };
        assert!(matches!(settings.check(), Err(Error::StaticCpuWithoutReserve)));
        settings.kube_reserved.insert("cpu".to_owned(), "80m".to_owned());
        assert!(settings.check().is_ok());
    }
}
