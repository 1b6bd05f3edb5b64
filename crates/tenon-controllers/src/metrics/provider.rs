//! How do VMs come and go, in the words that the reference has for its cloud providers?
//!
//! The reference calls its provider once for a VM; here many passes make one. So Create lasts from the first request for a VM
//! until it runs, and Delete from when it begins to be destroyed until it is gone.

use super::Metrics;
use super::families::labels;

/// The name of the provider, as the Go provider gives it.
const PROVIDER: &str = "proxmox";

labels! {
    /// What is done with VMs.
    Method { controller: &'static str, method: &'static str, provider: &'static str }
    /// The same, and why it failed.
    MethodError {
        controller: &'static str, method: &'static str, provider: &'static str, error: &'static str, nodepool: String
    }
}

/// Something that is done with VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// A VM is created for a NodeClaim.
    Create,
    /// The VM of a NodeClaim is destroyed.
    Delete,
    /// All VMs are listed.
    List,
}

/// Why it failed, as far as the reference tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderError {
    InsufficientCapacity,
    NodeClassNotReady,
    NotFound,
    Unknown,
}

impl Attempt {
    fn labels(self) -> (&'static str, &'static str) {
        match self {
            Attempt::Create => ("nodeclaim.lifecycle", "Create"),
            Attempt::Delete => ("nodeclaim.lifecycle", "Delete"),
            Attempt::List => ("nodeclaim.garbagecollection", "List"),
        }
    }
}

impl ProviderError {
    fn as_str(self) -> &'static str {
        match self {
            ProviderError::InsufficientCapacity => "InsufficientCapacityError",
            ProviderError::NodeClassNotReady => "NodeClassNotReadyError",
            ProviderError::NotFound => "NodeClaimNotFoundError",
            ProviderError::Unknown => "unknown",
        }
    }
}

impl Metrics {
    /// It was done, and took so long.
    pub(crate) fn provided(&self, attempt: Attempt, seconds: f64) {
        let (controller, method) = attempt.labels();
        let of = Method { controller, method, provider: PROVIDER };
        self.provider_durations.get_or_create(&of).observe(seconds.max(0.0));
    }

    /// It failed. Of a listing there is no NodePool.
    pub(crate) fn not_provided(&self, attempt: Attempt, error: ProviderError, nodepool: &str) {
        let (controller, method) = attempt.labels();
        let (error, nodepool) = (error.as_str(), nodepool.to_owned());
        self.provider_errors
            .get_or_create(&MethodError { controller, method, provider: PROVIDER, error, nodepool })
            .inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j9_an_error_that_has_no_name_is_unknown_and_names_its_nodepool() {
        let metrics = Metrics::default();
        metrics.not_provided(Attempt::Create, ProviderError::Unknown, "default");
        metrics.not_provided(Attempt::List, ProviderError::Unknown, "");
        let text = metrics.text();
        let of = |controller: &str, method: &str, nodepool: &str| {
            format!(
                "karpenter_cloudprovider_errors_total{{controller=\"{controller}\",method=\"{method}\",\
                 provider=\"proxmox\",error=\"unknown\",nodepool=\"{nodepool}\"}} 1\n"
            )
        };
        assert!(text.contains(&of("nodeclaim.lifecycle", "Create", "default")), "{text}");
        assert!(text.contains(&of("nodeclaim.garbagecollection", "List", "")), "{text}");
    }
}
