//! The disruption command as it stands in an annotation of every NodeClaim that goes: JSON, with names that stay.
//!
//! It is written before anything else is changed, so that whoever finds a marked node also finds why, with which others, and for
//! which replacements.

use serde::{Deserialize, Serialize};
use tenon_model::{DisruptionReason, Seconds};

use crate::names;
use crate::nodeclaim::NodeClaim;

/// A command that disrupts nodes together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionRecord {
    /// Its id, which its replacements carry, too.
    pub id: String,
    /// How the nodes were found, such as `single-node`.
    pub method: String,
    /// Why they go.
    #[serde(with = "reason")]
    pub reason: DisruptionReason,
    /// The NodeClaims that go.
    pub candidates: Vec<String>,
    /// The NodeClaims that come for them. Their names are chosen before they are created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replacements: Vec<String>,
    /// When it was decided.
    pub started_at: i64,
    /// Whether all replacements exist.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replacing: bool,
    /// What is wrong with the node, if it is repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairRecord>,
    /// Which move it is: the same again is not tried while nothing changed, if it failed.
    #[serde(default)]
    pub fingerprint: u64,
}

/// Why a node is repaired, and how long its pods have to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairRecord {
    /// The type of the condition that it is repaired for.
    pub condition: String,
    /// Nanoseconds from when it is deleted; none: as long as its NodeClaim says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_bound_ns: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Static pools count their own nodes, so theirs are not counted as leaving before they are deleted.
const STATIC_DRIFT: &str = "static-drift";

/// A broken node may be one of a static pool, too.
const REPAIR: &str = "repair";

impl DisruptionRecord {
    /// As it is written.
    pub fn write(&self) -> String {
        // Numbers, texts and lists always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What is written on a NodeClaim; nothing if it is in no command, and an error if nobody can read it.
    pub fn of(claim: &NodeClaim) -> Option<Result<DisruptionRecord, DisruptionRecordError>> {
        let text = claim.metadata.annotations.as_ref()?.get(names::ANNOTATION_DISRUPTION)?;
        Some(serde_json::from_str(text).map_err(|error| DisruptionRecordError { why: error.to_string() }))
    }

    /// When it was decided.
    pub fn started(&self) -> Seconds {
        Seconds(self.started_at)
    }

    /// Whether the nodes count as leaving: their replacements exist, and plans put their pods there.
    pub fn is_leaving(&self) -> bool {
        self.replacing && ![STATIC_DRIFT, REPAIR].contains(&self.method.as_str())
    }
}

/// Whether a NodeClaim goes as soon as its replacements are ready.
pub(crate) fn is_being_replaced(claim: &NodeClaim) -> bool {
    DisruptionRecord::of(claim).is_some_and(|record| record.is_ok_and(|record| record.is_leaving()))
}

/// Why a text is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read annotation tenon.dev/disruption: {why}")]
pub struct DisruptionRecordError {
    why: String,
}

/// Reasons in the words of the condition `DisruptionReason`.
mod reason {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use tenon_model::DisruptionReason;

    const WORDS: [(DisruptionReason, &str); 4] = [
        (DisruptionReason::Underutilized, "Underutilized"),
        (DisruptionReason::Empty, "Empty"),
        (DisruptionReason::Drifted, "Drifted"),
        (DisruptionReason::Unhealthy, "Unhealthy"),
    ];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
    pub(super) fn serialize<S: Serializer>(reason: &DisruptionReason, to: S) -> Result<S::Ok, S::Error> {
        let word = WORDS.iter().find(|(known, _)| known == reason).map_or("Empty", |(_, word)| word);
        to.serialize_str(word)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DisruptionReason, D::Error> {
        let text = String::deserialize(from)?;
        let found = WORDS.iter().find(|(_, word)| *word == text);
        found.map(|(reason, _)| *reason).ok_or_else(|| serde::de::Error::custom(format!("unknown reason {text}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> DisruptionRecord {
        DisruptionRecord {
            id: "5f2c91ab03".to_owned(),
            method: "multi-node".to_owned(),
            reason: DisruptionReason::Underutilized,
            candidates: vec!["default-a".to_owned(), "default-b".to_owned()],
            replacements: vec!["default-x7k2m".to_owned()],
            started_at: 1_700_000_000,
            replacing: false,
            repair: None,
            fingerprint: u64::MAX,
        }
    }

    fn claim(text: &str) -> NodeClaim {
        let class = json!({ "group": "g", "kind": "k", "name": "n" });
        let metadata = json!({ "name": "default-a", "annotations": { names::ANNOTATION_DISRUPTION: text } });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "requirements": [], "nodeClassRef": class } }))
            .unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_and_the_text_is_the_one_that_stands_in_clusters() {
        let text = r#"{"id":"5f2c91ab03","method":"multi-node","reason":"Underutilized","candidates":["default-a","default-b"],"replacements":["default-x7k2m"],"startedAt":1700000000,"fingerprint":18446744073709551615}"#;
        assert_eq!(record().write(), text);
        assert_eq!(DisruptionRecord::of(&claim(text)), Some(Ok(record())));
        let later = text.replace("\"startedAt\"", "\"addedLater\":[],\"startedAt\"");
        assert_eq!(DisruptionRecord::of(&claim(&later)), Some(Ok(record())));
    }

    #[test]
    fn a_text_that_is_no_record_is_an_error_and_no_annotation_is_none() {
        for text in ["", "{}", "null", &record().write().replace("Underutilized", "Bored")] {
            assert!(matches!(DisruptionRecord::of(&claim(text)), Some(Err(_))), "{text}");
        }
        let mut without = claim("");
        without.metadata.annotations = None;
        assert_eq!(DisruptionRecord::of(&without), None);
    }

    #[test]
    fn a_node_counts_as_leaving_once_its_replacements_exist() {
        let replacing = DisruptionRecord { replacing: true, ..record() };
        let of_static = DisruptionRecord { method: STATIC_DRIFT.to_owned(), ..replacing.clone() };
        assert!(!is_being_replaced(&claim(&record().write())));
        assert!(is_being_replaced(&claim(&replacing.write())));
        let of_repair = DisruptionRecord { method: REPAIR.to_owned(), ..replacing.clone() };
        assert!(!is_being_replaced(&claim(&of_repair.write())));
        assert!(!is_being_replaced(&claim(&of_static.write())) && !is_being_replaced(&claim("?")));
    }
}
