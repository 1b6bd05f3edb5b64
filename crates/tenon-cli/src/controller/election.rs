//! The Lease that decides which replica is the leader: its name, its timing, and the identity of this process.

use std::time::Duration;
use std::{env, fs};

use anyhow::Context as _;
use clap::{ArgAction, Args};
use tenon_controllers::election::{Bid, LeaseName, Timing, identity};

use super::duration;

/// The Lease's name in the chart of the reference: as both use it, both never work at once.
const NAME: &str = "proxmox-karpenter-leader-election";

/// Where Kubernetes writes in every pod which namespace it is in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The Lease's namespace for a process that runs in no pod.
const ELSEWHERE: &str = "kube-system";

/// Where Linux says its name; in a pod that is the pod's.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Leader election.
#[derive(Debug, Args)]
pub(super) struct ElectionArgs {
    /// Run without leader election. Only safe if no other replica runs.
    #[arg(long, value_name = "BOOL", env = "DISABLE_LEADER_ELECTION", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "false")]
    disable_leader_election: bool,
    /// Name of the leader election Lease.
    #[arg(long, value_name = "NAME", env = "LEADER_ELECTION_NAME", default_value = NAME)]
    leader_election_name: String,
    /// Namespace of the leader election Lease; unset: the pod's namespace, or kube-system outside of a pod.
    #[arg(long, value_name = "NAME", env = "LEADER_ELECTION_NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// A standby replica takes over the Lease when it was not renewed for this time; whole seconds.
    #[arg(long, value_name = "DURATION", env = "LEASE_DURATION", default_value = "15s", value_parser = duration::parse)]
    lease_duration: Duration,
    /// The leader exits when it cannot renew the Lease for this time.
    #[arg(long, value_name = "DURATION", env = "RENEW_DEADLINE", default_value = "10s", value_parser = duration::parse)]
    renew_deadline: Duration,
    /// Time between attempts to acquire or renew the Lease.
    #[arg(long, value_name = "DURATION", env = "RETRY_PERIOD", default_value = "2s", value_parser = duration::parse)]
    retry_period: Duration,
}

impl ElectionArgs {
    /// Whether this process is certainly alone.
    pub(super) fn is_disabled(&self) -> bool {
        self.disable_leader_election
    }

    /// What this process wants.
    pub(super) fn bid(&self) -> anyhow::Result<Bid> {
        let timing = Timing::new(self.lease_duration, self.renew_deadline, self.retry_period)
            .context("cannot use --lease-duration, --renew-deadline and --retry-period")?;
        let own = fs::read_to_string(OWN_NAMESPACE).ok();
        let identity = identity(&host_name()).context("cannot create the leader election identity of this process")?;
        Ok(Bid { at: self.lease(own.as_deref()), identity, timing })
    }

    /// The Lease, with the namespace of the pod, if there is one.
    fn lease(&self, own_namespace: Option<&str>) -> LeaseName {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let namespace = self.leader_election_namespace.as_deref().and_then(given);
        let namespace = namespace.or_else(|| own_namespace.and_then(given)).unwrap_or_else(|| ELSEWHERE.to_owned());
        let name = given(&self.leader_election_name).unwrap_or_else(|| NAME.to_owned());
        LeaseName { namespace, name }
    }
}

/// The name of the machine or pod, as far as it can stand in a header.
fn host_name() -> String {
    let name = fs::read_to_string(HOST_NAME).ok().or_else(|| env::var("HOSTNAME").ok()).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).collect();
    if name.is_empty() { "tenon".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        election: ElectionArgs,
    }

    fn read(args: &[&str]) -> Result<ElectionArgs, clap::Error> {
        // The variables of whoever runs the test are not the test's.
        let command = Line::command().mut_args(|arg| arg.env(None));
        let matches = command.try_get_matches_from(["tenon"].into_iter().chain(args.iter().copied()))?;
        Ok(Line::from_arg_matches(&matches)?.election)
    }

    #[test]
    fn an_election_is_off_only_by_a_clear_word() {
        for (args, is_disabled) in [
            (&[][..], false),
            (&["--disable-leader-election"], true),
            (&["--disable-leader-election=true"], true),
            (&["--disable-leader-election=false"], false),
        ] {
            assert_eq!(read(args).unwrap().is_disabled(), is_disabled, "{args:?}");
        }
        for args in [
            &["--disable-leader-election=1"][..],
            &["--disable-leader-election=True"],
            &["--disable-leader-election="],
            &["--disable-leader-election", "false"],
        ] {
            assert!(read(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn the_lease_is_in_the_pods_namespace_unless_another_is_named() {
        let lease = |args: &[&str], own| read(args).unwrap().lease(own).to_string();
        let standard = "proxmox-karpenter-leader-election";
        assert_eq!(lease(&[], None), format!("kube-system/{standard}"));
        assert_eq!(lease(&[], Some("karpenter\n")), format!("karpenter/{standard}"));
        let empty = ["--leader-election-namespace=", "--leader-election-name="];
        assert_eq!(lease(&empty, Some("karpenter")), format!("karpenter/{standard}"));
        assert_eq!(lease(&["--leader-election-namespace=a", "--leader-election-name=b"], Some("karpenter")), "a/b");
    }

    #[test]
    fn times_that_do_not_fit_are_named_with_their_flags() {
        assert_eq!(read(&[]).unwrap().bid().unwrap().timing, Timing::default());
        let said = format!("{:#}", read(&["--renew-deadline=15s"]).unwrap().bid().unwrap_err());
        assert!(
            said.starts_with("cannot use --lease-duration, --renew-deadline and --retry-period: the renew"),
            "{said}"
        );
    }

    #[test]
    fn no_two_processes_have_the_same_name() {
        let name = || read(&[]).unwrap().bid().unwrap().identity;
        let (first, second) = (name(), name());
        assert_ne!(first, second);
        assert!(first.starts_with(&format!("{}_", host_name())), "{first}");
    }
}
