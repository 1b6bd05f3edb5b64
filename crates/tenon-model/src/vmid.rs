//! The number of a guest in a Proxmox cluster, and the range we take new ones from.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The id of a VM: unique in one Proxmox cluster at one time, and given to another VM once it is free again. It is
/// therefore never a proof of ownership by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmId(u32);

impl VmId {
    /// Proxmox keeps everything below for itself.
    pub const MIN: VmId = VmId(100);
    /// The largest id the Proxmox API takes.
    pub const MAX: VmId = VmId(999_999_999);

    /// The plain number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for VmId {
    type Error = VmIdError;

    fn try_from(number: u32) -> Result<VmId, VmIdError> {
        if (VmId::MIN.0..=VmId::MAX.0).contains(&number) {
            Ok(VmId(number))
        } else {
            Err(VmIdError::OutOfBounds { text: number.to_string() })
        }
    }
}

impl FromStr for VmId {
    type Err = VmIdError;

    /// Digits only: a sign or a leading zero would name the same VM in two ways.
    fn from_str(text: &str) -> Result<VmId, VmIdError> {
        let text_owned = || text.to_owned();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with('0') {
            return Err(VmIdError::NotANumber { text: text_owned() });
        }
        // All digits, so this fails only for a number larger than any id.
        let number: u32 = text.parse().map_err(|_| VmIdError::OutOfBounds { text: text_owned() })?;
        VmId::try_from(number)
    }
}

impl fmt::Display for VmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ids new VMs are given: `first` and `last` are both in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmIdRange {
    first: VmId,
    last: VmId,
}

impl VmIdRange {
    /// The range from `first` to `last`, both included.
    pub fn new(first: VmId, last: VmId) -> Result<VmIdRange, VmIdError> {
        if first <= last { Ok(VmIdRange { first, last }) } else { Err(VmIdError::EmptyRange { first, last }) }
    }

    /// The lowest id in the range that is not taken, or `None` when the range is used up.
    pub fn lowest_free(self, taken: &BTreeSet<VmId>) -> Option<VmId> {
        let mut candidate = self.first.0;
        for used in taken.range(self.first..=self.last) {
            if used.0 != candidate {
                break;
            }
            candidate += 1;
        }
        (candidate <= self.last.0).then_some(VmId(candidate))
    }

    /// The lowest id above `after` that is not taken; when there is none, the lowest of all.
    pub fn next_free(self, taken: &BTreeSet<VmId>, after: Option<VmId>) -> Option<VmId> {
        let above = after.and_then(|after| VmId::try_from(after.0.saturating_add(1)).ok());
        let above = above.filter(|first| *first <= self.last).map(|first| first.max(self.first));
        let rest = above.and_then(|first| VmIdRange { first, last: self.last }.lowest_free(taken));
        rest.or_else(|| self.lowest_free(taken))
    }

    /// The lowest id of the range.
    pub fn first(self) -> VmId {
        self.first
    }

    /// Whether the id is one of ours to give.
    pub fn contains(self, id: VmId) -> bool {
        (self.first..=self.last).contains(&id)
    }
}

impl Default for VmIdRange {
    /// High enough to stay clear of ids that people choose by hand.
    fn default() -> VmIdRange {
        VmIdRange { first: VmId(20_000), last: VmId(29_999) }
    }
}

/// Why a text or number is no [`VmId`], or two ids no [`VmIdRange`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VmIdError {
    /// Not made of digits.
    #[error("`{text}` is not a VM ID; use a whole number without sign or leading zeros")]
    NotANumber {
        /// What was given.
        text: String,
    },
    /// A number Proxmox does not take.
    #[error("`{text}` is not a VM ID; VM IDs range from {} to {}", VmId::MIN, VmId::MAX)]
    OutOfBounds {
        /// What was given.
        text: String,
    },
    /// A range that ends before it starts.
    #[error("the VM ID range {first} to {last} is empty: the first ID must not be greater than the last")]
    EmptyRange {
        /// The id it starts with.
        first: VmId,
        /// The id it ends with.
        last: VmId,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u32) -> VmId {
        VmId::try_from(number).unwrap()
    }

    #[test]
    fn only_what_proxmox_takes_is_an_id() {
        for good in ["100", "20000", "999999999"] {
            assert_eq!(good.parse::<VmId>().unwrap().to_string(), good);
        }
        for bad in ["", "99", "0", "1000000000", "99999999999999999999", "-100", "+100", "0100", "1e3", " 100", "100 "]
        {
            assert!(bad.parse::<VmId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_full_range_has_no_free_id() {
        let range = VmIdRange::new(id(100), id(102)).unwrap();
        assert_eq!(range.lowest_free(&BTreeSet::from([id(100), id(101), id(102), id(500)])), None);
        assert_eq!(range.lowest_free(&BTreeSet::from([id(100), id(102)])), Some(id(101)));
        assert!(VmIdRange::new(id(102), id(100)).is_err());
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(number in 100_u32..=999_999_999) {
            prop_assert_eq!(id(number).to_string().parse::<VmId>(), Ok(id(number)));
        }

        #[test]
        fn the_next_id_is_above_the_last_one_or_else_the_lowest(
            taken in proptest::collection::btree_set(100_u32..140, 0..40), after in 100_u32..140,
        ) {
            let range = VmIdRange::new(id(105), id(130)).unwrap();
            let mut order = (after + 1..=130).chain(105..=130).filter(|number| (105..=130).contains(number));
            let expected = order.find(|number| !taken.contains(number)).map(id);
            let taken: BTreeSet<VmId> = taken.into_iter().map(id).collect();
            prop_assert_eq!(range.next_free(&taken, Some(id(after))), expected);
        }

        #[test]
        fn the_free_id_is_the_lowest_that_nobody_has(taken in proptest::collection::btree_set(100_u32..140, 0..40)) {
            let range = VmIdRange::new(id(105), id(130)).unwrap();
            let expected = (105..=130).find(|number| !taken.contains(number)).map(id);
            let taken: BTreeSet<VmId> = taken.into_iter().map(id).collect();
            prop_assert_eq!(range.lowest_free(&taken), expected);
        }
    }
}
