//! All addresses at one look: what VMs of each class are given on each host, and what is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::kube_objects::Node;
use tenon_api::{AddressRules, NodeClaim, ProxmoxNodeClass};
use tenon_model::{AddressSite, CardWish, NetAddress, Place, VmId};
use tenon_pve::{AddressConfig, Interface, VmConfig};

use super::card_wishes::card_wishes;
use crate::provision::{place_of, record_of, template_of};

/// A template on a host.
pub type TemplateKey = (Place, VmId);

/// What Proxmox says of addresses.
#[derive(Debug, Clone, Default)]
pub struct AddressFacts {
    /// Templates of classes, or why one cannot be read.
    pub templates: BTreeMap<TemplateKey, Result<VmConfig, String>>,
    /// Addresses in the configurations of guests.
    pub guests: BTreeSet<IpAddr>,
    /// The network interfaces of hosts that could be read.
    pub hosts: BTreeMap<Place, Vec<Interface>>,
    /// Addresses that are known otherwise: the API server's.
    pub others: BTreeSet<IpAddr>,
    /// Why no address can be given yet: a guest whose addresses could not be read.
    pub unread: Option<String>,
}

/// What VMs of each class are given on each host, and what is taken.
#[derive(Debug, Clone, Default)]
pub struct AddressBook {
    /// The template of each class on each host, if it could be read.
    templates: BTreeMap<TemplateKey, VmConfig>,
    classes: BTreeMap<String, BTreeMap<Place, Result<Vec<CardWish>, String>>>,
    obstacles: BTreeMap<String, BTreeMap<Place, String>>,
    taken: BTreeSet<IpAddr>,
}

impl AddressBook {
    /// Puts everything together that is known.
    pub fn new(
        facts: &AddressFacts,
        classes: &[Arc<ProxmoxNodeClass>],
        claims: &[Arc<NodeClaim>],
        nodes: &[Arc<Node>],
    ) -> AddressBook {
        let by_class = classes.iter().map(|class| (class.name_any(), wishes_of(class, facts)));
        let classes_read: BTreeMap<_, _> = by_class.collect();
        let mut taken: BTreeSet<IpAddr> = facts.guests.union(&facts.others).copied().collect();
        taken.extend(classes.iter().filter_map(|class| rules_of(class).ok()).flat_map(|rules| addresses_named(&rules)));
        taken.extend(facts.templates.values().flatten().flat_map(addresses_in));
        taken.extend(facts.hosts.values().flatten().flat_map(of_interface));
        let records = claims.iter().filter_map(|claim| record_of(claim));
        taken.extend(records.flat_map(|record| record.addresses).flat_map(|card| card.addresses().collect::<Vec<_>>()));
        taken.extend(nodes.iter().flat_map(|node| of_node(node)));
        let obstacles = classes_read.iter().map(|(class, hosts)| (class.clone(), obstacles(hosts, facts, &taken)));
        let read = |(key, config): (&TemplateKey, &Result<VmConfig, String>)| Some((key.clone(), config.clone().ok()?));
        let templates = facts.templates.iter().filter_map(read).collect();
        AddressBook { obstacles: obstacles.collect(), classes: classes_read, taken, templates }
    }

    /// What VMs of a class are cloned from on a host.
    pub(crate) fn template(&self, class: &ProxmoxNodeClass, place: &Place) -> Option<&VmConfig> {
        let id = *templates_of(class).get(place)?;
        self.templates.get(&(place.clone(), id))
    }

    /// Why a class can make no VM on a host for want of addresses, if it can make none.
    pub(crate) fn obstacle(&self, class: &str, place: &Place) -> Option<String> {
        self.obstacles.get(class)?.get(place).cloned()
    }

    /// The engine's view, for nodes of these owners, each with its class.
    pub(crate) fn site<'a>(&self, owners: impl Iterator<Item = (String, &'a str)>) -> AddressSite {
        let wanted = owners.map(|(owner, class)| (owner, self.wanted_by(class))).filter(|(_, hosts)| !hosts.is_empty());
        let wanted: BTreeMap<_, _> = wanted.collect();
        // Where nobody is given any, none need be counted.
        let taken = if wanted.is_empty() { BTreeSet::new() } else { self.taken.clone() };
        AddressSite { wanted, taken }
    }

    fn wanted_by(&self, class: &str) -> BTreeMap<Place, Vec<CardWish>> {
        let hosts = self.classes.get(class).into_iter().flatten();
        let wishes = hosts.filter_map(|(place, wishes)| Some((place.clone(), wishes.as_ref().ok()?.clone())));
        wishes.filter(|(_, wishes)| !wishes.is_empty()).collect()
    }
}

/// The rules of a class; none if it names no addresses.
pub(super) fn rules_of(class: &ProxmoxNodeClass) -> Result<AddressRules, String> {
    class.spec.addresses.as_ref().map_or_else(|| Ok(AddressRules::default()), tenon_api::Addresses::read)
}

/// Templates of a class, one for each host: the first that was selected there.
pub(super) fn templates_of(class: &ProxmoxNodeClass) -> BTreeMap<Place, VmId> {
    let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
    let mut templates = BTreeMap::new();
    for (place, template) in zones.filter_map(|zone| Some((place_of(zone)?, template_of(zone)?))) {
        templates.entry(place).or_insert(template);
    }
    templates
}

fn wishes_of(class: &ProxmoxNodeClass, facts: &AddressFacts) -> BTreeMap<Place, Result<Vec<CardWish>, String>> {
    let rules = rules_of(class);
    let wishes = |(place, template): (Place, VmId)| {
        let bridges = facts.hosts.get(&place).map(Vec::as_slice);
        let wishes = match facts.templates.get(&(place.clone(), template))? {
            Ok(config) => rules.clone().and_then(|rules| card_wishes(&rules, config, bridges)),
            Err(why) => Err(format!("template {template} cannot be read: {why}")),
        };
        Some((place, wishes))
    };
    templates_of(class).into_iter().filter_map(wishes).collect()
}

/// Why no VM can be made on each host for want of addresses, where none can.
fn obstacles(
    hosts: &BTreeMap<Place, Result<Vec<CardWish>, String>>,
    facts: &AddressFacts,
    taken: &BTreeSet<IpAddr>,
) -> BTreeMap<Place, String> {
    // Most hosts give the same.
    let mut known: Vec<(&[CardWish], Option<String>)> = Vec::new();
    let mut obstacles = BTreeMap::new();
    for (place, wishes) in hosts {
        let obstacle = match wishes {
            Err(why) => Some(why.clone()),
            Ok(wishes) if wishes.is_empty() => None,
            Ok(_) if facts.unread.is_some() => facts.unread.clone(),
            Ok(wishes) => match known.iter().find(|(before, _)| *before == wishes.as_slice()) {
                Some((_, found)) => found.clone(),
                None => {
                    let found = tenon_engine::give(taken, wishes).err().map(|missing| missing.to_string());
                    known.push((wishes, found.clone()));
                    found
                }
            },
        };
        obstacles.extend(obstacle.map(|why| (place.clone(), why)));
    }
    obstacles
}

/// Addresses that a class names and no VM may have.
fn addresses_named(rules: &AddressRules) -> Vec<IpAddr> {
    rules.gateway.into_iter().chain(rules.gateway6).chain(rules.dns.iter().copied()).collect()
}

/// Gateways and DNS servers that a template names.
fn addresses_in(template: &VmConfig) -> Vec<IpAddr> {
    let servers = template.get("nameserver").unwrap_or_default().split([' ', ',', ';']);
    let servers: Vec<IpAddr> = servers.filter_map(|text| text.parse().ok()).collect();
    let keys = template.iter().map(|(key, _)| key).filter(|key| key.starts_with("ipconfig"));
    let told = keys.filter_map(|key| template.option::<AddressConfig>(key));
    let parsed = |told: AddressConfig| ["gw", "gw6"].map(|name| told.get(name).and_then(|text| text.parse().ok()));
    told.flat_map(parsed).flatten().chain(servers).collect()
}

fn of_interface(interface: &Interface) -> Vec<IpAddr> {
    let own = [&interface.cidr, &interface.cidr6].into_iter().flatten();
    let own = own.filter_map(|text| text.parse::<NetAddress>().ok());
    // What the host takes for its network's own address, or for one that goes to all, is no host's either.
    let own = own.flat_map(|address| {
        let ends = [address.network(), address.last()].into_iter().filter(move |_| address.address().is_ipv4());
        ends.chain([address.address()])
    });
    let gateways = [&interface.gateway, &interface.gateway6].into_iter().flatten();
    own.chain(gateways.filter_map(|text| text.parse().ok())).collect()
}

fn of_node(node: &Node) -> Vec<IpAddr> {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let is_ip = |kind: &str| matches!(kind, "InternalIP" | "ExternalIP");
    addresses.filter(|address| is_ip(&address.type_)).filter_map(|address| address.address.parse().ok()).collect()
}
