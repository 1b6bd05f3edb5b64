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

/// What could not be asked is asked again after this long, so that a hung API server is not asked by every claim.
const UNKNOWN_FOR: SignedDuration = SignedDuration::from_secs(10);

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
        // Before the line to type, which is copied up to its end.
        let elsewhere = match self.approval {
            Right::Missing => {
                " (start the controller with --csr-approver=true or --csr-approver=external if \
                               kube-controller-manager is not to approve them)"
            }
            Right::Granted | Right::Unknown => "",
        };
        Some(format!("bootstrap tokens of group {group} {what}{elsewhere}; run: {lines}"))
    }
}

impl Rights {
    /// How long this is believed; not at all if something is missing: somebody may just have typed the line.
    fn kept_for(&self) -> Option<SignedDuration> {
        match (&self.unasked, self.missing()) {
            (Some(_), _) => Some(UNKNOWN_FOR),
            (None, None) => Some(GRANTED_FOR),
            (None, Some(_)) => None,
        }
    }

    /// What could not be asked now is as it was known: one failed question neither grants nor takes anything.
    fn or_as_known(self, known: Option<&Rights>) -> Rights {
        let or = |now: Right, before: Option<Right>| if now == Right::Unknown { before.unwrap_or(now) } else { now };
        Rights {
            request: or(self.request, known.map(|known| known.request)),
            approval: or(self.approval, known.map(|known| known.approval)),
            unasked: self.unasked,
        }
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
            && rights.kept_for().is_some_and(|kept| after(*asked, kept) > now)
        {
            return rights.clone();
        }
        let known = last.take().map(|(_, rights)| rights);
        let rights = self.ask().await.or_as_known(known.as_ref());
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
            Ok(SubjectAccessReview { status: Some(status), .. }) => answer(status),
            Ok(_) => Err("the API server answers an access review without a status".to_owned()),
            Err(error) => Err(kube_error::message(&error)),
        }
    }
}

/// What a review says. One that could not look everywhere only knows what it found.
fn answer(status: SubjectAccessReviewStatus) -> Result<bool, String> {
    match status.evaluation_error.filter(|error| !error.is_empty() && !status.allowed) {
        Some(error) => Err(format!("the API server cannot evaluate an access review: {error}")),
        None => Ok(status.allowed),
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
        assert!(both.contains("--csr-approver=external"), "{both}");
        let request = rights(Right::Missing, Right::Granted).missing().unwrap();
        assert!(!request.contains("nodeclient") && request.ends_with(group), "{request}");
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

    #[tokio::test(start_paused = true)]
    async fn a_question_that_failed_changes_nothing_that_was_known_and_is_not_asked_by_everybody() {
        let at = |second: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = asked.clone();
        let silent = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async { Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no answer")) }
        });
        let reviewer = Reviewer::new(Client::new(silent, "default"), true);
        *reviewer.last.lock().await = Some((at(0), rights(Right::Missing, Right::Granted)));
        let seen = reviewer.rights(at(1)).await;
        assert_eq!((seen.request, seen.approval), (Right::Missing, Right::Granted));
        assert!(seen.unasked.unwrap().contains("no answer"));
        let times = asked.load(std::sync::atomic::Ordering::Relaxed);
        reviewer.rights(at(10)).await;
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), times, "a moment ago");
        reviewer.rights(at(11)).await;
        assert!(asked.load(std::sync::atomic::Ordering::Relaxed) > times);
    }

    #[test]
    fn a_review_with_an_error_denies_nothing() {
        let status = |allowed, error: &str| SubjectAccessReviewStatus {
            allowed,
            evaluation_error: Some(error.to_owned()),
            ..SubjectAccessReviewStatus::default()
        };
        assert_eq!(answer(status(false, "")), Ok(false));
        assert_eq!(answer(status(true, "role x not found")), Ok(true));
        assert!(answer(status(false, "role x not found")).unwrap_err().ends_with("role x not found"));
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
