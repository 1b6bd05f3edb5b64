//! What people change rarely in Proxmox, read rarely and once for everybody: templates, bridges of
//! hosts, what the HA manager says, and which stopped guests start with their host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenon_model::{HostName, Place, VmId};
use tenon_pve::{Client, Error, FirewallRule, GuestKind, Interface, RefusalKind, VmConfig};

use crate::kept::Kept;
use crate::provision::GuestId;

/// A template or a bridge that was changed is noticed after this long at the most; at once if its row in the listing changed.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Which image a VM was made from is recorded for good: it is not read from a template that was replaced just before.
const KEPT_FOR_IMAGE: Duration = Duration::from_secs(10);

/// Whether a stopped guest starts with its host changes even less often, and there may be hundreds of them.
const KEPT_LONGER: Duration = Duration::from_secs(300);

/// A host that is put into maintenance mode takes no VM from this moment on, at the latest.
const KEPT_FOR_STATE: Duration = Duration::from_secs(15);

/// The networks that a VM's cards are plugged into.
const BRIDGES: &str = "any_bridge";

/// Templates and bridges as they were read last.
#[derive(Debug, Default)]
pub(crate) struct ProxmoxReads {
    templates: Kept<(Place, VmId), VmConfig>,
    rules: Kept<(Place, VmId), Vec<FirewallRule>>,
    bridges: Kept<Place, Vec<Interface>>,
    starts: Kept<(Place, VmId), bool>,
    ha_states: Kept<String, BTreeMap<String, String>>,
}

impl ProxmoxReads {
    /// Forgets what was read of guests whose rows in the listing changed.
    pub(crate) fn forget_guests(&self, region: &str, guests: &BTreeSet<VmId>) {
        if guests.is_empty() {
            return;
        }
        let is_outdated = |(place, id): &(Place, VmId)| place.region == region && guests.contains(id);
        self.templates.forget(is_outdated);
        self.rules.forget(is_outdated);
        self.starts.forget(is_outdated);
    }

    /// The configuration of a template on its host.
    pub(crate) async fn template(&self, pve: &Client, place: &Place, id: VmId) -> Result<Arc<VmConfig>, Error> {
        self.templates.get(&(place.clone(), id), KEPT_FOR, pve.vm_config(&place.host, id)).await
    }

    /// The same, to find out which image it has.
    pub(crate) async fn image(&self, pve: &Client, place: &Place, id: VmId) -> Result<Arc<VmConfig>, Error> {
        self.templates.get(&(place.clone(), id), KEPT_FOR_IMAGE, pve.vm_config(&place.host, id)).await
    }

    /// The firewall rules of a template, which every clone inherits.
    pub(crate) async fn rules(&self, pve: &Client, place: &Place, id: VmId) -> Result<Arc<Vec<FirewallRule>>, Error> {
        self.rules.get(&(place.clone(), id), KEPT_FOR, pve.firewall_rules(&place.host, id)).await
    }

    /// Whether a guest that is stopped starts with its host.
    pub(crate) async fn starts_with_host(
        &self,
        pve: &Client,
        place: &Place,
        (id, kind): GuestId,
    ) -> Result<Arc<bool>, Error> {
        let read = async {
            let config = match kind {
                GuestKind::Qemu => pve.vm_config(&place.host, id).await?,
                GuestKind::Lxc => pve.container_config(&place.host, id).await?,
            };
            Ok(config.get("onboot").is_some_and(|flag| flag == "1"))
        };
        self.starts.get(&(place.clone(), id), KEPT_LONGER, read).await
    }

    /// What the HA manager says of each host. A token that may not ask sees nothing managed.
    pub(crate) async fn ha_states(&self, pve: &Client, region: &str) -> Result<Arc<BTreeMap<String, String>>, Error> {
        let read = async {
            match pve.ha_host_states().await {
                Err(error) if is_denied(&error) => Ok(BTreeMap::new()),
                states => states,
            }
        };
        self.ha_states.get(&region.to_owned(), KEPT_FOR_STATE, read).await
    }

    /// The bridges of a host. To a token that may not see them they are unknown, and cards get the usual settings.
    pub(crate) async fn bridges(&self, pve: &Client, place: &Place) -> Result<Arc<Vec<Interface>>, Error> {
        self.bridges.get(place, KEPT_FOR, bridges(pve, &place.host)).await
    }
}

/// The bridges of a host, read now.
pub async fn bridges(pve: &Client, host: &HostName) -> Result<Vec<Interface>, Error> {
    match pve.interfaces(host, Some(BRIDGES)).await {
        Err(error) if is_denied(&error) => Ok(Vec::new()),
        outcome => outcome,
    }
}

fn is_denied(error: &Error) -> bool {
    matches!(error.refusal().map(|told| &told.kind), Some(RefusalKind::Denied { .. }))
}
