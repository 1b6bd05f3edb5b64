//! Nothing the client prints has a secret in it: every error it can be brought to, and everything it is made of.

use std::error::Error as _;

use tenon_pve::{ChangesNothing, Client, Credentials, Error, Password, Retry, Token, Tuning};

use crate::door::{Door, PASSWORD, TOKEN_ID, TOKEN_SECRET, USER, Way};

/// The password of a guest, which is a parameter of a call.
const GUEST_PASSWORD: &str = "guest-pass-word";

/// What a client that is logged in with a password must not print: its secrets as they are, and as they are sent.
const OF_PASSWORD: [&str; 6] = [
    PASSWORD,
    "corr3ct+h0rse%26",
    "PVE:root@pam::ticket-1",
    "PVE%3Aroot%40pam%3A%3Aticket-1",
    "csrf-1",
    GUEST_PASSWORD,
];

/// The same for one with a token.
const OF_TOKEN: [&str; 2] = [TOKEN_SECRET, GUEST_PASSWORD];

/// Everything an error prints: each of its causes, as text and for programmers.
fn printed(error: &Error) -> Vec<String> {
    let mut all = vec![error.full_message(), error.to_string(), format!("{error:?}"), format!("{error:#?}")];
    let mut cause = error.source();
    while let Some(error) = cause {
        all.extend([error.to_string(), format!("{error:?}")]);
        cause = error.source();
    }
    all
}

fn check(texts: &[String], secrets: &[&str], what: &str) {
    for text in texts {
        for secret in secrets {
            assert!(!text.contains(secret), "{what}: `{secret}` in {text}");
        }
    }
}

/// Every way to fail, with everything repeated that may be repeated.
fn ways(echo: &str) -> Vec<(&'static str, Way)> {
    let says = |status, reason: &str, body: &str| Way::Says(status, reason.to_owned(), body.to_owned());
    let fields = serde_json::json!({ "errors": { "cipassword": echo, "name": echo }, "message": echo }).to_string();
    vec![
        ("refused", says(500, echo, "")),
        ("only a message", says(500, "", &fields)),
        ("fields", says(400, "Parameter verification failed.", &fields)),
        ("denied", says(403, &format!("Permission check failed ({echo}, {echo}|{echo})"), "")),
        ("root only", says(500, &format!("only root can set '{echo}' config"), "")),
        ("locked", says(500, &format!("VM is locked ({echo})"), "")),
        ("unauthorized", says(401, echo, "")),
        ("host down", says(595, echo, "")),
        ("no task", says(200, "OK", &serde_json::json!({ "data": echo }).to_string())),
        ("no JSON", says(200, "OK", echo)),
        ("broken", Way::Breaks),
        ("closed", Way::Closed),
    ]
}

/// Brings a client into every error there is.
async fn errors(client: &Client, door: &Door, secrets: &[&str]) -> Vec<(&'static str, Error)> {
    let (host, vmid) = ("pve1".parse().unwrap(), "100".parse().unwrap());
    let params = [("cipassword", GUEST_PASSWORD.to_owned()), ("name", "x".to_owned())];
    let mut errors = Vec::new();
    for (what, way) in ways(&secrets.join(" ")) {
        // Logged in before, so that there is a ticket to be told.
        door.set("pve1", Way::Open);
        client.version().await.unwrap();
        door.set("pve1", way);
        errors.extend(client.configure_vm_in_task(&host, vmid, &params).await.err().map(|error| (what, error)));
        errors.extend(client.configure_vm(&host, vmid, &params).await.err().map(|error| (what, error)));
        errors.extend(client.create_vm(&host, vmid, &params).await.err().map(|error| (what, error)));
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
    }
    errors
}

#[tokio::test(start_paused = true)]
async fn no_error_tells_a_secret() {
    let clients: [(Credentials, &[&str]); 2] = [
        (Token::new(TOKEN_ID, TOKEN_SECRET).unwrap().into(), &OF_TOKEN),
        (Password::new(USER, PASSWORD).unwrap().into(), &OF_PASSWORD),
    ];
    for (credentials, secrets) in clients {
        let door = Door::default();
        let once = Tuning { retry: Retry { attempts: 1, ..Retry::default() }, ..Tuning::default() };
        let client = door.client(&["pve1"], credentials.clone(), once);
        let errors = errors(&client, &door, secrets).await;
        assert!(errors.len() >= 35, "{}", errors.len());
        for (what, error) in &errors {
            check(&printed(error), secrets, what);
        }
        let hidden = errors.iter().filter(|(_, error)| error.full_message().contains("(hidden)")).count();
        assert!(hidden >= 20, "{hidden}");
        check(&[format!("{client:?}"), format!("{client:#?}"), format!("{credentials:?}")], secrets, "the client");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_login_tells_no_password() {
    let door = Door::default();
    door.state.lock().unwrap().instead = Some((401, OF_PASSWORD[..2].join(" "), String::new()));
    let client = door.client(&["pve1"], Password::new(USER, PASSWORD).unwrap(), Tuning::default());
    let error = client.version().await.unwrap_err();
    check(&printed(&error), &OF_PASSWORD, "the first time");
    assert!(error.full_message().starts_with("cannot log in as root@pam: "), "{}", error.full_message());
    // The remembered refusal is told as safely as the first.
    let again = client.version().await.unwrap_err();
    check(&printed(&again), &OF_PASSWORD, "the second time");
}

#[tokio::test(start_paused = true)]
async fn headers_that_carry_secrets_are_marked_so() {
    let canned = crate::recordings::Canned::new([
        Some(crate::recordings::reply(
            200,
            "OK",
            r#"{"data":{"ticket":"PVE:x::ticket-1","CSRFPreventionToken":"csrf-1"}}"#,
        )),
        Some(crate::recordings::reply(200, "OK", r#"{"data":null}"#)),
    ]);
    canned.client_of(Password::new(USER, PASSWORD).unwrap()).create_pool("p", None).await.unwrap();
    canned.client().create_pool("p", None).await.unwrap();
    let seen = canned.seen.lock().unwrap();
    let texts: Vec<String> = seen.iter().map(|seen| format!("{:?}", seen.request)).collect();
    assert_eq!(texts.len(), 3);
    for text in &texts {
        assert!(!text.contains("ticket-1") && !text.contains("csrf-1") && !text.contains("0a1b2c3d-secret"), "{text}");
    }
    assert!(texts[1].contains("csrfpreventiontoken") && texts[1].contains("cookie"), "{}", texts[1]);
    let passes_fences = |index: usize| seen[index].request.extensions.get::<ChangesNothing>().is_some();
    assert!(passes_fences(0) && !passes_fences(1) && !passes_fences(2), "only the login changes nothing");
    assert!(seen[0].body.starts_with(b"username=root%40pam&password="), "the login goes into the body");
}
