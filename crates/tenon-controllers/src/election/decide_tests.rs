//! Who may lead, told by what was seen and when.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use super::decide::{Candidate, Decision, Lost, Moment};
use super::lease::{held, released};
use super::timing::Timing;

/// A stage with two clocks; times are seconds since it opened.
struct Stage {
    origin: Instant,
}

impl Stage {
    fn new() -> Stage {
        Stage { origin: Instant::now() }
    }

    fn instant(&self, second: f64) -> Instant {
        self.origin + Duration::from_secs_f64(second)
    }

    /// Both clocks agree.
    fn at(&self, second: f64) -> Moment {
        self.clocks(second, second)
    }

    fn clocks(&self, monotonic: f64, wall: f64) -> Moment {
        let wall = Timestamp::from_millisecond(1_800_000_000_000).unwrap() + SignedDuration::from_secs_f64(wall);
        Moment { monotonic: self.instant(monotonic), wall }
    }

    /// A leader whose last renewal was sent at `second`.
    fn leader(&self, second: f64) -> Candidate {
        let mut me = Candidate::new("me".to_owned(), Timing::default());
        me.wrote(lease("me", 1), self.at(second));
        me
    }
}

/// A Lease of fifteen seconds, in its n-th renewal, by a clock that is wrong by decades.
fn lease(holder: &str, renewal: i64) -> Lease {
    held(None, "lead", (holder, 15), Timestamp::from_second(renewal).unwrap())
}

fn standby() -> Candidate {
    Candidate::new("me".to_owned(), Timing::default())
}

#[test]
fn what_nobody_holds_is_taken_at_once() {
    let stage = Stage::new();
    let mut me = standby();
    me.saw(None, stage.at(0.0));
    assert_eq!(me.decide(stage.at(0.0)), Decision::Acquire);
    me.saw(Some(released(lease("other", 1), Timestamp::UNIX_EPOCH)), stage.at(1.0));
    assert_eq!(me.decide(stage.at(1.0)), Decision::Acquire);
    me.saw(Some(lease("me", 1)), stage.at(2.0));
    assert_eq!(me.decide(stage.at(2.0)), Decision::Acquire, "the answer to our own write was lost");
}

#[test]
fn a_lease_is_over_when_we_saw_no_change_for_its_duration() {
    let stage = Stage::new();
    let mut me = standby();
    // Its own times are decades old, which means nothing.
    me.saw(Some(lease("other", 1)), stage.at(100.0));
    assert_eq!(me.decide(stage.at(100.0)), Decision::Wait(stage.instant(102.0)));
    for second in [102.0, 104.0, 112.0] {
        me.saw(Some(lease("other", 1)), stage.at(second));
        assert_eq!(me.decide(stage.at(second)), Decision::Wait(stage.instant(second + 2.0)));
    }
    assert_eq!(me.decide(stage.at(114.0)), Decision::Wait(stage.instant(115.0)), "not later than it is over");
    assert_eq!(me.decide(stage.at(114.9)), Decision::Wait(stage.instant(115.0)));
    assert_eq!(me.decide(stage.at(115.0)), Decision::Acquire);
}

#[test]
fn a_holder_that_renews_is_never_taken_over() {
    let stage = Stage::new();
    let mut me = standby();
    for renewal in 0..1_000_i64 {
        let second = 14.0 * f64::from(i32::try_from(renewal).unwrap());
        me.saw(Some(lease("other", renewal)), stage.at(second));
        assert!(matches!(me.decide(stage.at(second + 13.9)), Decision::Wait(_)), "{renewal}");
    }
}

#[test]
fn a_label_on_the_lease_is_no_renewal() {
    let stage = Stage::new();
    let mut me = standby();
    me.saw(Some(lease("other", 1)), stage.at(0.0));
    let mut labelled = lease("other", 1);
    labelled.metadata.resource_version = Some("8".to_owned());
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    me.saw(Some(labelled), stage.at(10.0));
    assert_eq!(me.decide(stage.at(15.0)), Decision::Acquire);
}

#[test]
fn a_wall_clock_that_jumps_takes_nothing_over() {
    let stage = Stage::new();
    let mut me = standby();
    me.saw(Some(lease("other", 1)), stage.at(0.0));
    assert!(matches!(me.decide(stage.clocks(1.0, 86_400.0)), Decision::Wait(_)));
    assert!(matches!(me.decide(stage.clocks(1.0, -86_400.0)), Decision::Wait(_)));
    assert_eq!(me.decide(stage.clocks(15.0, -86_400.0)), Decision::Acquire);
}

#[test]
fn a_holder_says_for_how_long() {
    let stage = Stage::new();
    let mut me = standby();
    let mut long = lease("other", 1);
    long.spec.as_mut().unwrap().lease_duration_seconds = Some(60);
    me.saw(Some(long.clone()), stage.at(0.0));
    assert!(matches!(me.decide(stage.at(59.0)), Decision::Wait(_)));
    long.spec.as_mut().unwrap().lease_duration_seconds = None;
    me.saw(Some(long), stage.at(60.0));
    assert!(matches!(me.decide(stage.at(74.0)), Decision::Wait(_)));
    assert_eq!(me.decide(stage.at(75.0)), Decision::Acquire, "without a word, our own duration counts");
}

#[test]
fn a_leader_renews_in_time_and_ends_when_it_cannot() {
    let stage = Stage::new();
    let mut me = stage.leader(0.0);
    assert_eq!(me.decide(stage.at(1.0)), Decision::Wait(stage.instant(2.0)));
    for second in [2.0, 5.0, 9.9] {
        me.tick(stage.at(second));
        assert_eq!(me.decide(stage.at(second)), Decision::Renew, "{second}");
    }
    me.failure = "no answer within 5 s".to_owned();
    me.tick(stage.at(10.0));
    let Decision::Lost(lost) = me.decide(stage.at(10.0)) else { panic!("it goes on without a Lease") };
    assert_eq!(lost.to_string(), "the Lease was not renewed for 10 s: no answer within 5 s");
}

#[test]
fn a_leader_ends_when_another_name_stands_in_the_lease() {
    let stage = Stage::new();
    let mut me = stage.leader(0.0);
    me.saw(Some(lease("other", 2)), stage.at(1.0));
    assert_eq!(me.decide(stage.at(1.0)), Decision::Lost(Lost::Taken("other".to_owned())));
    me.saw(Some(released(lease("me", 2), Timestamp::UNIX_EPOCH)), stage.at(1.0));
    assert_eq!(me.decide(stage.at(1.0)), Decision::Lost(Lost::Removed));
}

#[test]
fn a_lease_that_was_deleted_is_made_again() {
    let stage = Stage::new();
    let mut me = stage.leader(0.0);
    me.saw(None, stage.at(2.0));
    assert_eq!(me.decide(stage.at(2.0)), Decision::Renew);
}

#[test]
fn whoever_slept_reads_the_lease_first() {
    let stage = Stage::new();
    // Frozen by the monotonic clock, or asleep by the wall clock alone: the same.
    for woken in [stage.at(60.0), stage.clocks(1.0, 60.0)] {
        let mut me = stage.leader(0.0);
        me.tick(woken);
        assert_eq!(me.decide(woken), Decision::Look);
        me.saw(Some(lease("me", 1)), woken);
        assert_eq!(me.decide(woken), Decision::Renew, "nobody took it: go on, but write it first");
        me.wrote(lease("me", 2), woken);
        assert!(matches!(me.decide(woken), Decision::Wait(_)));

        let mut me = stage.leader(0.0);
        me.tick(woken);
        me.saw(Some(lease("other", 1)), woken);
        assert_eq!(me.decide(woken), Decision::Lost(Lost::Taken("other".to_owned())));
    }
}

#[test]
fn whoever_slept_and_gets_no_answer_ends() {
    let stage = Stage::new();
    let mut me = stage.leader(0.0);
    for second in [60.0, 65.0, 69.9] {
        me.tick(stage.at(second));
        assert_eq!(me.decide(stage.at(second)), Decision::Look, "{second}");
    }
    me.tick(stage.at(70.0));
    assert!(matches!(me.decide(stage.at(70.0)), Decision::Lost(Lost::NotRenewed { .. })));
}

#[test]
fn a_second_sleep_is_a_new_doubt() {
    let stage = Stage::new();
    let mut me = stage.leader(0.0);
    me.tick(stage.at(60.0));
    me.saw(Some(lease("me", 1)), stage.at(60.0));
    me.tick(stage.at(120.0));
    assert_eq!(me.decide(stage.at(120.0)), Decision::Look);
}

#[test]
fn a_wall_clock_set_back_ends_no_leader_and_one_set_forward_only_makes_it_look() {
    let stage = Stage::new();
    let mut me = stage.leader(0.0);
    me.tick(stage.clocks(2.0, -3_600.0));
    assert_eq!(me.decide(stage.clocks(2.0, -3_600.0)), Decision::Renew);
    me.wrote(lease("me", 2), stage.clocks(2.0, -3_600.0));
    // Nine seconds forward are no sleep, but eleven since the last renewal.
    me.tick(stage.clocks(3.9, -3_598.1));
    me.tick(stage.clocks(4.0, -3_589.0));
    assert_eq!(me.decide(stage.clocks(4.0, -3_589.0)), Decision::Look);
}
