//! Who calls: a token in the `Authorization` header or a ticket in a cookie, and the texts for everybody else.

use sha2::{Digest, Sha256};

use crate::state::State;

const NO_TICKET: &str = "No ticket";
const FAILED: &str = "Authentication failed!";
const BAD_CSRF: &str = "Permission denied - invalid csrf token";
/// Tickets are good for two hours.
const TICKET_S: u64 = 7200;

/// What a request says about its sender.
pub(crate) struct Presented<'a> {
    pub(crate) authorization: Option<&'a str>,
    pub(crate) cookies: &'a str,
    pub(crate) csrf: Option<&'a str>,
    /// Reading needs no proof against forged requests.
    pub(crate) writes: bool,
}

/// The user or token, or the reason of the 401.
pub(crate) fn authenticate(state: &State, presented: &Presented<'_>) -> Result<String, &'static str> {
    let ticket = presented.cookies.split(';').find_map(|c| c.trim().strip_prefix("PVEAuthCookie="));
    if let Some(ticket) = ticket {
        let ticket = percent_encoding::percent_decode_str(ticket).decode_utf8_lossy();
        let user = ticket_user(state, &ticket).ok_or(FAILED)?;
        let proof = presented.csrf.is_some_and(|token| csrf_user(state, token, &user));
        return if presented.writes && !proof { Err(BAD_CSRF) } else { Ok(user) };
    }
    // The scheme is case-sensitive and takes a blank as well as `=`.
    let header = presented.authorization;
    let token = header.and_then(|h| h.strip_prefix("PVEAPIToken=").or_else(|| h.strip_prefix("PVEAPIToken ")));
    let (id, secret) = token.ok_or(NO_TICKET)?.split_once('=').ok_or(FAILED)?;
    let known = state.access.token(id).filter(|token| token.secret == secret).ok_or(FAILED)?;
    // An expired token can not be told from a wrong one.
    if known.expires.is_some_and(|at| at != 0 && at <= state.epoch()) {
        return Err(FAILED);
    }
    Ok(id.to_string())
}

/// A fresh ticket, and the token that goes with writes made with it.
pub(crate) fn issue(state: &State, user: &str) -> (String, String) {
    let at = format!("{:08X}", state.epoch());
    let ticket = format!("PVE:{user}:{at}::{}", sign(state, &format!("ticket:{user}:{at}")));
    let csrf = format!("{at}:{}", sign(state, &format!("csrf:{user}:{at}")));
    (ticket, csrf)
}

fn ticket_user(state: &State, ticket: &str) -> Option<String> {
    let (head, signature) = ticket.split_once("::")?;
    let (user, at) = head.strip_prefix("PVE:")?.rsplit_once(':')?;
    let good = is_fresh(state, at) && signature == sign(state, &format!("ticket:{user}:{at}"));
    good.then(|| user.to_string()).filter(|user| state.access.users.get(user).is_some_and(|u| u.enabled))
}

fn csrf_user(state: &State, token: &str, user: &str) -> bool {
    token
        .split_once(':')
        .is_some_and(|(at, sum)| is_fresh(state, at) && sum == sign(state, &format!("csrf:{user}:{at}")))
}

fn is_fresh(state: &State, at: &str) -> bool {
    u64::from_str_radix(at, 16).is_ok_and(|at| (at..at + TICKET_S).contains(&state.epoch()))
}

/// Good enough against accidents; the seed is no secret.
fn sign(state: &State, text: &str) -> String {
    let sum = Sha256::digest(format!("{}:{text}", state.config.seed));
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}
