//! The network cards of a VM: a queue for each core, and the firewall where a security group wants it. Whatever else the
//! template says of a card stays, the hardware address among it.

use std::collections::BTreeSet;

use tenon_api::SecurityGroup;
use tenon_pve::{Properties, VmConfig};

use super::desired_vm::DesiredVm;

/// Proxmox takes no more queues.
const QUEUES_MOST: u32 = 64;

/// The options of the cards that are to be changed.
pub(super) fn options(desired: &DesiredVm<'_>, config: &VmConfig) -> Vec<(String, String)> {
    let change = |(key, card): (String, Properties)| {
        let wanted = changed(&card, desired.cores, desired.security_groups.iter().any(|group| group.interface == key));
        wanted.map(|card| (key, card.to_string()))
    };
    config.network_cards().into_iter().filter_map(change).collect()
}

/// The options of the cards of a VM that runs which are to be filtered and are not. Their queues stay: the guest has them.
pub(crate) fn filtered<'a>(
    groups: impl Iterator<Item = &'a SecurityGroup>,
    config: &VmConfig,
) -> Vec<(String, String)> {
    let cards: BTreeSet<&str> = groups.map(|group| group.interface.as_str()).collect();
    let change = |(key, mut card): (String, Properties)| {
        let is_due = cards.contains(key.as_str()) && card.get("firewall") != Some("1");
        card.set("firewall", "1").ok().filter(|()| is_due)?;
        Some((key, card.to_string()))
    };
    config.network_cards().into_iter().filter_map(change).collect()
}

/// The card as it should be, if that is different. Only virtio has queues, and one core needs one.
fn changed(card: &Properties, cores: u32, is_filtered: bool) -> Option<Properties> {
    let (model, _) = card.network_card()?;
    let queues = cores.min(QUEUES_MOST).to_string();
    let has_queues = card.get("queues").unwrap_or("1");
    let mut wanted = card.clone();
    if model == "virtio" && has_queues != queues {
        wanted.set("queues", &queues).ok()?;
    }
    if is_filtered && card.get("firewall") != Some("1") {
        wanted.set("firewall", "1").ok()?;
    }
    (wanted.to_string() != card.to_string()).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(card: &str, cores: u32, is_filtered: bool) -> Option<String> {
        changed(&card.parse().unwrap(), cores, is_filtered).map(|card| card.to_string())
    }

    #[test]
    fn a_virtio_card_gets_a_queue_for_each_core_and_keeps_the_rest() {
        let card = "virtio=BC:24:11:00:00:01,bridge=vmbr0,rate=10,trunks=2;3,link_down=0";
        assert_eq!(told(card, 4, false).unwrap(), format!("{card},queues=4"));
        assert_eq!(told(card, 128, false).unwrap(), format!("{card},queues=64"));
        assert_eq!(told(card, 1, false), None, "one queue is what it has");
        assert_eq!(told("virtio=BC:24:11:00:00:01,bridge=vmbr0,queues=4", 4, false), None);
        let fewer = told("virtio=BC:24:11:00:00:01,queues=8,bridge=vmbr0", 2, false).unwrap();
        assert_eq!(fewer, "virtio=BC:24:11:00:00:01,queues=2,bridge=vmbr0");
    }

    #[test]
    fn another_model_has_no_queues() {
        assert_eq!(told("e1000=BC:24:11:00:00:01,bridge=vmbr0", 8, false), None);
        assert_eq!(told("model=vmxnet3,macaddr=BC:24:11:00:00:01,bridge=vmbr0", 8, false), None);
    }

    #[test]
    fn a_card_in_a_security_group_is_filtered() {
        let card = "e1000=BC:24:11:00:00:01,bridge=vmbr0";
        assert_eq!(told(card, 8, true).unwrap(), format!("{card},firewall=1"));
        assert_eq!(told("e1000=BC:24:11:00:00:01,firewall=1", 8, true), None);
        assert_eq!(told("e1000=BC:24:11:00:00:01,firewall=0", 8, true).unwrap(), "e1000=BC:24:11:00:00:01,firewall=1");
    }
}
