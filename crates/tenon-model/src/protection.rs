//! Who owns a pod, and whether it asks that its node be left alone.

use crate::duration::GoDuration;

/// Whoever makes a pod anew. What stays on its node whatever happens comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A DaemonSet: there is one on every node.
    DaemonSet,
    /// The node itself: a mirror of a static pod.
    Node,
    /// A StatefulSet: its successor waits until it is gone.
    StatefulSet,
    /// Something else.
    Other,
    /// Nobody.
    #[default]
    Nobody,
}

/// What a pod says about disturbing it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// Never.
    Always,
    /// Not for so long after it started; always while it has not.
    For(GoDuration),
    /// Something nobody understands, which protects nothing; its owner should know.
    Unreadable(String),
}

impl Protection {
    /// What an annotation says: `true`, or a duration above zero.
    pub fn of(text: &str) -> Protection {
        match text.parse::<GoDuration>() {
            _ if text == "true" => Protection::Always,
            Ok(duration) if duration > GoDuration::default() => Protection::For(duration),
            _ => Protection::Unreadable(text.to_owned()),
        }
    }

    /// Whether it holds for a pod that started so many nanoseconds ago, or not yet.
    pub fn holds(&self, since_start_nanos: Option<i64>) -> bool {
        match self {
            Protection::Always => true,
            Protection::For(duration) => since_start_nanos.is_none_or(|since| since < duration.as_nanos()),
            Protection::None | Protection::Unreadable(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_holds_for_ever_or_for_a_time() {
        assert_eq!(Protection::of("true"), Protection::Always);
        let minute = Protection::of("1m");
        assert!(minute.holds(None) && minute.holds(Some(59_999_999_999)) && !minute.holds(Some(60_000_000_000)));
        for text in ["", "false", "True", "0", "0s", "-1m", "1d", "1"] {
            let said = Protection::of(text);
            assert_eq!(said, Protection::Unreadable(text.to_owned()));
            assert!(!said.holds(None));
        }
        assert!(!Protection::None.holds(None));
    }
}
