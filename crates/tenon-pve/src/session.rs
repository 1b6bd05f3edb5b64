//! What a request carries to be let in: a token as it is, or a ticket that is fetched, kept and renewed.
//!
//! A ticket lives two hours. It is renewed before that, once for all who wait, and again when Proxmox refuses it (its
//! keys change when a cluster is joined or restored). A refusal is remembered for a while: each costs three seconds, and
//! a directory behind the realm may lock the user out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Builder;
use http::{HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::{Call, Client};
use crate::credentials::{Credentials, Password};
use crate::error::{Cause, Error, Result};
use crate::refusal::{Refusal, RefusalKind};
use crate::reply::{parse, unreadable};

/// How long Proxmox takes a ticket.
const TICKET_LIVES: Duration = Duration::from_secs(2 * 60 * 60);

/// Half an hour is left to find an endpoint that renews it.
const RENEWED_AFTER: Duration = Duration::from_secs(90 * 60);

/// How long a refused password is not tried again.
const REFUSAL_HOLDS: Duration = Duration::from_secs(30);

const CSRF: HeaderName = HeaderName::from_static("csrfpreventiontoken");

/// What lets one request in.
#[derive(Clone)]
pub(crate) enum Authority {
    /// Nothing: the request is the one that asks for a ticket.
    Nobody,
    Token(HeaderValue),
    Ticket(Arc<Ticket>),
}

/// A ticket with what Proxmox wants beside it for a write.
pub(crate) struct Ticket {
    cookie: HeaderValue,
    csrf: HeaderValue,
    since: Instant,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(hidden)")
    }
}

impl Authority {
    /// Puts the headers on a request.
    pub(crate) fn sign(&self, request: Builder, method: &Method) -> Builder {
        match self {
            Authority::Nobody => request,
            Authority::Token(value) => request.header(header::AUTHORIZATION, value),
            Authority::Ticket(ticket) => {
                let request = request.header(header::COOKIE, &ticket.cookie);
                if method == Method::GET { request } else { request.header(CSRF, &ticket.csrf) }
            }
        }
    }
}

/// What the client knows about being let in.
#[derive(Debug)]
pub(crate) struct Session {
    credentials: Credentials,
    /// Held over a renewal, so that whoever comes meanwhile waits for it instead of asking too.
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Nothing,
    Held(Arc<Ticket>),
    Refused(Instant, Refusal),
}

#[derive(Deserialize)]
struct Wire {
    ticket: Option<String>,
    #[serde(rename = "CSRFPreventionToken")]
    csrf: Option<String>,
    #[serde(rename = "NeedTFA")]
    second_factor: Option<serde_json::Value>,
}

impl Session {
    pub(crate) fn new(credentials: Credentials) -> Session {
        Session { credentials, state: Mutex::new(State::Nothing) }
    }

    /// Who calls.
    pub(crate) fn user(&self) -> &str {
        self.credentials.user()
    }

    /// Whether it is `root@pam` itself.
    pub(crate) fn is_root(&self) -> bool {
        matches!(&self.credentials, Credentials::Password(password) if password.user() == "root@pam")
    }

    /// Forgets a ticket that was refused, unless somebody has a newer one already. Says whether asking again makes sense.
    pub(crate) async fn forget(&self, refused: &Authority) -> bool {
        let Authority::Ticket(refused) = refused else { return false };
        let mut state = self.state.lock().await;
        if matches!(&*state, State::Held(held) if Arc::ptr_eq(held, refused)) {
            *state = State::Nothing;
        }
        true
    }
}

impl Client {
    /// What the next request carries; fetches a ticket if there is none, or if it is old.
    pub(crate) async fn authority(&self) -> Result<Authority> {
        let session = self.session();
        let password = match &session.credentials {
            Credentials::Token(token) => {
                let unsendable = |_| {
                    Cause::NotSent(crate::TransportError::Withheld(
                        "the API token contains characters that cannot be sent in an HTTP header".into(),
                    ))
                };
                return token
                    .header()
                    .map(Authority::Token)
                    .map_err(|error| Error::new("use the API token", unsendable(error)));
            }
            Credentials::Password(password) => password,
        };
        let mut state = session.state.lock().await;
        let old = match &*state {
            State::Held(ticket) if ticket.since.elapsed() < RENEWED_AFTER => {
                return Ok(Authority::Ticket(ticket.clone()));
            }
            State::Refused(since, refusal) if since.elapsed() < REFUSAL_HOLDS => {
                return Err(Error::new(log_in(password), Cause::Refused(refusal.clone())));
            }
            State::Held(ticket) => Some(ticket.clone()),
            State::Nothing | State::Refused(..) => None,
        };
        let outcome = self.fetch_ticket(password).await;
        match (outcome, old) {
            (Ok(ticket), _) => {
                let ticket = Arc::new(ticket);
                *state = State::Held(ticket.clone());
                Ok(Authority::Ticket(ticket))
            }
            // Nobody could be asked; the old one is good for a while.
            (Err(error), Some(old)) if error.refusal().is_none() && old.since.elapsed() < TICKET_LIVES => {
                Ok(Authority::Ticket(old))
            }
            (Err(error), _) => {
                let refusal = error.refusal().filter(|refusal| refusal.kind == RefusalKind::Unauthorized);
                *state = refusal.map_or(State::Nothing, |refusal| State::Refused(Instant::now(), refusal.clone()));
                Err(error.before_another())
            }
        }
    }

    async fn fetch_ticket(&self, password: &Password) -> Result<Ticket> {
        // Before the call: a ticket counts from when Proxmox made it, which is not later than this.
        let since = Instant::now();
        let params = [("username", password.user().to_owned()), ("password", password.secret().to_owned())];
        let path = "/access/ticket".to_owned();
        let call = Call { action: log_in(password), method: Method::POST, path, params: &params };
        let data = self.call_as(&call, &Authority::Nobody).await?;
        let unusable = |what: &str| Error::new(log_in(password), unreadable(what));
        let wire: Wire = parse(data).map_err(|_| unusable("the login reply has an unknown format"))?;
        if wire.second_factor.is_some_and(|needed| needed != 0 && needed != false) {
            return Err(unusable("the user needs a second factor; use an API token instead"));
        }
        let (Some(ticket), Some(csrf)) = (wire.ticket, wire.csrf) else {
            return Err(unusable("the login reply contains no ticket"));
        };
        let secret = |text: String| {
            self.redactor().learn(&text);
            let mut value = HeaderValue::from_str(&text).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        self.redactor().learn(&ticket);
        let cookie = format!("PVEAuthCookie={}", crate::client::segment(&ticket));
        let (cookie, csrf) = (secret(cookie), secret(csrf));
        let (Some(cookie), Some(csrf)) = (cookie, csrf) else {
            return Err(unusable("the ticket contains characters that cannot be sent in an HTTP header"));
        };
        Ok(Ticket { cookie, csrf, since })
    }
}

fn log_in(password: &Password) -> String {
    format!("log in as {}", password.user())
}
