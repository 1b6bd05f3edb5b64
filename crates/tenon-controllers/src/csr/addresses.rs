//! Which addresses does a claim's VM have?
//!
//! What the kubelet writes into its Node proves nothing: whoever asks for the certificate wrote it. Addresses that Proxmox
//! was told (`ipconfigN`) are believed. A network card that gets its addresses elsewhere (DHCP, SLAAC, or no `ipconfigN` at all)
//! is asked for through the guest agent, and only by the MAC address of a card Proxmox gave the VM. The agent runs in the guest,
//! so a guest that is taken over can name any address as its own, but not another Node's name.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use tenon_api::NodeClaim;
use tenon_model::{LaunchRecord, full_message};
use tenon_pve::{AddressConfig, Client, Error, GuestInterface, NetworkCard, ProvenVm, RefusalKind, VmConfig};

use super::judge::KnownAddresses;
use crate::claim::observe_vm;
use crate::context::Context;

/// Proxmox gives up on an agent after three seconds.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// What Proxmox says about the addresses of a VM.
#[derive(Debug, Default, PartialEq, Eq)]
struct Configured {
    fixed: BTreeSet<IpAddr>,
    /// MAC addresses, in lower case, of cards whose addresses come from elsewhere.
    dynamic: BTreeSet<String>,
}

/// The addresses of a claim's VM; the agent is asked only if these are not known without it.
pub(super) async fn of_vm(
    context: &Context,
    (claim, record): &(NodeClaim, LaunchRecord),
    wanted: &BTreeSet<IpAddr>,
) -> KnownAddresses {
    let (region, vmid) = (&record.place.region, record.vmid);
    let unknown = |why: String| KnownAddresses::Unknown(why);
    let pve = match context.region(region) {
        Ok(pve) if !context.regions.is_silent(region) => pve,
        Ok(_) => return unknown(format!("the Proxmox API of region {region} does not answer")),
        Err(why) => return unknown(why),
    };
    let look = async {
        let vm = observe_vm(&pve, &context.owner(claim), record).await.map_err(|error| full_message(&error))?;
        let vm = vm.proven.ok_or_else(|| format!("VM {vmid} in region {region} cannot be read"))?;
        addresses(&pve, &vm, wanted).await
    };
    match tokio::time::timeout(ANSWERS_WITHIN, look).await {
        Ok(Ok(known)) => KnownAddresses::These(known),
        Ok(Err(why)) => unknown(why),
        Err(_) => unknown(format!("no reply about VM {vmid} in region {region} within {} s", ANSWERS_WITHIN.as_secs())),
    }
}

async fn addresses(pve: &Client, vm: &ProvenVm, wanted: &BTreeSet<IpAddr>) -> Result<BTreeSet<IpAddr>, String> {
    let configured = Configured::read(vm.config());
    if wanted.is_subset(&configured.fixed) || configured.dynamic.is_empty() {
        return Ok(configured.fixed);
    }
    let interfaces = pve.agent_interfaces(vm.host(), vm.vmid()).await.map_err(|error| no_agent(&error))?;
    Ok(configured.with(&interfaces))
}

/// What to do about an agent that was not asked, or did not answer.
fn no_agent(error: &Error) -> String {
    let why = full_message(error);
    match error.refusal().map(|refusal| &refusal.kind) {
        // It names the privilege.
        Some(RefusalKind::Denied { .. }) => why,
        _ => format!("{why}; install and enable the guest agent in the template, or give the VM fixed addresses"),
    }
}

impl Configured {
    fn read(config: &VmConfig) -> Configured {
        let mut configured = Configured::default();
        for (key, _) in config.network_cards() {
            let number = key.trim_start_matches("net");
            let told: Option<AddressConfig> = config.option(&format!("ipconfig{number}"));
            let told: Vec<&str> = told.iter().flat_map(|told| [told.ip(), told.ip6()]).flatten().collect();
            let fixed: Vec<IpAddr> = told.iter().filter_map(|text| fixed(text)).collect();
            if fixed.is_empty() || fixed.len() < told.len() {
                let mac = config.option::<NetworkCard>(&key).and_then(|card| card.mac().map(str::to_ascii_lowercase));
                configured.dynamic.extend(mac);
            }
            configured.fixed.extend(fixed);
        }
        configured
    }

    /// With what the guest has on the cards whose addresses come from elsewhere.
    fn with(self, interfaces: &[GuestInterface]) -> BTreeSet<IpAddr> {
        let is_ours = |interface: &&GuestInterface| {
            interface.mac.as_ref().is_some_and(|mac| self.dynamic.contains(&mac.to_ascii_lowercase()))
        };
        let found = interfaces.iter().filter(is_ours).flat_map(|interface| &interface.addresses);
        let usable = found.map(|found| found.address.to_canonical()).filter(is_usable);
        usable.chain(self.fixed.iter().copied()).collect()
    }
}

/// `10.0.0.5/24`; not `dhcp`, `auto` or `manual`.
fn fixed(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.trim().parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Whether an address can be a machine's own, seen from others.
fn is_usable(address: &IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_link_local && !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: &str = "BC:24:11:5C:2F:10";

    fn read(lines: &str) -> Configured {
        Configured::read(&VmConfig::from_lines(lines).unwrap())
    }

    fn set(texts: &[&str]) -> BTreeSet<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_that_proxmox_was_told_are_fixed() {
        let card = format!("net0: virtio={MAC},bridge=vmbr0\n");
        let of = |told: &str| read(&format!("{card}{told}"));
        let dynamic = BTreeSet::from([MAC.to_ascii_lowercase()]);
        let both = of("ipconfig0: ip=10.0.0.5/24,gw=10.0.0.1,ip6=fd00::5/64");
        assert_eq!(both, Configured { fixed: set(&["10.0.0.5", "fd00::5"]), dynamic: BTreeSet::new() });
        let half = of("ipconfig0: ip=10.0.0.5/24,ip6=auto");
        assert_eq!(half, Configured { fixed: set(&["10.0.0.5"]), dynamic: dynamic.clone() });
        for told in ["", "ipconfig0: ip=dhcp", "ipconfig0: ip6=dhcp", "ipconfig1: ip=10.0.0.5/24"] {
            assert_eq!(of(told), Configured { fixed: BTreeSet::new(), dynamic: dynamic.clone() }, "{told}");
        }
    }

    #[test]
    fn the_guest_is_believed_only_for_its_own_cards_and_addresses_others_can_reach() {
        let interface = |mac: &str, addresses: &[&str]| {
            let addresses: Vec<_> = addresses.iter().map(|text| serde_json::json!({ "ip-address": text })).collect();
            let row = serde_json::json!({ "name": "e", "hardware-address": mac, "ip-addresses": addresses });
            serde_json::from_value::<GuestInterface>(row).unwrap()
        };
        let interfaces = [
            interface("00:00:00:00:00:00", &["127.0.0.1", "10.9.9.9"]),
            interface(
                "bc:24:11:5c:2f:10",
                &["10.0.0.7", "fe80::1", "::1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "fd00::7"],
            ),
            interface("02:42:ac:11:00:02", &["172.17.0.1"]),
        ];
        let known = read(&format!("net0: virtio={MAC},bridge=vmbr0\n")).with(&interfaces);
        assert_eq!(known, set(&["10.0.0.7", "fd00::7"]));
    }
}
