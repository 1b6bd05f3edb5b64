//! What was asked of the estate, in the order it was executed. Tests compare it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::params::Raw;
use crate::schema::Given;
use crate::state::State;

/// Older entries are dropped beyond this, so that a long storm does not eat the memory.
const LEDGER_ENTRIES: usize = 200_000;
const SECRETS: &[&str] = &["cipassword", "password"];

/// One call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// When it was executed, counted from the making of the estate.
    pub at: Duration,
    /// The user or token that asked.
    pub user: String,
    /// HTTP method.
    pub method: String,
    /// Decoded path below `/api2/json`.
    pub path: String,
    /// Decoded parameters; secrets are replaced by stars.
    pub params: BTreeMap<String, String>,
    /// HTTP status.
    pub status: u16,
    /// Reason phrase.
    pub reason: String,
    /// The task it started.
    pub upid: Option<String>,
}

/// Parameters fit to be shown.
pub(crate) fn redact(given: &Given) -> BTreeMap<String, String> {
    let show = |(name, raw): (&String, &Raw)| {
        let text = match raw {
            _ if SECRETS.contains(&name.as_str()) => "***".to_string(),
            Raw::Text(text) => text.clone(),
            Raw::Many(all) => all.join(","),
            Raw::Nested => "{}".to_string(),
        };
        (name.clone(), text)
    };
    given.iter().map(show).collect()
}

impl State {
    pub(crate) fn record(&mut self, entry: LedgerEntry) {
        if self.ledger.len() >= LEDGER_ENTRIES {
            self.ledger.pop_front();
        }
        self.ledger.push_back(entry);
    }
}
