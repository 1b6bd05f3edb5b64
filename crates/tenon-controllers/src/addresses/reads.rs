//! Reads templates, hosts and guests of Proxmox, each without waiting for another.

use std::net::IpAddr;

use futures::stream::{self, StreamExt};
use tenon_model::{HostName, Place, VmId};
use tenon_pve::{Client, GuestKind, Interface, RefusalKind, VmConfig};
use tokio::time::{Instant, timeout_at};

use super::book::TemplateKey;
use super::guest_addresses::{of_container, of_vm};

/// Guests of one host that are read at the same time.
const AT_ONCE: usize = 4;

pub(super) async fn read_template(
    (pve, host, key): (Client, HostName, TemplateKey),
) -> (TemplateKey, Result<VmConfig, tenon_pve::Error>) {
    let read = pve.vm_config(&host, key.1).await;
    (key, read)
}

/// The interfaces of a host; nothing of one that does not answer, or answers with an error.
pub(super) async fn read_host((pve, place): (Client, Place)) -> (Place, Option<Vec<Interface>>, bool) {
    match pve.interfaces(&place.host, None).await {
        Ok(read) => (place, Some(read), false),
        // To a token that may not see them they are unknown.
        Err(error) if is_denied(&error) => (place, Some(Vec::new()), false),
        Err(error) => (place, None, error.refusal().is_none()),
    }
}

/// What was read of the guests of a host, and whether it stopped answering.
pub(super) struct GuestsRead {
    pub(super) place: Place,
    /// The addresses of each; nothing of one that the token may not read.
    pub(super) read: Vec<(VmId, Option<Vec<IpAddr>>)>,
    pub(super) is_away: bool,
}

/// Reads guests of one host, a few at a time, until time is up or the host does not answer.
pub(super) async fn read_guests(
    pve: Client,
    (place, guests): (Place, Vec<(VmId, GuestKind)>),
    until: Instant,
) -> GuestsRead {
    let reads: Vec<_> = guests.into_iter().map(|guest| read_guest(pve.clone(), place.host.clone(), guest)).collect();
    let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    let mut found = GuestsRead { place, read: Vec::new(), is_away: false };
    while let Ok(Some(read)) = timeout_at(until, reads.next()).await {
        match read {
            GuestRead::Addresses(id, addresses) => found.read.push((id, Some(addresses))),
            GuestRead::Hidden(id) => found.read.push((id, None)),
            GuestRead::Unreadable => {}
            GuestRead::NoAnswer => {
                found.is_away = true;
                break;
            }
        }
    }
    found
}

/// What came of reading a guest.
enum GuestRead {
    Addresses(VmId, Vec<IpAddr>),
    /// The token may not read it. Nobody but an operator can help: he lists its addresses as excluded.
    Hidden(VmId),
    /// It moved to another host, or cannot be read; what was known of it stays.
    Unreadable,
    NoAnswer,
}

async fn read_guest(pve: Client, host: HostName, (id, kind): (VmId, GuestKind)) -> GuestRead {
    let read = match kind {
        GuestKind::Qemu => pve.vm_config(&host, id).await.map(|config| of_vm(&config)),
        GuestKind::Lxc => pve.container_config(&host, id).await.map(|config| of_container(&config)),
    };
    match read {
        Ok(addresses) => GuestRead::Addresses(id, addresses),
        Err(error) if is_denied(&error) => GuestRead::Hidden(id),
        Err(error) if error.refusal().is_some() => GuestRead::Unreadable,
        Err(_) => GuestRead::NoAnswer,
    }
}

/// Whether the token may not see it.
pub(crate) fn is_denied(error: &tenon_pve::Error) -> bool {
    matches!(error.refusal().map(|told| &told.kind), Some(RefusalKind::Denied { .. }))
}
