//! What happens where an index of the engine's own is out of range: tests stop there, and in production the plan says
//! that it is a bug, instead of a reason that is not true.

/// Reports that this was not found under an index that must be valid. Gives the name back, for the reason of the pod.
pub(crate) fn missing(what: &'static str) -> &'static str {
    debug_assert!(false, "{what} is not there: an index is out of range");
    what
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the template is not there"))]
    fn a_test_stops_where_an_index_is_out_of_range() {
        missing("the template");
    }
}
