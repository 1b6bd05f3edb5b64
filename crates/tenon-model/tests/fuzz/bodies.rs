//! What must hold for any text at all: a parser takes it or refuses it, and what it takes it prints so that it reads the
//! same again.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use tenon_model::labels::{canonical_label, is_restricted};
use tenon_model::{
    GoDuration, HostName, NodeShare, Operator, Protection, ProviderId, PveSize, Quantity, Requirements, Schedule,
    Seconds, Timespan, TimespanOrNever, VmId, WrittenRequirement, label_text, validation,
};

fn printing_and_reading_agree<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    let Ok(value) = text.parse::<T>() else { return };
    let printed = value.to_string();
    let again = printed.parse::<T>().ok();
    assert_eq!(again.as_ref(), Some(&value), "{text:?} is printed as {printed:?}");
    assert_eq!(again.map(|value| value.to_string()).as_ref(), Some(&printed), "{text:?} is printed in two ways");
}

pub(crate) fn quantity(text: &str) {
    printing_and_reading_agree::<Quantity>(text);
    let read = text.trim().parse::<Quantity>();
    let stored = Quantity::as_stored(text);
    assert_eq!(read.is_ok(), stored.is_ok(), "{text:?}");
    if let (Ok(read), Ok(stored)) = (read, stored) {
        let _ = (read.milli_value(), read + read, -read, read.at_least_zero());
        assert_eq!(Quantity::as_stored(&stored).as_ref(), Ok(&stored), "{text:?} is stored as {stored:?}");
        let is_beyond = read.value() == i64::MAX || read.value() == i64::MIN;
        assert!(is_beyond || stored.parse() == Ok(read), "{text:?} is stored as {stored:?}");
    }
}

pub(crate) fn duration(text: &str) {
    printing_and_reading_agree::<GoDuration>(text);
    printing_and_reading_agree::<TimespanOrNever>(text);
    let _ = Protection::of(text).holds(Some(0));
    if let Ok(span) = text.parse::<Timespan>() {
        assert_eq!(span.to_string(), text);
        if let Ok(go) = text.parse::<GoDuration>() {
            assert_eq!(i128::from(go.as_nanos()), i128::from(span.as_seconds()) * 1_000_000_000, "{text:?}");
        }
    }
}

pub(crate) fn schedule(text: &str) {
    printing_and_reading_agree::<Schedule>(text);
    if let Ok(schedule) = text.parse::<Schedule>() {
        let now = Seconds(1_773_187_200);
        let hit = schedule.last_hit(now);
        assert!(hit <= now && hit.0 % 60 == 0, "{text:?} came up at {hit:?}");
        assert_eq!(schedule.last_hit(hit), hit, "{text:?}");
        assert!(schedule.is_active(now, u64::MAX) && !schedule.is_active(now, 0));
    }
}

pub(crate) fn node_share(text: &str) {
    printing_and_reading_agree::<NodeShare>(text);
    if let Ok(share) = text.parse::<NodeShare>() {
        assert!(share.of(usize::MAX) <= NodeShare::UNBOUNDED && share.of(0) <= share.of(1_000));
    }
}

pub(crate) fn label(text: &str) {
    let canonical = canonical_label(text);
    assert_eq!(canonical_label(canonical), canonical);
    let _ = is_restricted(text);
    // A good value is a good name without a prefix, and the other way round.
    if !text.is_empty() && !text.contains('/') {
        assert_eq!(label_text::key_faults(text).is_empty(), label_text::value_faults(text).is_empty(), "{text:?}");
    }
}

pub(crate) fn provider_id(text: &str) {
    printing_and_reading_agree::<ProviderId>(text);
    if let Ok(id) = text.parse::<ProviderId>() {
        assert_eq!(id.to_string(), text);
    }
}

pub(crate) fn pve_size(text: &str) {
    printing_and_reading_agree::<PveSize>(text);
}

pub(crate) fn pve_name(text: &str) {
    printing_and_reading_agree::<HostName>(text);
    printing_and_reading_agree::<VmId>(text);
}

/// `label operator value,value`.
pub(crate) fn demand(text: &str) {
    let mut words = text.splitn(3, ' ');
    let (Some(label), Some(operator)) = (words.next(), words.next()) else { return };
    let Ok(operator) = operator.parse::<Operator>() else { return };
    let values = words.next().map(|values| values.split(',').map(str::to_owned).collect()).unwrap_or_default();
    let demand = WrittenRequirement { label: label.to_owned(), operator, values, min_values: None };
    let faults = validation::requirement_faults(&demand);
    let Ok(read) = Requirements::read([&demand]) else {
        assert!(!faults.is_empty(), "{demand} says nothing, and nobody tells");
        return;
    };
    assert_eq!(Requirements::read(&read.written()).as_ref(), Ok(&read), "{demand}");
    for (_, requirement) in read.iter() {
        assert!(requirement.any().is_none_or(|value| requirement.has(&value)), "{demand}");
        assert_eq!(&requirement.and(requirement), requirement);
    }
}
