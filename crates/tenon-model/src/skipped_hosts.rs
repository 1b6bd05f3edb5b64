//! How is it said, in few words, which hosts cannot be used and why?

use std::fmt;

use crate::place::Place;

/// So many hosts with the same cause are named …
const HOSTS_NAMED: usize = 4;

/// … and so many causes are told: an event takes 1,024 bytes, and some of it is about the hosts that can be used.
const CAUSES_TOLD: usize = 3;

/// Hosts that cannot be used for the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedHosts {
    /// The cause.
    pub why: String,
    /// The hosts, by name; never empty.
    pub places: Vec<Place>,
}

impl SkippedHosts {
    /// Puts hosts with the same cause together, in the order in which they come.
    pub fn by_cause(hosts: impl Iterator<Item = (Place, String)>) -> Vec<SkippedHosts> {
        let mut groups: Vec<SkippedHosts> = Vec::new();
        for (place, why) in hosts {
            match groups.iter_mut().find(|group| group.why == why) {
                Some(group) => group.places.push(place),
                None => groups.push(SkippedHosts { why, places: vec![place] }),
            }
        }
        groups
    }
}

impl fmt::Display for SkippedHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.places.iter().take(HOSTS_NAMED).map(|place| place.host.as_str()).collect();
        let names = names.join(", ");
        match self.places.len() {
            1 => write!(f, "host {names} was skipped: {}", self.why),
            count if count > HOSTS_NAMED => {
                write!(f, "hosts {names} and {} more were skipped: {}", count - HOSTS_NAMED, self.why)
            }
            _ => write!(f, "hosts {names} were skipped: {}", self.why),
        }
    }
}

/// Continues a sentence with the hosts that were skipped, if any were.
pub(crate) fn write_skipped(f: &mut fmt::Formatter<'_>, skipped: &[SkippedHosts]) -> fmt::Result {
    let told = skipped.len().min(CAUSES_TOLD);
    skipped[..told].iter().try_for_each(|group| write!(f, "; {group}"))?;
    match skipped[told..].iter().map(|group| group.places.len()).sum::<usize>() {
        0 => Ok(()),
        1 => f.write_str("; 1 more host was skipped for another reason"),
        more => write!(f, "; {more} more hosts were skipped for other reasons"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Told<'a>(&'a [SkippedHosts]);

    impl fmt::Display for Told<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_skipped(f, self.0)
        }
    }

    fn told(hosts: &[(u32, &str)]) -> String {
        let place = |number: &u32| Place { region: "lab".to_owned(), host: format!("pve{number}").parse().unwrap() };
        Told(&SkippedHosts::by_cause(hosts.iter().map(|(number, why)| (place(number), (*why).to_owned())))).to_string()
    }

    #[test]
    fn hosts_with_the_same_cause_are_named_together() {
        assert_eq!(told(&[]), "");
        assert_eq!(told(&[(1, "it is offline")]), "; host pve1 was skipped: it is offline");
        assert_eq!(
            told(&[(1, "it is offline"), (2, "no template"), (3, "it is offline")]),
            "; hosts pve1, pve3 were skipped: it is offline; host pve2 was skipped: no template"
        );
    }

    #[test]
    fn what_is_told_of_many_hosts_has_a_bounded_length() {
        let many: Vec<(u32, &str)> = (1..=90).map(|number| (number, "no template")).collect();
        assert_eq!(told(&many), "; hosts pve1, pve2, pve3, pve4 and 86 more were skipped: no template");
        let causes = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "d"), (6, "e")];
        assert!(
            told(&causes).ends_with("skipped: c; 3 more hosts were skipped for other reasons"),
            "{}",
            told(&causes)
        );
        assert!(told(&causes[..4]).ends_with("skipped: c; 1 more host was skipped for another reason"));
    }
}
