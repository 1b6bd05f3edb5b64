//! Reads the template objects of a name, and which NodeClaims were launched from their VM templates.

use anyhow::{anyhow, bail};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tenon_api::{NodeClaim, ProxmoxTemplate, ProxmoxUnmanagedTemplate, launch_record, names, status_message};
use tenon_model::full_message;

use super::view::{Clones, Shown, managed, unmanaged};

/// Objects in one answer: what an API server likes to give at once.
const PAGE: u32 = 500;
/// So many other names are told when there is none of the name given.
const NAMES: usize = 10;

/// What there is of a name: an object of each kind at most.
pub(super) async fn look(client: &Client, name: &str) -> anyhow::Result<Vec<Shown>> {
    let built = list::<ProxmoxTemplate>(client).await?;
    let prepared = list::<ProxmoxUnmanagedTemplate>(client).await?;
    if !built.iter().any(|object| object.name_any() == name) && !prepared.iter().any(|object| object.name_any() == name)
    {
        let others = built.iter().map(|other| format!("ProxmoxTemplate {}", other.name_any()));
        let others =
            others.chain(prepared.iter().map(|other| format!("ProxmoxUnmanagedTemplate {}", other.name_any())));
        bail!("{}", missing(name, &others.collect::<Vec<_>>()));
    }
    let clones = clones(client).await?;
    let built = built.iter().filter(|object| object.name_any() == name).map(|object| managed(object, &clones));
    let prepared = prepared.iter().filter(|object| object.name_any() == name).map(|object| unmanaged(object, &clones));
    Ok(built.chain(prepared).collect())
}

fn missing(name: &str, others: &[String]) -> String {
    let told = format!("ProxmoxTemplate or ProxmoxUnmanagedTemplate {name} does not exist in the cluster");
    match others {
        [] => format!("{told}; it has no templates at all"),
        _ => {
            let more = others.len().saturating_sub(NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let others = others.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{told}, which has {others}{more}")
        }
    }
}

/// Every claim with a launch record that can be read. One that cannot is a matter of its own pages.
async fn clones(client: &Client) -> anyhow::Result<Clones> {
    let mut clones = Clones::default();
    for claim in list::<NodeClaim>(client).await? {
        let record = claim.annotations().get(names::ANNOTATION_LAUNCH).and_then(|text| launch_record::read(text).ok());
        if let Some(record) = record {
            let version = claim.status.as_ref().and_then(|status| status.image_id.clone());
            clones.add(claim.name_any(), record, version);
        }
    }
    Ok(clones)
}

async fn list<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let api = Api::<K>::all(client.clone());
    let (mut all, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            // A cluster without a kind has no objects of it.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(all),
            Err(error) => return Err(unread(&K::plural(&()), &error)),
        };
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(all),
        }
    }
}

fn unread(plural: &str, error: &kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            anyhow!("cannot list {plural}: {}; use a kubeconfig whose user may list {plural}", status_message(status))
        }
        kube::Error::Api(status) => {
            anyhow!("cannot list {plural}: the API server answered {}: {}", status.code, status_message(status))
        }
        other => anyhow!(
            "cannot list {plural}: {}; check that the API server named in the kubeconfig is running",
            full_message(other)
        ),
    }
}
