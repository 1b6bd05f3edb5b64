//! Who approves the certificates of kubelets, as a flag.

use clap::ValueEnum;
use tenon_controllers::CsrApprover;

/// Who approves them. An empty text means the default, because charts write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Approver {
    /// kube-controller-manager approves them, which needs a ClusterRoleBinding.
    #[value(alias = "")]
    False,
    /// Tenon approves them.
    True,
    /// Another approver, or a person, approves them.
    External,
}

impl From<Approver> for CsrApprover {
    fn from(approver: Approver) -> CsrApprover {
        match approver {
            Approver::False => CsrApprover::KubeControllerManager,
            Approver::True => CsrApprover::Tenon,
            Approver::External => CsrApprover::External,
        }
    }
}
