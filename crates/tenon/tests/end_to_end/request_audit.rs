//! Is every request that a controller made to Proxmox in the table of privileges? Answered from the ledger, for every world at its end.

use std::collections::BTreeSet;

use anyhow::ensure;
use tenon_pve::pve_rights::{Flow, unlisted};
use tenon_sim::LedgerEntry;

/// The token of Proxmox's administrator: what people and tests do is in no table.
pub(crate) const ADMIN: (&str, &str) = ("admin@pve!tests", "99999999-2222-3333-4444-555555555555");

/// The token of the Go provider's controller, which asks what it likes.
pub(crate) const GO_PROVIDER: (&str, &str) = ("tenon@pve!go", "88888888-2222-3333-4444-555555555555");

/// Fails if somebody asked what is not in the table.
pub(crate) fn keeps_to_the_table(ledger: &[LedgerEntry]) -> anyhow::Result<()> {
    let unlisted = outside(ledger);
    ensure!(unlisted.is_empty(), "not in pve_rights/table.rs: {unlisted:#?}");
    Ok(())
}

/// What only root may set, whatever the privileges of others (`--node-policy static`).
const ONLY_ROOT: (&str, &str) = ("root@pam", "affinity");

fn outside(ledger: &[LedgerEntry]) -> BTreeSet<String> {
    let others = [ADMIN.0, GO_PROVIDER.0];
    let made = ledger.iter().filter(|entry| !others.contains(&entry.user.as_str()));
    // The same is asked again and again: each request is looked up once.
    let requests: BTreeSet<(&str, &str, Vec<&str>)> = made
        .map(|entry| {
            let is_read = entry.method == "GET";
            let is_told = |key: &&str| !is_read && (entry.user.as_str(), *key) != ONLY_ROOT;
            let keys = entry.params.keys().map(String::as_str).filter(is_told).collect();
            (entry.method.as_str(), entry.path.as_str(), keys)
        })
        .collect();
    let told =
        requests.into_iter().flat_map(|(method, path, keys)| unlisted(&Flow::MADE, (method, path), keys.into_iter()));
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: &str, method: &str, path: &str, keys: &[&str]) -> LedgerEntry {
        LedgerEntry {
            at: std::time::Duration::ZERO,
            user: user.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            params: keys.iter().map(|key| ((*key).to_owned(), String::new())).collect(),
            status: 200,
            reason: "OK".to_owned(),
            upid: None,
        }
    }

    #[test]
    fn a_request_or_an_option_that_is_in_no_row_is_named_and_what_others_ask_is_not() {
        let ledger = [
            entry("a", "GET", "/version", &[]),
            entry("a", "GET", "/cluster/options", &[]),
            entry("a", "PUT", "/nodes/pve1/qemu/20000/config", &["cores", "args"]),
            entry("root@pam", "PUT", "/nodes/pve1/qemu/20000/config", &["affinity"]),
            entry(ADMIN.0, "PUT", "/cluster/options", &[]),
            entry(GO_PROVIDER.0, "GET", "/storage", &[]),
        ];
        let told: Vec<String> = outside(&ledger).into_iter().collect();
        assert_eq!(told, ["GET /cluster/options", "`args` of PUT /nodes/pve1/qemu/20000/config"]);
    }
}
