//! How long do VMs of one class have to launch and to join? Where a class does not say so, the controller's flags do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenon_model::Timespan;

/// Whole hours, minutes and seconds, together more than none: a time-out of nothing would end every launch at once.
pub(crate) const POSITIVE_DURATION: &str = r"^([0-9]+(s|m|h))*[0-9]*[1-9][0-9]*(s|m|h)([0-9]+(s|m|h))*$";

/// Time limits of the VMs of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTimeouts {
    /// How long the launch of a VM may make no progress, such as `10m`. Then the NodeClaim is deleted and its pods are
    /// planned again. Unset: the value of `--launch-timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POSITIVE_DURATION))]
    pub launch: Option<String>,
    /// How long a started VM may take to join as a Node, such as `30m` for an image that installs much on its first
    /// boot. Then the NodeClaim and its VM are deleted. Unset: 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POSITIVE_DURATION))]
    pub registration: Option<String>,
}

impl ClassTimeouts {
    /// Seconds of a launch without progress, if the class says so.
    pub fn launch_s(&self) -> Option<i64> {
        seconds(self.launch.as_deref())
    }

    /// Seconds until a started VM must have joined, if the class says so.
    pub fn registration_s(&self) -> Option<i64> {
        seconds(self.registration.as_deref())
    }
}

/// What is no duration, or none at all, never comes past the schema; from a server that has an older one, it says nothing.
fn seconds(text: Option<&str>) -> Option<i64> {
    let span: Timespan = text?.parse().ok()?;
    Some(i64::try_from(span.as_seconds()).unwrap_or(i64::MAX)).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_says_seconds_or_nothing() {
        let of = |text: &str| ClassTimeouts { launch: Some(text.to_owned()), registration: None };
        assert_eq!(of("1h30m").launch_s(), Some(5400));
        assert_eq!(of("1h30m").registration_s(), None);
        assert_eq!((of("0s").launch_s(), of("soon").launch_s(), of("").launch_s()), (None, None, None));
        assert_eq!(of(&format!("{}h", "9".repeat(60))).launch_s(), Some(i64::MAX));
    }
}
