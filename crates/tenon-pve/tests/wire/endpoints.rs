//! Several endpoints, failing connections, limits: what goes out again, where, and how often.

use std::time::Duration;

use bytes::Bytes;
use tenon_pve::{Cause, Client, Doubtful, Error, Limits, Retry, Token, TransportError, Tuning};

use crate::door::{Door, TOKEN_ID, TOKEN_SECRET, Way};

fn client(door: &Door, endpoints: &[&str], tuning: Tuning) -> Client {
    door.client(endpoints, Token::new(TOKEN_ID, TOKEN_SECRET).unwrap(), tuning)
}

fn is_lost(error: &Error) -> bool {
    matches!(error.cause(), Cause::MaybeDone(Doubtful::Lost(_)))
}

#[tokio::test(start_paused = true)]
async fn a_dead_endpoint_is_passed_over_and_not_asked_first_again() {
    let door = Door::default();
    door.set("pve1", Way::Closed);
    let client = client(&door, &["pve1", "pve2", "pve3"], Tuning::default());
    client.create_pool("p", None).await.unwrap();
    client.version().await.unwrap();
    assert_eq!((door.count("pve1"), door.count("pve2"), door.count("pve3")), (1, 2, 0));
    door.set("pve1", Way::Open);
    door.set("pve2", Way::Closed);
    client.version().await.unwrap();
    assert_eq!((door.count("pve1"), door.count("pve3")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_not_sent_to_another_endpoint() {
    for way in [Way::Breaks, Way::Silent] {
        let door = Door::default();
        door.set("pve1", way.clone());
        let client = client(&door, &["pve1", "pve2"], Tuning::default());
        let error = client.create_pool("p", None).await.unwrap_err();
        assert!(is_lost(&error), "{way:?}: {}", error.full_message());
        assert_eq!((door.count("pve1"), door.count("pve2")), (1, 0), "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_asked_of_another_endpoint() {
    let door = Door::default();
    door.set("pve1", Way::Says(500, "VM is locked (clone)".to_owned(), String::new()));
    client(&door, &["pve1", "pve2"], Tuning::default()).version().await.unwrap_err();
    assert_eq!((door.count("pve1"), door.count("pve2")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn attempts_end() {
    let door = Door::default();
    door.set("pve1", Way::Closed);
    door.set("pve2", Way::Closed);
    let tuning = Tuning { retry: Retry { attempts: 4, first_pause: Duration::from_secs(1) }, ..Tuning::default() };
    let before = tokio::time::Instant::now();
    let error = client(&door, &["pve1", "pve2"], tuning).create_pool("p", None).await.unwrap_err();
    assert!(error.is_not_sent(), "{}", error.full_message());
    assert_eq!((door.count("pve1"), door.count("pve2")), (4, 4));
    assert_eq!(before.elapsed(), Duration::from_secs(1 + 2 + 4));
}

#[tokio::test(start_paused = true)]
async fn a_broken_read_is_asked_again_and_a_broken_write_is_not() {
    let door = Door::default();
    door.set("pve1", Way::Breaks);
    let client = client(&door, &["pve1"], Tuning::default());
    assert!(is_lost(&client.version().await.unwrap_err()));
    assert_eq!(door.count("pve1"), 3);
    for write in [client.create_pool("p", None).await, client.delete_pool("p").await] {
        assert!(is_lost(&write.unwrap_err()));
    }
    assert_eq!(door.count("pve1"), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_waited_for_thirty_seconds_once() {
    let door = Door::default();
    door.set("pve1", Way::Silent);
    let client = client(&door, &["pve1"], Tuning::default());
    let before = tokio::time::Instant::now();
    let error = client.version().await.unwrap_err();
    let is_timeout = matches!(error.cause(), Cause::MaybeDone(Doubtful::Lost(TransportError::TimedOut(30))));
    assert!(is_timeout, "{}", error.full_message());
    assert_eq!((door.count("pve1"), before.elapsed()), (1, Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_under_way_than_each_place_takes() {
    let door = Door::default();
    door.set("pve1", Way::Slow(Duration::from_secs(1)));
    let limits = Limits { region: 7, host: 3, storage: 2, per_second: None, wait: Duration::from_secs(600) };
    let client = client(&door, &["pve1"], Tuning { limits, ..Tuning::default() });
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..60 {
        let client = client.clone();
        let host = ["a", "b", "c"][number % 3].parse().unwrap();
        callers.spawn(async move {
            if number % 2 == 0 {
                drop(client.upload_iso(&host, "shared", "x.iso", &Bytes::new()).await);
            } else {
                drop(client.host_status(&host).await);
            }
        });
    }
    callers.join_all().await;
    let most = door.state.lock().unwrap().most.clone();
    assert_eq!((most["region"], most["host a"], most["storage shared"]), (7, 3, 2), "{most:?}");
    assert_eq!(door.asked().len(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_gets_no_place_was_not_sent() {
    let door = Door::default();
    door.set("pve1", Way::Silent);
    let limits = Limits { region: 1, wait: Duration::from_secs(5), ..Limits::default() };
    let client = client(&door, &["pve1"], Tuning { limits, ..Tuning::default() });
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.version().await }
    });
    tokio::task::yield_now().await;
    let error = client.version().await.unwrap_err();
    assert!(error.is_not_sent() && error.full_message().contains("waited 5 s"), "{}", error.full_message());
    assert_eq!(door.count("pve1"), 1);
    assert!(is_lost(&first.await.unwrap().unwrap_err()));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_gets_no_answer_goes_to_another_endpoint_and_the_hung_one_is_not_asked_first_again() {
    let door = Door::default();
    door.set("pve1", Way::Silent);
    let client = client(&door, &["pve1", "pve2"], Tuning::default());
    let before = tokio::time::Instant::now();
    client.version().await.unwrap();
    assert_eq!((door.count("pve1"), door.count("pve2"), before.elapsed().as_secs()), (1, 1, 16));
    client.version().await.unwrap();
    client.create_pool("p", None).await.unwrap();
    assert_eq!((door.count("pve1"), door.count("pve2"), before.elapsed().as_secs()), (1, 3, 16));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_gets_no_answer_is_not_sent_again_but_the_next_call_goes_elsewhere() {
    let door = Door::default();
    door.set("pve1", Way::Silent);
    let client = client(&door, &["pve1", "pve2"], Tuning::default());
    assert!(is_lost(&client.create_pool("p", None).await.unwrap_err()));
    assert_eq!((door.count("pve1"), door.count("pve2")), (1, 0));
    client.create_pool("p", None).await.unwrap();
    assert_eq!((door.count("pve1"), door.count("pve2")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_wait_long_says_so() {
    let door = Door::default();
    door.set("pve1", Way::Silent);
    door.set("pve2", Way::Silent);
    let client = client(&door, &["pve1", "pve2"], Tuning::default());
    let before = tokio::time::Instant::now();
    let error = client.within(Duration::from_secs(3)).version().await.unwrap_err();
    let is_timeout = matches!(error.cause(), Cause::MaybeDone(Doubtful::Lost(TransportError::TimedOut(3))));
    assert!(is_timeout, "{}", error.full_message());
    assert_eq!((door.count("pve1"), door.count("pve2"), before.elapsed().as_secs()), (1, 1, 6));
}
