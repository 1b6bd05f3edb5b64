//! How many nodes `5` or `10%` are.

use std::fmt;
use std::str::FromStr;

/// A number of nodes, or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeShare {
    /// So many.
    Count(u32),
    /// So many of a hundred, at most all.
    Percent(u32),
}

impl NodeShare {
    /// As many as there are; the number the reference's metrics show.
    pub const UNBOUNDED: u32 = 2_147_483_647;

    /// How many of so many nodes it is; a share is rounded up.
    pub fn of(self, nodes: usize) -> u32 {
        match self {
            NodeShare::Count(count) => count,
            NodeShare::Percent(percent) => {
                let nodes = u64::try_from(nodes).unwrap_or(u64::MAX);
                let share = u64::from(percent).saturating_mul(nodes).div_ceil(100);
                u32::try_from(share).unwrap_or(Self::UNBOUNDED).min(Self::UNBOUNDED)
            }
        }
    }
}

impl FromStr for NodeShare {
    type Err = NodeShareError;

    fn from_str(text: &str) -> Result<NodeShare, NodeShareError> {
        let refused = || NodeShareError { text: text.to_owned() };
        let digits = text.strip_suffix('%').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = digits.parse().ok().filter(|_| is_number).ok_or_else(refused)?;
        let is_percent = digits.len() < text.len();
        match number {
            ..=100 if is_percent => Ok(NodeShare::Percent(number)),
            ..=Self::UNBOUNDED if !is_percent => Ok(NodeShare::Count(number)),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for NodeShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeShare::Count(count) => write!(f, "{count}"),
            NodeShare::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// A text that is no [`NodeShare`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a number of nodes; use a number such as 5 or a percentage such as 10%")]
pub struct NodeShareError {
    /// What was given.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_rounded_up() {
        let tenth: NodeShare = "10%".parse().unwrap();
        let counted: Vec<u32> = [0, 1, 10, 11, 19, 20].into_iter().map(|nodes| tenth.of(nodes)).collect();
        assert_eq!(counted, [0, 1, 1, 2, 2, 2]);
        assert_eq!(NodeShare::Count(3).of(1), 3);
        assert_eq!(NodeShare::Percent(100).of(7), 7);
        assert_eq!(NodeShare::Percent(100).of(usize::MAX), NodeShare::UNBOUNDED);
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in ["", "%", "-1", "+1", "1.5", "101%", "1000%", "10 %", "10%%", "2147483648", "٣", "5 "] {
            assert!(text.parse::<NodeShare>().is_err(), "{text}");
        }
        assert_eq!("007%".parse(), Ok(NodeShare::Percent(7)));
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(number in 0..=NodeShare::UNBOUNDED) {
            let count = NodeShare::Count(number);
            prop_assert_eq!(count.to_string().parse(), Ok(count));
            let percent = NodeShare::Percent(number % 101);
            prop_assert_eq!(percent.to_string().parse(), Ok(percent));
        }
    }
}
