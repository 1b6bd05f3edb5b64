//! Takes secrets out of whatever is told: Proxmox repeats what it refuses, and so do libraries.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Shorter ones would blank out ordinary words; Proxmox has refused shorter passwords for many years.
const SHORTEST: usize = 5;

/// Tickets come and go; an error may still tell of the last few.
const KEPT: usize = 8;

/// What stands where a secret stood.
const HIDDEN: &str = "(hidden)";

/// Parameters whose value nobody may read, whoever set them.
pub(crate) const SECRET_PARAMS: [&str; 4] = ["password", "cipassword", "otp", "input-data"];

/// The secrets of one client.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Mutex<VecDeque<String>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Learns one more secret, and forgets the oldest but the first, which is the lasting one.
    pub(crate) fn learn(&self, secret: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().any(|known| known == secret) {
            return;
        }
        if secrets.len() >= KEPT {
            secrets.remove(1);
        }
        secrets.push_back(secret.to_owned());
    }

    /// The text without any known secret, nor any of `more`, also not in the form they have in a request's body.
    pub(crate) fn hide(&self, text: &str, more: &[&str]) -> String {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let more = more.iter().copied().filter(|secret| secret.len() >= SHORTEST);
        let mut text = text.to_owned();
        for secret in secrets.iter().map(String::as_str).chain(more) {
            let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            for form in [secret, &encoded] {
                if text.contains(form) {
                    text = text.replace(form, HIDDEN);
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_given_secrets_are_hidden_in_both_forms() {
        let redactor = Redactor::default();
        redactor.learn("pass word");
        assert_eq!(redactor.hide("x pass word y pass+word z other1", &["other1"]), "x (hidden) y (hidden) z (hidden)");
        assert_eq!(redactor.hide("nothing here", &["h", ""]), "nothing here");
    }

    #[test]
    fn the_lasting_secret_is_kept_however_many_tickets_follow() {
        let redactor = Redactor::default();
        redactor.learn("lasting");
        (0..50).for_each(|number| redactor.learn(&format!("ticket-{number}")));
        assert_eq!(redactor.hide("lasting ticket-49", &[]), "(hidden) (hidden)");
        assert_eq!(redactor.secrets.lock().unwrap().len(), KEPT);
    }
}
