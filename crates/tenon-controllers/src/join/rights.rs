//! May a bootstrap token request a certificate, and is it approved? Asked of the API server, and remembered for a while.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::Client;
use kube::api::{Api, PostParams};
use tenon_api::names;
use tokio::sync::Mutex;

use crate::kube_error;
use crate::moments::after;

/// What was granted is asked again only after this long: bindings are seldom taken away.
const GRANTED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// A token that was never made, for the question.
const USER: &str = "system:bootstrap:review";

/// Lets its holder request certificates.
const BOOTSTRAPPER: &str = "system:node-bootstrapper";
/// Has the first certificate of a node approved.
const NODE_CLIENT: &str = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";

/// Whether something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Granted,
    Missing,
    /// It could not be asked, or does not matter.
    Unknown,
}

/// What bootstrap tokens may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Create requests for certificates.
    pub(crate) request: Right,
    /// Have them approved by Kubernetes' own approver.
    pub(crate) approval: Right,
    /// Why it could not be asked.
    pub(crate) unasked: Option<String>,
}

impl Rights {
    /// What is missing, and the line to type; nothing if nothing is known to be missing.
    pub(crate) fn missing(&self) -> Option<String> {
        let group = names::BOOTSTRAP_GROUP;
        let line = |name: &str, role: &str| {
            format!("kubectl create clusterrolebinding {name} --clusterrole={role} --group={group}")
        };
        let request = line("tenon-node-bootstrapper", BOOTSTRAPPER);
        let approval = line("tenon-node-autoapprove", NODE_CLIENT);
        let (what, lines) = match (self.request, self.approval) {
            (Right::Missing, Right::Missing) => (
                "cannot create CertificateSigningRequests, and they would not be approved",
                format!("{request} && {approval}"),
            ),
            (Right::Missing, _) => ("cannot create CertificateSigningRequests", request),
            (_, Right::Missing) => ("can create CertificateSigningRequests, but nobody approves them", approval),
            _ => return None,
        };
        Some(format!("bootstrap tokens of group {group} {what}; run: {lines}"))
    }
}

/// Asks, and remembers.
pub(crate) struct Reviewer {
    client: Client,
    /// Whether Kubernetes' own approver is relied on.
    needs_approval: bool,
    last: Mutex<Option<(Timestamp, Rights)>>,
}

impl Reviewer {
    pub(crate) fn new(client: Client, needs_approval: bool) -> Reviewer {
        Reviewer { client, needs_approval, last: Mutex::default() }
    }

    /// The rights, not older than a few minutes. What is missing is asked again each time.
    pub(crate) async fn rights(&self, now: Timestamp) -> Rights {
        let mut last = self.last.lock().await;
        if let Some((asked, rights)) = &*last
            && rights.missing().is_none()
            && after(*asked, GRANTED_FOR) > now
        {
            return rights.clone();
        }
        let rights = self.ask().await;
        *last = Some((now, rights.clone()));
        rights
    }

    async fn ask(&self) -> Rights {
        let request = self.may("").await;
        let approval = if self.needs_approval { self.may("nodeclient").await } else { Ok(true) };
        let unasked = request.as_ref().or(approval.as_ref()).err().cloned();
        let right = |asked: Result<bool, String>| match asked {
            Ok(true) => Right::Granted,
            Ok(false) => Right::Missing,
            Err(_) => Right::Unknown,
        };
        Rights { request: right(request), approval: right(approval), unasked }
    }

    async fn may(&self, subresource: &str) -> Result<bool, String> {
        let owned = |text: &str| Some(text.to_owned());
        let groups = ["system:bootstrappers", names::BOOTSTRAP_GROUP, "system:authenticated"];
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: owned(USER),
                groups: Some(groups.map(str::to_owned).to_vec()),
                resource_attributes: Some(ResourceAttributes {
                    verb: owned("create"),
                    group: owned("certificates.k8s.io"),
                    resource: owned("certificatesigningrequests"),
                    subresource: owned(subresource).filter(|text| !text.is_empty()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        match reviews.create(&PostParams::default(), &review).await {
            Ok(SubjectAccessReview { status: Some(SubjectAccessReviewStatus { allowed, .. }), .. }) => Ok(allowed),
            Ok(_) => Err("the API server answers an access review without a status".to_owned()),
            Err(error) => Err(kube_error::message(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_sim::{Cluster, ClusterConfig};

    use super::*;

    fn rights(request: Right, approval: Right) -> Rights {
        Rights { request, approval, unasked: None }
    }

    #[test]
    fn what_is_missing_comes_with_the_line_to_type() {
        let group = "--group=system:bootstrappers:karpenter:proxmox";
        let both = rights(Right::Missing, Right::Missing).missing().unwrap();
        assert!(both.contains(&format!("--clusterrole=system:node-bootstrapper {group} && kubectl create")), "{both}");
        assert!(both.ends_with(&format!("certificatesigningrequests:nodeclient {group}")), "{both}");
        assert!(!rights(Right::Missing, Right::Granted).missing().unwrap().contains("nodeclient"));
        assert!(!rights(Right::Granted, Right::Missing).missing().unwrap().contains("node-bootstrapper"));
        assert_eq!(rights(Right::Granted, Right::Unknown).missing(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_is_asked_each_time_and_what_is_granted_after_a_while() {
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let reviewer = Reviewer::new(cluster.client(), true);
        let at = |minute: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minute);
        assert_eq!(reviewer.rights(at(0)).await, rights(Right::Missing, Right::Missing));
        cluster.bind_bootstrappers();
        assert_eq!(reviewer.rights(at(0)).await, rights(Right::Granted, Right::Granted));
        let other = Reviewer::new(Cluster::new(ClusterConfig::default()).unwrap().client(), true);
        *other.last.lock().await = Some((at(0), rights(Right::Granted, Right::Granted)));
        assert_eq!(other.rights(at(4)).await.request, Right::Granted);
        assert_eq!(other.rights(at(5)).await.request, Right::Missing);
    }

    #[tokio::test]
    async fn approval_does_not_matter_to_one_who_approves_himself() {
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let reviewer = Reviewer::new(cluster.client(), false);
        assert_eq!(reviewer.rights(Timestamp::UNIX_EPOCH).await, rights(Right::Missing, Right::Granted));
    }

    #[tokio::test]
    async fn one_who_may_not_ask_says_so_and_blocks_nothing() {
        let cluster = Cluster::new(ClusterConfig { rbac: true, ..ClusterConfig::default() }).unwrap();
        let reviewer = Reviewer::new(cluster.client_as("tenon", &[]), true);
        let rights = reviewer.rights(Timestamp::UNIX_EPOCH).await;
        assert_eq!((rights.request, rights.approval, rights.missing()), (Right::Unknown, Right::Unknown, None));
        assert!(rights.unasked.unwrap().contains("cannot create resource \"subjectaccessreviews\""));
    }
}
