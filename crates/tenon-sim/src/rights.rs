//! Whether somebody may make a call, asked before its parameters are even read.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::params::Raw;
use crate::schema::{Given, Rights};
use crate::state::State;
use crate::wire::{Refusal, Shape};

/// Refuses a call its caller has no right to, with PVE's words.
pub(crate) fn check(state: &State, who: &str, rights: &Rights, given: &Given) -> Result<(), Refusal> {
    let Rights::Check(check) = rights else { return Ok(()) };
    RightsQuery { state, who, given }.check(check).map_err(|detail| forbidden(detail.as_deref()))
}

/// A 403, with or without what was missing.
pub(crate) fn forbidden(detail: Option<&str>) -> Refusal {
    let text = detail.map_or("Permission check failed".into(), |detail| format!("Permission check failed ({detail})"));
    Refusal::new(403, text, Shape::Json)
}

/// The same for one privilege on one path.
pub(crate) fn require(state: &State, who: &str, path: &str, privilege: &str) -> Result<(), Refusal> {
    if state.may(who, path, privilege) {
        return Ok(());
    }
    Err(forbidden(Some(&format!("{path}, {privilege}"))))
}

struct RightsQuery<'a> {
    state: &'a State,
    who: &'a str,
    given: &'a BTreeMap<String, Raw>,
}

impl RightsQuery<'_> {
    /// `Err` carries what is missing, when there is one thing to name.
    fn check(&self, check: &Value) -> Result<(), Option<String>> {
        let word = |at: usize| check.get(at).and_then(Value::as_str).unwrap_or("");
        let rest = || check.as_array().into_iter().flatten().skip(1);
        let one = |good: bool| if good { Ok(()) } else { Err(None) };
        match word(0) {
            // The alternatives span paths, so there is nothing to name.
            "or" => one(rest().any(|check| self.check(check).is_ok())),
            "and" => rest().try_for_each(|check| self.check(check)),
            "perm" => self.privileges(word(1), check),
            "perm-modify" => {
                let path = self.given.get("path").map_or("", Raw::text);
                one(self.state.may(self.who, path, "Permissions.Modify"))
            }
            "userid-param" if word(1) == "self" => {
                let user = self.who.split('!').next().unwrap_or("");
                one(self.given.get("userid").map_or("", Raw::text) == user)
            }
            "userid-param" => one(self.state.may(self.who, "/access/realm", word(1))),
            "userid-group" => {
                let needed = check.get(1).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
                one(needed.into_iter().all(|name| self.state.may(self.who, "/access/groups", name)))
            }
            _ => Ok(()),
        }
    }

    fn privileges(&self, template: &str, check: &Value) -> Result<(), Option<String>> {
        let options: Vec<&str> = check.as_array().into_iter().flatten().skip(3).filter_map(Value::as_str).collect();
        let required = options.iter().position(|o| *o == "require_param").and_then(|at| options.get(at + 1));
        if required.is_some_and(|name| !self.given.contains_key(*name)) {
            return Err(None);
        }
        let needed: Vec<&str> =
            check.get(2).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let path = self.path(template);
        let held = |name: &&str| !path.is_empty() && self.state.may(self.who, &path, name);
        let good = if options.contains(&"any") { needed.iter().any(held) } else { needed.iter().all(held) };
        if good { Ok(()) } else { Err(Some(format!("{path}, {}", needed.join("|")))) }
    }

    /// The path with its parameters filled in; empty when it can not be a path.
    fn path(&self, template: &str) -> String {
        let mut parts = Vec::new();
        for part in template.split('/').filter(|part| !part.is_empty()) {
            match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
                Some(name) => parts.push(self.given.get(name).map_or("", Raw::text)),
                None => parts.push(part),
            }
        }
        let good = |part: &&str| part.chars().all(|c| c.is_ascii_alphanumeric() || "-_./@!".contains(c));
        if parts.iter().all(good) { format!("/{}", parts.join("/")) } else { String::new() }
    }
}
