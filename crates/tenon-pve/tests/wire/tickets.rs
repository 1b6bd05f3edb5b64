//! Being let in with a password: a ticket is fetched once, renewed in time, and renewed once when it is refused.

use std::time::Duration;

use tenon_pve::{Client, Password, RefusalKind, Token, Tuning};

use crate::door::{Door, PASSWORD, TOKEN_ID, USER, Way};

const MINUTE: Duration = Duration::from_secs(60);

fn client(door: &Door, password: &str) -> Client {
    door.client(&["pve1"], Password::new(USER, password).unwrap(), Tuning::default())
}

fn logins(door: &Door) -> u32 {
    door.state.lock().unwrap().logins
}

#[tokio::test(start_paused = true)]
async fn a_password_becomes_a_ticket_and_writes_carry_its_second_half() {
    let door = Door::default();
    let client = client(&door, PASSWORD);
    client.version().await.unwrap();
    client.create_pool("p", None).await.unwrap();
    client.delete_pool("p").await.unwrap();
    assert_eq!(logins(&door), 1);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_is_renewed_before_it_dies() {
    let door = Door::default();
    let client = client(&door, PASSWORD);
    client.version().await.unwrap();
    tokio::time::advance(89 * MINUTE).await;
    client.version().await.unwrap();
    assert_eq!(logins(&door), 1);
    tokio::time::advance(2 * MINUTE).await;
    client.version().await.unwrap();
    assert_eq!(logins(&door), 2);
    let paths: Vec<String> = door.asked().into_iter().map(|(_, what)| what).collect();
    let login = "POST /access/ticket";
    assert_eq!(paths, [login, "GET /version", "GET /version", login, "GET /version"], "no request was refused");
}

#[tokio::test(start_paused = true)]
async fn a_refused_ticket_is_renewed_and_the_call_goes_out_once_more() {
    let door = Door::default();
    let client = client(&door, PASSWORD);
    client.version().await.unwrap();
    door.state.lock().unwrap().good += 1000;
    client.create_pool("p", None).await.unwrap();
    assert_eq!((logins(&door), door.count("pve1")), (2, 5));
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_is_refused_again_is_not_renewed_for_ever() {
    let door = Door::default();
    let client = client(&door, PASSWORD);
    door.state.lock().unwrap().refuses_all = true;
    let error = client.create_pool("p", None).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Unauthorized);
    let pools = door.asked().iter().filter(|(_, what)| what == "POST /pools").count();
    assert_eq!((logins(&door), pools), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn many_who_come_at_once_share_one_login() {
    let door = Door::default();
    door.set("pve1", Way::Slow(Duration::from_secs(1)));
    let client = client(&door, PASSWORD);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let client = client.clone();
        callers.spawn(async move { client.version().await.unwrap() });
    }
    assert_eq!(callers.join_all().await.len(), 10);
    assert_eq!(logins(&door), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_told_and_not_tried_at_every_call() {
    let door = Door::default();
    let client = client(&door, "wrong one");
    for _ in 0..5 {
        let error = client.version().await.unwrap_err();
        assert_eq!(error.full_message(), "cannot log in as root@pam: authentication failure");
        assert_eq!(error.refusal().unwrap().kind, RefusalKind::Unauthorized);
    }
    assert_eq!(logins(&door), 1);
    tokio::time::advance(Duration::from_secs(31)).await;
    client.version().await.unwrap_err();
    assert_eq!(logins(&door), 2);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_still_lives_is_used_while_nobody_renews_it() {
    let door = Door::default();
    let client = client(&door, PASSWORD);
    client.version().await.unwrap();
    tokio::time::advance(100 * MINUTE).await;
    door.state.lock().unwrap().instead = Some((595, "No route to host".to_owned(), String::new()));
    client.version().await.unwrap();
    tokio::time::advance(21 * MINUTE).await;
    let error = client.create_pool("p", None).await.unwrap_err();
    // The login is open, the call is not: it was never sent.
    assert!(error.is_not_sent() && error.full_message().contains("No route to host"), "{}", error.full_message());
}

#[tokio::test(start_paused = true)]
async fn a_user_with_a_second_factor_is_told_to_use_a_token() {
    let door = Door::default();
    let body = r#"{"data":{"ticket":"PVE:!tfa!","CSRFPreventionToken":"c","NeedTFA":1}}"#;
    door.state.lock().unwrap().instead = Some((200, "OK".to_owned(), body.to_owned()));
    let error = client(&door, PASSWORD).version().await.unwrap_err();
    assert!(
        error.full_message().ends_with("the user needs a second factor; use an API token instead"),
        "{}",
        error.full_message()
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_not_tried_again() {
    let door = Door::default();
    let client = door.client(&["pve1"], Token::new(TOKEN_ID, "wrong-secret").unwrap(), Tuning::default());
    let error = client.create_pool("p", None).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Unauthorized);
    assert_eq!((logins(&door), door.count("pve1")), (0, 1));
}
