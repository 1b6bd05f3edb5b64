//! Why can a seed not be rendered?

/// A seed that would never become a node, found before a VM is made for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name becomes a hostname, a Node and a word of a unit file.
    #[error("node name {name:?} is not a DNS subdomain")]
    NodeName {
        /// What was given.
        name: String,
    },
    /// A kubelet sends its token only where the certificate can be checked.
    #[error("API server URL {url:?} does not start with https:// or contains white space")]
    ApiServer {
        /// What was given.
        url: String,
    },
    /// Without it the guest could not tell the API server from another.
    #[error("the cluster CA is not a PEM certificate")]
    ClusterCa,
    /// The text is not repeated here, because it may be a secret.
    #[error("the bootstrap token does not have the form of 6 lower-case letters or digits, a dot, and 16 more")]
    Token,
    /// Two interfaces of one name would be one key of a map.
    #[error("two network interfaces have the name {name:?}")]
    DuplicateInterface {
        /// The name they share.
        name: String,
    },
    /// A kubelet with these thresholds does not start.
    #[error("imageGCHighThresholdPercent ({high}) must be greater than imageGCLowThresholdPercent ({low})")]
    ImageGcThresholds {
        /// Where collection starts, given or the kubelet's default.
        high: u32,
        /// Where it stops, given or the kubelet's default.
        low: u32,
    },
    /// A kubelet with this policy and nothing reserved does not start.
    #[error("the static CPU manager policy needs `cpu` in kubeReserved or systemReserved")]
    StaticCpuWithoutReserve,
    /// The emitter refused a text.
    #[error("cannot write {what} as YAML")]
    Yaml {
        /// Which text.
        what: &'static str,
        /// What the emitter said.
        source: serde_saphyr::SerializeError,
    },
    /// The image writer refused a file.
    #[error("cannot build the seed ISO image")]
    Iso {
        /// What the writer said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
