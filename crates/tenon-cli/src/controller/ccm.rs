//! Whether the cluster has a cloud controller manager, as a flag.

use clap::ValueEnum;
use tenon_controllers::CloudControllerManager;

/// Who initializes new nodes. An empty text means the default, because charts write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Ccm {
    /// The cluster has a cloud controller manager, which removes the taint.
    #[value(alias = "")]
    External,
    /// The cluster has none: Tenon removes the taint.
    None,
}

impl From<Ccm> for CloudControllerManager {
    fn from(ccm: Ccm) -> CloudControllerManager {
        match ccm {
            Ccm::External => CloudControllerManager::External,
            Ccm::None => CloudControllerManager::None,
        }
    }
}
