//! How much processor time the children of this process have used.
//!
//! The kernel tells it in ticks of 10 ms, and only of children that have ended and were waited for. A compiler that runs
//! for less than a tick counts as nothing; over a whole build that is about a second, and it shows up as "the rest".

use std::fs;

use anyhow::Context as _;

/// Where the kernel says it.
const FILE: &str = "/proc/self/stat";

/// Of the fields after the program's name, how many come before the time children spent in user mode; the time they
/// spent in the kernel is next.
const FIELDS_BEFORE: usize = 13;

/// Seconds of processor time, user and system together, of all children so far and of their children.
pub(crate) fn of_children() -> anyhow::Result<f64> {
    let text = fs::read_to_string(FILE)
        .with_context(|| format!("cannot read {FILE}; `cargo xtask size` measures processor time on Linux only"))?;
    let ticks = children_ticks(&text).with_context(|| format!("cannot read {FILE}: fields are missing"))?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn children_ticks(stat: &str) -> Option<u64> {
    // The name is in parentheses and may itself contain some, and spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(FIELDS_BEFORE);
    Some(times.next()?.parse::<u64>().ok()? + times.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_of_children_are_added_whatever_the_program_is_called() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 1 2 3 4 10 20 300 4000 20 0 1 0 100 1 1\n";
        assert_eq!(children_ticks(stat), Some(4300));
        assert_eq!(children_ticks("42 (a) S 1 2"), None);
    }

    #[test]
    fn the_time_of_this_process_can_be_read() {
        assert!(of_children().unwrap() >= 0.0);
    }
}
