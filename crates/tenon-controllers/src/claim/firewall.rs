//! Puts the cards of a VM into security groups: which rules a VM has, which it should have, and the next change.
//!
//! Rules that people added stay. Ours carry a comment, and stand before all others in the order of the class. New rules come
//! before old ones are removed, so that a node that runs is never without them.

use tenon_api::SecurityGroup;
use tenon_model::{HostName, VmId};
use tenon_pve::{Client, Error, FirewallRule, NewRule};

/// The comment that tells our rules from those of people.
const COMMENT: &str = "tenon.dev";

/// Bounded: ten groups are added, removed and moved with far fewer.
const CHANGES: usize = 64;

/// What a VM is told when it gets its first security group, as the reference does.
const OPTIONS: [(&str, &str); 4] = [("enable", "1"), ("dhcp", "1"), ("policy_in", "DROP"), ("policy_out", "ACCEPT")];

/// A change of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleChange {
    /// Put a group before all rules.
    Add(SecurityGroup),
    /// Put a rule before the one that is at another position now.
    Move { from: u64, to: u64 },
    /// Switch a rule on that somebody switched off.
    Enable(u64),
    /// Take a rule of ours away.
    Remove(u64),
}

/// The next change, until the rules are as they should be.
fn next_change(rules: &[FirewallRule], groups: &[SecurityGroup]) -> Option<RuleChange> {
    let is = |rule: &FirewallRule, group: &SecurityGroup| {
        rule.kind == "group" && rule.action == group.name && rule.iface.as_deref() == Some(&group.interface)
    };
    // Each new rule comes first, so the last of those that are missing is added first.
    if let Some(missing) = groups.iter().rev().find(|group| !rules.iter().any(|rule| is(rule, group))) {
        return Some(RuleChange::Add(missing.clone()));
    }
    let first = |group: &SecurityGroup| rules.iter().find(|rule| is(rule, group));
    if let Some(off) = groups.iter().filter_map(first).find(|rule| !rule.enable) {
        return Some(RuleChange::Enable(off.pos));
    }
    for (place, rule) in groups.iter().filter_map(first).enumerate() {
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        if rule.pos != place {
            return Some(RuleChange::Move { from: rule.pos, to: place });
        }
    }
    let surplus = rules.iter().skip(groups.len()).filter(|rule| is_ours(rule)).map(|rule| rule.pos).max();
    surplus.map(RuleChange::Remove)
}

fn is_ours(rule: &FirewallRule) -> bool {
    rule.kind == "group" && rule.comment.as_deref() == Some(COMMENT)
}

/// The VM whose rules are changed.
pub(crate) struct VmFirewall<'a> {
    pub(crate) pve: &'a Client,
    pub(crate) host: &'a HostName,
    pub(crate) vmid: VmId,
}

impl VmFirewall<'_> {
    /// Puts a new VM into its groups. It is known to have no rules yet: nothing is read.
    pub(crate) async fn begin(&self, groups: &[SecurityGroup]) -> Result<(), Error> {
        self.switch_on().await?;
        for group in groups.iter().rev() {
            self.add(group).await?;
        }
        Ok(())
    }

    /// Makes the rules of a VM what they should be, whatever they are. Without groups the firewall stays as it is, but for our
    /// own rules.
    pub(crate) async fn settle(&self, groups: &[SecurityGroup]) -> Result<(), Error> {
        let mut rules = self.pve.firewall_rules(self.host, self.vmid).await?;
        // Options come before the first rule of ours: where one stands, they were set, and people may have changed them since.
        if !groups.is_empty() && !rules.iter().any(is_ours) && next_change(&rules, groups).is_some() {
            self.switch_on().await?;
        }
        for _ in 0..CHANGES {
            let Some(change) = next_change(&rules, groups) else { return Ok(()) };
            self.make(&change, &rules).await?;
            rules = self.pve.firewall_rules(self.host, self.vmid).await?;
        }
        Ok(())
    }

    async fn make(&self, change: &RuleChange, rules: &[FirewallRule]) -> Result<(), Error> {
        // Whoever changed a rule meanwhile was faster; the next pass looks again.
        let digest = rules.iter().find_map(|rule| rule.digest.clone()).unwrap_or_default();
        let change_rule = async |pos: u64, key: &str, value: String| {
            let params = [(key, value), ("digest", digest.clone())];
            self.pve.change_firewall_rule(self.host, self.vmid, pos, &params).await
        };
        match change {
            RuleChange::Add(group) => self.add(group).await,
            RuleChange::Enable(pos) => change_rule(*pos, "enable", "1".to_owned()).await,
            RuleChange::Move { from, to } => change_rule(*from, "moveto", to.to_string()).await,
            RuleChange::Remove(pos) => self.pve.remove_firewall_rule(self.host, self.vmid, *pos, &digest).await,
        }
    }

    async fn switch_on(&self) -> Result<(), Error> {
        let options = OPTIONS.map(|(key, value)| (key, value.to_owned()));
        self.pve.set_firewall_options(self.host, self.vmid, &options).await
    }

    async fn add(&self, group: &SecurityGroup) -> Result<(), Error> {
        let rule = NewRule {
            kind: "group".to_owned(),
            action: group.name.clone(),
            enable: Some(true),
            iface: Some(group.interface.clone()),
            comment: Some(COMMENT.to_owned()),
            ..NewRule::default()
        };
        self.pve.add_firewall_rule(self.host, self.vmid, &rule).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> SecurityGroup {
        SecurityGroup { interface: "net0".to_owned(), name: name.to_owned() }
    }

    /// Rules by their names: `x` a group of ours, `-x` one that is switched off, `!x` one of people.
    fn rules(names: &[&str]) -> Vec<FirewallRule> {
        let rule = |(pos, name): (usize, &&str)| {
            let plain = name.trim_start_matches(['-', '!']);
            let is_theirs = name.starts_with('!');
            serde_json::from_value(serde_json::json!({
                "pos": pos, "type": "group", "action": plain, "iface": "net0", "enable": i32::from(!name.starts_with('-')),
                "comment": if is_theirs { "by hand" } else { COMMENT }, "digest": "d",
            }))
            .unwrap()
        };
        names.iter().enumerate().map(rule).collect()
    }

    /// Makes changes until there is none, as Proxmox would.
    fn settled(names: &[&str], groups: &[&str]) -> (Vec<String>, usize) {
        let groups: Vec<SecurityGroup> = groups.iter().map(|name| group(name)).collect();
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        for changes in 0..CHANGES {
            let now: Vec<&str> = names.iter().map(String::as_str).collect();
            match next_change(&rules(&now), &groups) {
                None => return (names, changes),
                Some(RuleChange::Add(group)) => names.insert(0, group.name),
                Some(RuleChange::Enable(pos)) => {
                    let at = usize::try_from(pos).unwrap();
                    names[at] = names[at].trim_start_matches('-').to_owned();
                }
                Some(RuleChange::Remove(pos)) => drop(names.remove(usize::try_from(pos).unwrap())),
                Some(RuleChange::Move { from, to }) => {
                    let moved = names.remove(usize::try_from(from).unwrap());
                    names.insert(usize::try_from(to).unwrap(), moved);
                }
            }
        }
        panic!("never settles: {names:?}")
    }

    #[test]
    fn rules_come_in_the_order_of_the_class_before_those_of_people_which_stay() {
        assert_eq!(settled(&[], &["a", "b", "c"]).0, ["a", "b", "c"]);
        assert_eq!(settled(&["!ssh"], &["a", "b"]).0, ["a", "b", "!ssh"]);
        assert_eq!(settled(&["c", "b", "a"], &["a", "b", "c"]).0, ["a", "b", "c"]);
        assert_eq!(settled(&["!ssh", "a", "old", "-b"], &["b"]).0, ["b", "!ssh"]);
        assert_eq!(settled(&["a", "b", "c"], &[]).0, [""; 0]);
    }

    #[test]
    fn rules_that_are_right_are_not_touched() {
        assert_eq!(settled(&["a", "b", "!ssh"], &["a", "b"]), (vec!["a".into(), "b".into(), "!ssh".into()], 0));
        assert_eq!(settled(&["!a"], &["a"]).1, 0, "a group that people added is the same group");
    }

    #[test]
    fn surplus_rules_go_after_new_ones_came() {
        let now = rules(&["old", "older"]);
        assert_eq!(next_change(&now, &[group("new")]), Some(RuleChange::Add(group("new"))));
        assert_eq!(next_change(&rules(&["new", "old", "older"]), &[group("new")]), Some(RuleChange::Remove(2)));
    }
}
