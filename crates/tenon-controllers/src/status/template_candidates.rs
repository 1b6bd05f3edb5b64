//! Which VMs come close to what a ProxmoxUnmanagedTemplate names, and why each of them is not used.

use std::collections::BTreeMap;

use tenon_api::ProxmoxUnmanagedTemplateSpec;
use tenon_model::VmId;
use tenon_pve::{GuestKind, GuestRow};

use super::estate::Estate;

/// So many are told one by one: a condition is read at a terminal, and every clone of a template has its tags.
const TOLD: usize = 4;

/// A guest of a region that answers.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    region: &'a str,
    guest: &'a GuestRow,
}

/// How close a guest comes. The closest are told first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Template,
    Vm,
    Container,
}

impl Candidate<'_> {
    fn closeness(self) -> Closeness {
        match self.guest.kind {
            GuestKind::Qemu if self.guest.template => Closeness::Template,
            GuestKind::Qemu => Closeness::Vm,
            _ => Closeness::Container,
        }
    }

    fn name(self) -> &'static str {
        match self.closeness() {
            Closeness::Template => "VM template",
            Closeness::Vm => "VM",
            Closeness::Container => "container",
        }
    }

    fn lacks(self, tags: &[String]) -> Vec<&str> {
        let own = tags_of(self.guest);
        tags.iter().filter(|tag| !own.contains(tag)).map(String::as_str).collect()
    }
}

/// The tags of a guest, as they are compared.
pub(super) fn tags_of(guest: &GuestRow) -> Vec<String> {
    guest.tags.iter().flat_map(|tags| tags.split(';')).map(|tag| tag.trim().to_lowercase()).collect()
}

/// The tags of a spec, as they are compared.
pub(super) fn wanted_tags(spec: &ProxmoxUnmanagedTemplateSpec) -> Vec<String> {
    spec.tags.iter().flatten().map(|tag| tag.to_lowercase()).collect()
}

/// Why guests that come close are not used, as one text; empty if none does.
///
/// With a name those come close that bear it. Tags alone are inherited by every clone, so with tags alone only guests that have
/// all of them, or templates that have some, come close, and only as long as nothing is found.
pub(super) fn rejected(spec: &ProxmoxUnmanagedTemplateSpec, estate: &Estate, is_found: bool) -> String {
    let tags = wanted_tags(spec);
    let mut close: Vec<(Closeness, &str, VmId, String)> = Vec::new();
    for candidate in candidates(estate) {
        let comes_close = match &spec.template_name {
            Some(name) => has_name(candidate.guest, name),
            None if is_found => false,
            None => {
                let lacks = candidate.lacks(&tags).len();
                lacks == 0 || lacks < tags.len() && candidate.closeness() == Closeness::Template
            }
        };
        let why = comes_close.then(|| why_not(spec, candidate, &tags)).flatten();
        close.extend(why.map(|why| (candidate.closeness(), candidate.region, candidate.guest.id, why)));
    }
    close.sort();
    let more = close.len().saturating_sub(TOLD);
    let mut told: Vec<String> = close.into_iter().take(TOLD).map(|(_, _, _, why)| why).collect();
    if more > 0 {
        told.push(format!("{more} more VMs and containers are not used"));
    }
    told.join("; ")
}

fn candidates(estate: &Estate) -> impl Iterator<Item = Candidate<'_>> {
    let shown = estate.regions.iter().filter_map(|(region, view)| Some((region.as_str(), view.as_ref().ok()?)));
    shown.flat_map(|(region, resources)| resources.guests.iter().map(move |guest| Candidate { region, guest }))
}

fn has_name(guest: &GuestRow, wanted: &str) -> bool {
    guest.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

/// The first thing that is wrong with a guest; `None` if it is used.
fn why_not(spec: &ProxmoxUnmanagedTemplateSpec, candidate: Candidate<'_>, tags: &[String]) -> Option<String> {
    let Candidate { region, guest } = candidate;
    let (kind, id, host) = (candidate.name(), guest.id, &guest.host);
    let named = guest.name.as_deref().unwrap_or_default();
    let what = format!("{kind} {id} ({named}) on host {host}");
    if let Some(wanted) = spec.region.as_deref().filter(|wanted| *wanted != region) {
        return Some(format!("{what} is in region {region}, but spec.region is {wanted}"));
    }
    match candidate.closeness() {
        Closeness::Container => return Some(format!("{what} is not a VM")),
        Closeness::Vm => return Some(format!("{what} is not a template; run `qm template {id}` to convert it")),
        Closeness::Template => {}
    }
    if spec.template_name.as_deref().is_some_and(|wanted| wanted != named) {
        return Some(format!("{what} has a name in other case"));
    }
    let lacks = candidate.lacks(tags);
    match lacks.as_slice() {
        [] => None,
        [tag] => Some(format!("{what} lacks tag {tag}")),
        tags => Some(format!("{what} lacks tags {}", tags.join(", "))),
    }
}

/// What is to be known of templates that were found: of several on a host the one that is used, and hosts that are offline.
pub(super) fn chosen(estate: &Estate, zones: &[String]) -> String {
    let mut by_host: BTreeMap<(&str, &str), Vec<VmId>> = BTreeMap::new();
    for zone in zones {
        let mut parts = zone.splitn(3, '/');
        let (Some(region), Some(host), Some(id)) = (parts.next(), parts.next(), parts.next()) else { continue };
        if let Ok(id) = id.parse() {
            by_host.entry((region, host)).or_default().push(id);
        }
    }
    let mut told = Vec::new();
    for ((region, host), mut ids) in by_host {
        ids.sort();
        if let [first, others @ ..] = ids.as_slice()
            && !others.is_empty()
        {
            let others: Vec<String> = others.iter().take(TOLD).map(ToString::to_string).collect();
            let (others, count) = (others.join(", "), ids.len());
            told.push(format!(
                "host {host} has {count} matching VM templates: {first} is used, because its VM ID is the lowest, not {others}"
            ));
        }
        if estate.is_offline(region, host) {
            let first = ids.first().map(ToString::to_string).unwrap_or_default();
            told.push(format!("host {host} is offline: VM template {first} cannot be cloned until the host is back"));
        }
    }
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    if more > 0 {
        told.push(format!("{more} more hosts have several matching VM templates or are offline"));
    }
    told.join("; ")
}
