//! What does cloud-init learn about the instance itself?

use serde::Serialize;

use crate::Error;
use crate::input::Identity;
use crate::yaml::to_yaml;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct MetaData<'a> {
    hostname: &'a str,
    local_hostname: &'a str,
    // cloud-init keeps and compares it as a text, however it is written.
    instance_id: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    instance_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    provider_id: &'a str,
    region: &'a str,
    zone: &'a str,
    availability_zone: &'a str,
}

/// The file `meta-data`.
pub(crate) fn render(identity: &Identity) -> Result<String, Error> {
    let meta_data = MetaData {
        hostname: &identity.node_name,
        local_hostname: &identity.node_name,
        instance_id: identity.vmid.get(),
        instance_type: &identity.instance_type,
        provider_id: &identity.provider_id,
        region: &identity.region,
        zone: &identity.zone,
        availability_zone: &identity.zone,
    };
    to_yaml("meta-data", &meta_data)
}
