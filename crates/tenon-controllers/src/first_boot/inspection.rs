//! Could a VM of a class be given first-boot data? Found out by rendering it for a sample VM, before there is any.

use std::sync::Arc;
use std::time::Duration;

use tenon_api::condition_reasons::{ConditionReason, METADATA_OPTIONS_INVALID, METADATA_OPTIONS_NOT_FOUND};
use tenon_api::{MetadataType, NodeClaim, ProxmoxNodeClass};
use tenon_cloudinit::{Bootstrap, Seed, SeedFileName};
use tenon_model::{HostName, InstanceType, Place, VmId};
use tenon_pve::{Interface, VmConfig};

use super::sample;
use super::seed::{SeedFacts, render_seed};
use super::sources::{NodeSecrets, Sources};
use crate::join::JoinUse;
use crate::regions::Regions;

/// VM templates that are asked for their cards before it is left to a later pass.
const ASKED: usize = 3;
/// A configuration is read in well under a second; a class waits no longer than this for one.
const ASKED_WITHIN: Duration = Duration::from_secs(6);

/// Why a class cannot give its VMs first-boot data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFirstBoot {
    /// The reason of the class's condition.
    pub reason: &'static ConditionReason,
    /// What is wrong, and the next step.
    pub message: String,
}

/// What came of trying.
pub(crate) enum Inspection {
    /// It can; and what of all that a node joins with it uses.
    Fine(JoinUse),
    Faulty(NoFirstBoot),
    /// The templates' own text is right; which cards a VM has could not be read.
    Unknown,
}

/// What is tried: a class, and the claim and size if it is for one.
pub(crate) struct Subject<'a> {
    pub(crate) class: &'a ProxmoxNodeClass,
    pub(crate) launch: Option<(&'a NodeClaim, &'a InstanceType)>,
}

/// Tries the first-boot data of a class. `zones` are its VM templates, as `region/host/vmid`.
pub(crate) async fn inspect(
    secrets: &NodeSecrets,
    regions: &Regions,
    subject: &Subject<'_>,
    zones: &[String],
) -> Result<Inspection, kube::Error> {
    let options = &subject.class.spec.metadata_options;
    if options.type_ == MetadataType::None {
        return Ok(Inspection::Fine(JoinUse::NONE));
    }
    let sources = match secrets.sources(options).await? {
        Ok(sources) => sources,
        Err(missing) => {
            let (reason, message) = (&METADATA_OPTIONS_NOT_FOUND, missing.0);
            return Ok(Inspection::Faulty(NoFirstBoot { reason, message }));
        }
    };
    if let Err(error) = sources.templates.parse() {
        return Ok(Inspection::Faulty(invalid(&sources.explain(&error))));
    }
    let is_own = options.templates_ref.is_some() || options.values_ref.is_some();
    let site = if is_own { Site::first(regions, zones).await } else { Some(Site::default()) };
    Ok(site.map_or(Inspection::Unknown, |site| trial(subject, &sources, &site)))
}

/// Where a VM would be made: what its cards and the host's bridges are.
#[derive(Default)]
struct Site {
    region: String,
    host: String,
    config: Arc<VmConfig>,
    bridges: Arc<Vec<Interface>>,
}

impl Site {
    /// The first that can be read. A region that does not answer is not waited for.
    async fn first(regions: &Regions, zones: &[String]) -> Option<Site> {
        let is_awake = |zone: &&String| !zone.split('/').next().is_some_and(|region| regions.is_silent(region));
        for zone in zones.iter().filter(is_awake).take(ASKED) {
            let read = tokio::time::timeout(ASKED_WITHIN, Site::read(regions, zone)).await;
            if let Ok(Some(site)) = read {
                return Some(site);
            }
        }
        None
    }

    async fn read(regions: &Regions, zone: &str) -> Option<Site> {
        let mut parts = zone.splitn(3, '/');
        let (region, name, vmid) = (parts.next()?, parts.next()?, parts.next()?);
        let host: HostName = name.parse().ok()?;
        let vmid: VmId = vmid.parse::<u32>().ok()?.try_into().ok()?;
        let pve = regions.get(region)?;
        let place = Place { region: region.to_owned(), host };
        let config = regions.reads.template(&pve, &place, vmid).await.ok()?;
        let bridges = regions.reads.bridges(&pve, &place).await.ok()?;
        Some(Site { region: region.to_owned(), host: name.to_owned(), config, bridges })
    }
}

fn invalid(message: &str) -> NoFirstBoot {
    let message = format!("{message}; correct the template or the values, and try them with tenon render");
    NoFirstBoot { reason: &METADATA_OPTIONS_INVALID, message }
}

fn trial(subject: &Subject<'_>, sources: &Sources, site: &Site) -> Inspection {
    let built_in = InstanceType::built_in();
    let (Some(vm), Some(bootstrap), Some(size)) =
        (sample::vm(&site.region, &site.host), sample::bootstrap(), built_in.first())
    else {
        return Inspection::Unknown;
    };
    let claim = sample::claim(subject.class);
    let (claim, instance_type) = subject.launch.unwrap_or((&claim, size));
    let facts = SeedFacts {
        claim,
        class: subject.class,
        instance_type,
        bootstrap,
        kubernetes_version: sample::VERSION.to_owned(),
        sources,
        bridges: &site.bridges,
    };
    let render = |bootstrap: Bootstrap| {
        render_seed(
            &SeedFacts { bootstrap, kubernetes_version: sample::VERSION.to_owned(), ..facts },
            &vm,
            &site.config,
        )
    };
    match render(facts.bootstrap.clone()) {
        Ok(seed) if sources.templates.get(SeedFileName::UserData).is_some() => {
            Inspection::Fine(used(&seed, &facts.bootstrap, render))
        }
        Ok(_) => Inspection::Fine(JoinUse::ALL),
        Err(why) => Inspection::Faulty(invalid(&why)),
    }
}

/// What a user's own templates use of what a node joins with: what makes another seed of them, in whatever form they write it.
fn used(seed: &Seed, bootstrap: &Bootstrap, render: impl Fn(Bootstrap) -> Result<Seed, String>) -> JoinUse {
    let differs = |other: Option<Bootstrap>| other.is_none_or(|other| render(other).as_ref() != Ok(seed));
    let token = sample::other_token().map(|token| Bootstrap { token, ..bootstrap.clone() });
    let with = |server: &str| Bootstrap { api_server: server.to_owned(), ..bootstrap.clone() };
    let has_way_out = render(with("")).is_ok_and(|without| is_handled(seed, &without, &bootstrap.api_server));
    JoinUse { ca: true, token: differs(token), server: differs(Some(with(sample::OTHER_SERVER))) && !has_way_out }
}

/// Whether templates handle that the address of the API server is unknown: where they print it, they print something else
/// then than nothing. What they print in another form cannot be told, and is taken to be needed.
fn is_handled(seed: &Seed, without: &Seed, server: &str) -> bool {
    let files = |seed: &Seed| -> Vec<String> {
        let Seed { user_data, meta_data, vendor_data, network_config, .. } = seed;
        let all = [Some(user_data), Some(meta_data), vendor_data.as_ref(), network_config.as_ref()];
        let text = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        all.map(|bytes| text(bytes).unwrap_or_default()).to_vec()
    };
    let (with, without) = (files(seed), files(without));
    let is_printed = with.iter().any(|file| file.contains(server));
    let is_left_out = with.iter().zip(&without).all(|(with, without)| with.replace(server, "") == *without);
    is_printed && !is_left_out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is used by a class with this template of user-data, or the built-in one.
    fn used_by(user_data: Option<&str>) -> JoinUse {
        let class = json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass",
            "metadata": { "name": "a" },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "a" } },
        });
        let class: ProxmoxNodeClass = serde_json::from_value(class).unwrap();
        let templates =
            user_data.map(|text| ("Secret a/b", [("user-data".to_owned(), text.as_bytes().to_vec())].into()));
        let sources = Sources::of(templates, std::collections::BTreeMap::new());
        match trial(&Subject { class: &class, launch: None }, &sources, &Site::default()) {
            Inspection::Fine(used) => used,
            Inspection::Faulty(why) => panic!("{why:?}"),
            Inspection::Unknown => panic!("nothing is unknown"),
        }
    }

    #[test]
    fn templates_that_handle_an_unknown_api_server_do_not_need_it() {
        let either = "#cloud-config\nhostname: {{ .Kubernetes.APIServer | default \"https://api:6443\" }}\n";
        assert_eq!(used_by(Some(either)), JoinUse::LEAST);
        let perhaps = "#cloud-config\n{{ if .Kubernetes.APIServer }}hostname: {{ .Kubernetes.APIServer }}\n{{ end }}";
        assert_eq!(used_by(Some(perhaps)), JoinUse::LEAST);
    }

    #[test]
    fn what_templates_use_is_found_in_whatever_form_they_write_it() {
        assert_eq!(used_by(None), JoinUse::ALL);
        assert_eq!(used_by(Some("#cloud-config\nhostname: a\n")), JoinUse::LEAST);
        let encoded = "#cloud-config\nhostname: {{ .Kubernetes.BootstrapToken | b64enc }}\n";
        assert_eq!(used_by(Some(encoded)), JoinUse { token: true, ..JoinUse::LEAST });
        let server = "#cloud-config\nhostname: {{ .Kubernetes.APIServer | quote }}\n";
        assert_eq!(used_by(Some(server)), JoinUse { server: true, ..JoinUse::LEAST });
        let encoded = "#cloud-config\nhostname: {{ .Kubernetes.APIServer | b64enc }}\n";
        assert_eq!(used_by(Some(encoded)), JoinUse { server: true, ..JoinUse::LEAST });
    }
}
