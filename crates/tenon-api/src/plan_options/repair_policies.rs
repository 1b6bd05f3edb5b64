//! Policies of node repair: a list with the fields of Karpenter's own policies. It replaces the default policies as a whole.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tenon_model::{GoDuration, RepairAction, RepairPolicies, RepairPolicy};

use super::{PlanOptions, yaml_options};
use crate::yaml_words;

/// A policy. A field nobody knows is an error, and so is a missing one that decides when or what is done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    condition_type: String,
    condition_status: String,
    #[serde(default)]
    reason_regex: String,
    toleration_duration: String,
    #[serde(default)]
    termination_grace_period: Option<String>,
    #[serde(default)]
    priority: i64,
    action: String,
}

/// Takes the policies from a list, or from its text.
pub(super) fn apply(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    let written: Vec<Written> = match value {
        Value::String(text) if text.trim().is_empty() => return Ok(()),
        Value::String(text) => {
            serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| yaml_words::words(&error))?
        }
        other => serde_json::from_value(other.clone()).map_err(|error| error.to_string())?,
    };
    let policies = written.into_iter().enumerate();
    let policies =
        policies.map(|(index, written)| policy(written).map_err(|why| format!("policy {}: {why}", index + 1)));
    let policies = policies.collect::<Result<Vec<RepairPolicy>, String>>()?;
    options.repair_policies = RepairPolicies::new(policies).map_err(|fault| fault.to_string())?;
    Ok(())
}

fn policy(written: Written) -> Result<RepairPolicy, String> {
    let action = [RepairAction::ReplaceNode, RepairAction::RebootNode];
    let action = action.into_iter().find(|action| action.as_str() == written.action);
    Ok(RepairPolicy {
        condition: written.condition_type,
        status: written.condition_status,
        reason_regex: written.reason_regex,
        toleration: duration("tolerationDuration", &written.toleration_duration)?,
        grace_period: match written.termination_grace_period {
            Some(text) => Some(duration("terminationGracePeriod", &text)?),
            None => None,
        },
        priority: written.priority,
        action: action.ok_or_else(|| format!("action `{}` is neither ReplaceNode nor RebootNode", written.action))?,
    })
}

fn duration(field: &str, text: &str) -> Result<Duration, String> {
    let parsed: GoDuration = text.parse().map_err(|error| format!("{field}: {error}"))?;
    let nanos = u64::try_from(parsed.as_nanos());
    nanos.map(Duration::from_nanos).map_err(|_| format!("{field} {text} is negative; give 0s or more"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REBOOT: &str = "
- conditionType: Ready
  conditionStatus: Unknown
  tolerationDuration: 15m
  action: ReplaceNode
- conditionType: KernelDeadlock
  conditionStatus: \"True\"
  reasonRegex: ^AUFSUmountHung$
  tolerationDuration: 5m
  terminationGracePeriod: 0s
  priority: 10
  action: RebootNode
";

    fn read(value: &Value) -> Result<RepairPolicies, String> {
        let mut options = PlanOptions::default();
        apply(&mut options, value).map(|()| options.repair_policies)
    }

    #[test]
    fn j1_policies_are_read_with_the_fields_of_karpenter() {
        let found = read(&json!(REBOOT)).unwrap();
        let second = found.iter().nth(1).unwrap();
        assert_eq!((second.condition.as_str(), second.status.as_str()), ("KernelDeadlock", "True"));
        assert_eq!((second.priority, second.action), (10, RepairAction::RebootNode));
        assert_eq!((second.toleration, second.grace_period), (Duration::from_secs(300), Some(Duration::ZERO)));
        let file = super::super::read(&format!("repairPolicies:{}", REBOOT.replace('\n', "\n  "))).unwrap();
        assert_eq!(file.repair_policies, found, "in a file it is a list, too");
        assert_eq!(read(&json!(" ")).unwrap(), RepairPolicies::default(), "an empty text decides nothing");
    }

    #[test]
    fn j1_what_is_no_set_of_policies_is_refused_with_its_place() {
        let with = |change: &[(&str, &str)]| {
            let text = change.iter().fold(REBOOT.to_owned(), |text, (from, to)| text.replace(from, to));
            read(&json!(text)).unwrap_err()
        };
        for (from, to, words) in [
            ("RebootNode", "Reboot", "policy 2: action `Reboot` is neither ReplaceNode nor RebootNode"),
            ("5m\n  term", "-5m\n  term", "policy 2: tolerationDuration -5m is negative"),
            ("0s", "soon", "policy 2: terminationGracePeriod: "),
            ("priority: 10", "priority: 101", "policy 2: priority 101 is not between 0 and 100"),
            ("priority", "prio", "unknown field `prio`"),
            ("  reasonRegex: ^AUFSUmountHung$\n", "", "2 policies have no reasonRegex"),
            ("  action: ReplaceNode\n", "", "missing field `action`"),
            ("ReplaceNode", "RebootNode", "policy 1: the policy without reasonRegex is the fallback"),
        ] {
            let said = with(&[(from, to)]);
            assert!(said.contains(words), "{to}: {said}");
        }
        assert!(read(&json!([])).unwrap_err().contains("there is no policy"));
        assert!(read(&json!({ "a": 1 })).is_err());
    }
}
