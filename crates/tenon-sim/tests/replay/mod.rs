//! Does the simulator answer what a real Proxmox VE 9.2 was recorded to answer?
//!
//! Every recorded request is sent again, in the recorded order, and the whole answer is compared: status, reason,
//! headers, body, and what was read afterwards. What lies between two recorded requests and was not recorded is made up
//! for by `prelude.txt`. Names that are new every time are matched one to one; everything else must be equal.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod compare;
mod exceptions;
mod exchanges;
mod names;
mod prelude;
mod recording;
mod world;

use exceptions::{EXCEPTIONS, OBSERVATIONS};

/// Topics that are not promised: privileges in depth, more than one host, quorum.
const LEFT_OUT: &[&str] = &["perm", "minpriv", "minpriv-template", "cluster3", "quorum"];
/// At least this part of the exchanges must be equal.
const PROMISED: f64 = 0.95;

#[test]
fn the_simulator_answers_like_the_recorded_one() {
    let rows: Vec<_> = recording::rows().into_iter().filter(|row| !LEFT_OUT.contains(&row.topic.as_str())).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let outcomes = runtime.block_on(exchanges::replay(&rows));
    let failed: Vec<_> = outcomes.iter().filter_map(|(id, outcome)| Some((id, outcome.as_ref().err()?))).collect();
    let total = outcomes.len();
    let share = (total - failed.len()) as f64 / total as f64;
    println!("{} of {total} recorded exchanges answered equally: {:.1} %", total - failed.len(), share * 100.0);
    for (id, difference) in &failed {
        println!("   {id}: {difference}");
    }
    let excused = |id: &str| EXCEPTIONS.iter().any(|(name, _)| *name == id);
    let surprising: Vec<_> = failed.iter().filter(|(id, _)| !excused(id)).collect();
    assert!(surprising.is_empty(), "answered differently: {surprising:#?}");
    let needless: Vec<_> =
        EXCEPTIONS.iter().filter(|(name, _)| !failed.iter().any(|(id, _)| id.as_str() == *name)).collect();
    assert!(
        needless.is_empty(),
        "these are answered equally or were never recorded; take them off the list: {needless:?}"
    );
    assert!(share >= PROMISED, "only {:.1} % are answered equally", share * 100.0);
}

/// Rows without a request tell of something that was watched; each is proved by a test of its own.
#[test]
fn what_was_only_watched_is_proved_elsewhere() {
    let rows = recording::rows();
    let watched = rows.iter().filter(|row| row.request.is_none() && !LEFT_OUT.contains(&row.topic.as_str()));
    let mut watched: Vec<&str> = watched.map(|row| row.id.as_str()).collect();
    let mut listed: Vec<&str> = OBSERVATIONS.iter().map(|(id, _)| *id).collect();
    watched.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, watched);
    let tests: String = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/estate"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    for (id, proof) in OBSERVATIONS {
        if let Ok(test) = proof {
            assert!(tests.contains(&format!("fn {test}(")), "{id} is to be proved by `{test}`, which does not exist");
        }
    }
}
