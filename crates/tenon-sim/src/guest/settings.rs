//! How do guests behave, and how fast?

use std::sync::Arc;
use std::time::Duration;

use super::access::{Connect, TlsConnect};
use super::fault::GuestFaultRule;
use super::image::ImageJoin;

/// Everything [`Guests`](super::Guests) are told from outside. All times run on tokio's clock.
#[derive(Clone, Debug)]
pub struct GuestConfig {
    /// From power on to a running cloud-init.
    pub boot_delay: Duration,
    /// From a pod's binding to its being ready.
    pub pod_start_delay: Duration,
    /// Pods with a longer grace end after this.
    pub max_grace: Duration,
    /// How often a node's Lease is renewed.
    pub lease_interval: Duration,
    /// How often an unchanged node status is reported.
    pub status_interval: Duration,
    /// How often a kubelet looks whether its certificate is there.
    pub certificate_poll: Duration,
    /// After this a kubelet asks for its certificate again.
    pub certificate_wait: Duration,
    /// The first pause after something was refused; it doubles from there.
    pub retry_first: Duration,
    /// The longest pause.
    pub retry_most: Duration,
    /// What a single request may take.
    pub request_timeout: Duration,
    /// The version every kubelet says it has.
    pub kubelet_version: String,
    /// Takes the place of the server's address in the kubeconfigs guests find. Their CA still counts.
    pub guest_api: Option<String>,
    /// What a template brings along for VMs without a seed.
    pub image_join: Option<ImageJoin>,
    /// Seconds since 1970 at the start, for time stamps; the system's clock when absent.
    pub epoch_s: Option<u64>,
    /// What goes wrong inside guests.
    pub faults: Vec<GuestFaultRule>,
    /// How clients are made.
    pub connect: Arc<dyn Connect>,
}

impl Default for GuestConfig {
    fn default() -> Self {
        Self {
            boot_delay: Duration::from_secs(5),
            pod_start_delay: Duration::from_secs(1),
            max_grace: Duration::from_secs(30),
            // These two are the kubelet's own.
            lease_interval: Duration::from_secs(10),
            status_interval: Duration::from_secs(300),
            certificate_poll: Duration::from_millis(500),
            certificate_wait: Duration::from_secs(60),
            retry_first: Duration::from_millis(500),
            retry_most: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            kubelet_version: "v1.36.3".into(),
            guest_api: None,
            image_join: None,
            epoch_s: None,
            faults: Vec::new(),
            connect: Arc::new(TlsConnect),
        }
    }
}
