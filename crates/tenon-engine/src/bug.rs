//! What happens where an index of the engine's own is out of range: tests stop there, and in production the plan says
//! that it is a bug, instead of a reason that is not true.

/// Reports that this was not found under an index that must be valid. Gives the name back, for the reason of the pod.
pub(crate) fn missing(what: &'static str) -> &'static str {
    debug_assert!(false, "{what} is not there: an index is out of range");
    what
}

/// What was looked up under an index that must be valid; tests stop where it is not there.
pub(crate) fn found<T>(thing: Option<T>, what: &'static str) -> Option<T> {
    debug_assert!(thing.is_some(), "{what} is not there: an index is out of range");
    thing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the template is not there"))]
    fn a_test_stops_where_an_index_is_out_of_range() {
        missing("the template");
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the slot is not there"))]
    fn a_test_stops_where_nothing_is_found() {
        assert_eq!(found(Some(1), "the slot"), Some(1));
        assert_eq!(found(None::<u8>, "the slot"), None);
    }
}
