//! Who calls: the token in the `Authorization` header, and the two texts for everybody else.

use crate::state::State;

const NO_TICKET: &str = "No ticket";
const FAILED: &str = "Authentication failed!";

/// The token id, or the reason of the 401.
pub(crate) fn authenticate(state: &State, header: Option<&str>) -> Result<String, &'static str> {
    // The scheme is case-sensitive and takes a blank as well as `=`.
    let token = header.and_then(|h| h.strip_prefix("PVEAPIToken=").or_else(|| h.strip_prefix("PVEAPIToken ")));
    let (id, secret) = token.ok_or(NO_TICKET)?.split_once('=').ok_or(FAILED)?;
    let known = state.tokens.iter().find(|t| t.id == id && t.secret == secret).ok_or(FAILED)?;
    // An expired token can not be told from a wrong one.
    if known.expires.is_some_and(|at| at <= state.epoch()) {
        return Err(FAILED);
    }
    Ok(known.id.clone())
}
