//! What stands in the Lease: read it, take it, give it back. The fields mean what they mean to Kubernetes' own programs, so
//! that a controller of another make that uses the same Lease never works at the same time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

/// Who holds it; nobody, if that is empty or absent.
pub(crate) fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// How long it is good for after a change, in its holder's own words.
pub(crate) fn duration(lease: &Lease) -> Option<Duration> {
    let seconds = lease.spec.as_ref()?.lease_duration_seconds?;
    u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// Whoever takes or renews a Lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder<'a> {
    pub(crate) identity: &'a str,
    /// How long the Lease is good for after a renewal.
    pub(crate) seconds: i32,
}

/// The Lease as it is written by whoever takes or renews it; everything else in it stays as it is.
pub(crate) fn held(before: Option<&Lease>, name: &str, holder_now: &Holder<'_>, now: Timestamp) -> Lease {
    let Holder { identity, seconds } = *holder_now;
    let mut lease = before.cloned().unwrap_or_else(|| Lease {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Lease::default()
    });
    let is_ours = holder(&lease) == identity;
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    if !is_ours {
        spec.acquire_time = Some(MicroTime(now));
        spec.lease_transitions = Some(before.map_or(0, |_| spec.lease_transitions.unwrap_or(0).saturating_add(1)));
    }
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = Some(seconds);
    spec.renew_time = Some(MicroTime(now));
    lease
}

/// The Lease as it is given back: nobody's, and old in a second for programs that look only at its age.
pub(crate) fn released(mut lease: Lease, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.acquire_time = Some(MicroTime(now));
    spec.renew_time = Some(MicroTime(now));
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn transitions(lease: &Lease) -> Option<i32> {
        lease.spec.as_ref()?.lease_transitions
    }

    #[test]
    fn a_renewal_changes_its_time_and_nothing_else() {
        let mut first = held(None, "lead", &Holder { identity: "a", seconds: 15 }, at(100));
        assert_eq!(
            (holder(&first), duration(&first), transitions(&first)),
            ("a", Some(Duration::from_secs(15)), Some(0))
        );
        first.metadata.resource_version = Some("7".to_owned());
        first.metadata.labels = Some([("team".to_owned(), "x".to_owned())].into());
        let second = held(Some(&first), "lead", &Holder { identity: "a", seconds: 15 }, at(102));
        let mut expected = first.clone();
        expected.spec.as_mut().unwrap().renew_time = Some(MicroTime(at(102)));
        assert_eq!(second, expected);
    }

    #[test]
    fn every_change_of_holder_is_counted_once() {
        let first = held(None, "lead", &Holder { identity: "a", seconds: 15 }, at(100));
        let second = held(Some(&first), "lead", &Holder { identity: "b", seconds: 15 }, at(200));
        assert_eq!((holder(&second), transitions(&second)), ("b", Some(1)));
        assert_eq!(second.spec.as_ref().unwrap().acquire_time, Some(MicroTime(at(200))));
        let free = released(second, at(210));
        assert_eq!((holder(&free), duration(&free), transitions(&free)), ("", Some(Duration::from_secs(1)), Some(1)));
        let third = held(Some(&free), "lead", &Holder { identity: "a", seconds: 15 }, at(211));
        assert_eq!((holder(&third), transitions(&third)), ("a", Some(2)));
    }

    #[test]
    fn a_lease_that_says_nothing_is_nobodys() {
        assert_eq!((holder(&Lease::default()), duration(&Lease::default())), ("", None));
        let mut odd = held(None, "lead", &Holder { identity: "a", seconds: 15 }, at(100));
        odd.spec.as_mut().unwrap().lease_duration_seconds = Some(-3);
        assert_eq!(duration(&odd), None);
    }
}
