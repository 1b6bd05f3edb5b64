//! Could a VM of a class be given first-boot data? Found out by rendering it for a sample VM, before there is any.

use kube::Client;
use tenon_api::condition_reasons::{ConditionReason, METADATA_OPTIONS_INVALID, METADATA_OPTIONS_NOT_FOUND};
use tenon_api::{MetadataType, ProxmoxNodeClass};
use tenon_model::{InstanceType, VmId};
use tenon_pve::VmConfig;

use super::sample;
use super::seed::{SeedFacts, render_seed};
use super::sources::{Sources, read_sources};
use crate::regions::Regions;

/// Why a class cannot give its VMs first-boot data.
#[derive(Debug, Clone)]
pub struct NoFirstBoot {
    /// The reason of the class's condition.
    pub reason: &'static ConditionReason,
    /// What is wrong, and the next step.
    pub message: String,
}

/// Tries the first-boot data of a class. `zone` is one of its VM templates, as `region/host/vmid`.
pub(crate) async fn inspect(
    client: &Client,
    regions: &Regions,
    class: &ProxmoxNodeClass,
    zone: Option<&String>,
) -> Result<Result<(), NoFirstBoot>, kube::Error> {
    if class.spec.metadata_options.type_ == MetadataType::None {
        return Ok(Ok(()));
    }
    let sources = match read_sources(client, &class.spec.metadata_options).await? {
        Ok(sources) => sources,
        Err(missing) => return Ok(Err(NoFirstBoot { reason: &METADATA_OPTIONS_NOT_FOUND, message: missing.0 })),
    };
    let zone = zone.and_then(|zone| Zone::of(zone));
    let config = match &zone {
        Some(zone) => zone.config(regions).await,
        None => None,
    };
    let Some((zone, config)) = zone.zip(config) else { return Ok(parse(&sources)) };
    Ok(trial(class, &sources, (&zone, &config)))
}

/// Where a VM template is.
struct Zone {
    region: String,
    host: String,
    vmid: VmId,
}

impl Zone {
    fn of(zone: &str) -> Option<Zone> {
        let mut parts = zone.splitn(3, '/').map(str::to_owned);
        let (region, host, vmid) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Zone { region, host, vmid: vmid.parse::<u32>().ok()?.try_into().ok()? })
    }

    /// The cards that a clone will have.
    async fn config(&self, regions: &Regions) -> Option<VmConfig> {
        let host = self.host.parse().ok()?;
        regions.get(&self.region)?.vm_config(&host, self.vmid).await.ok()
    }
}

fn invalid(message: &str) -> NoFirstBoot {
    NoFirstBoot { reason: &METADATA_OPTIONS_INVALID, message: format!("{message}; correct it") }
}

/// Without a VM template it is not known which cards a VM has; only the templates' own text is judged.
fn parse(sources: &Sources) -> Result<(), NoFirstBoot> {
    sources.templates.parse().map_err(|error| invalid(&sources.explain(&error)))
}

fn trial(class: &ProxmoxNodeClass, sources: &Sources, (zone, config): (&Zone, &VmConfig)) -> Result<(), NoFirstBoot> {
    let Some(instance_type) = InstanceType::built_in().into_iter().next() else { return Ok(()) };
    let (Some(vm), Some(bootstrap)) = (sample::vm(&zone.region, &zone.host), sample::bootstrap()) else {
        return Ok(());
    };
    let claim = sample::claim(class);
    let facts = SeedFacts {
        claim: &claim,
        class,
        instance_type: &instance_type,
        bootstrap,
        kubernetes_version: sample::VERSION.to_owned(),
        sources,
        bridges: &[],
    };
    render_seed(&facts, &vm, config).map(drop).map_err(|why| invalid(&why))
}
