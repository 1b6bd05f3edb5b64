//! Whether VMs of a ProxmoxNodeClass can be made, and where.

use tenon_api::{InstanceTemplateKind, MetadataType, ProxmoxNodeClassSpec, ZoneBalance};

use super::Verdict;
use super::estate::Estate;

/// The conditions of a class.
pub(crate) const TEMPLATE_READY: &str = "InstanceTemplateReady";
pub(crate) const METADATA_READY: &str = "InstanceMetadataOptionsReady";

/// Where VMs can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassVerdict {
    /// Each place as `region/host/template`.
    pub selected_zones: Vec<String>,
    /// The condition of its template.
    pub template: Verdict,
    /// The condition of its first-boot data.
    pub metadata: Verdict,
}

/// Judges a class by the zones its template was found in; `None` if there is no such template object.
pub fn judge_class(spec: &ProxmoxNodeClassSpec, template_zones: Option<&[String]>, estate: &Estate) -> ClassVerdict {
    let selected_zones = template_zones.map(|zones| select(spec, zones, estate)).unwrap_or_default();
    let name = &spec.instance_template_ref.name;
    let template = if let Some(field) = unsupported(spec) {
        Verdict::fails(
            "FieldNotSupportedYet",
            format!("{field} is not supported yet; remove it or wait for a later release"),
        )
    } else if template_zones.is_none() {
        Verdict::fails("TemplatesNotFound", format!("there is no ProxmoxUnmanagedTemplate {name}; create it"))
    } else if selected_zones.is_empty() {
        Verdict::fails("TemplatesNotFound", nowhere(spec, template_zones.unwrap_or_default()))
    } else {
        Verdict::holds(TEMPLATE_READY)
    };
    ClassVerdict { selected_zones, template, metadata: metadata(spec) }
}

/// One place for each host: the first template there, on a host with the class's storage.
fn select(spec: &ProxmoxNodeClassSpec, zones: &[String], estate: &Estate) -> Vec<String> {
    let mut selected: Vec<String> = Vec::new();
    let mut sorted = zones.to_vec();
    sorted.sort();
    for zone in sorted {
        let mut parts = zone.splitn(3, '/');
        let (Some(region), Some(host)) = (parts.next(), parts.next()) else { continue };
        let in_region = spec.region.as_ref().is_none_or(|wanted| wanted == region);
        let on_storage = storage(spec).is_none_or(|storage| estate.has_storage(region, host, storage));
        let is_first = !selected.iter().any(|taken| taken.starts_with(&format!("{region}/{host}/")));
        if in_region && on_storage && is_first {
            selected.push(zone);
        }
    }
    selected
}

fn storage(spec: &ProxmoxNodeClassSpec) -> Option<&str> {
    spec.boot_device.storage.as_deref().filter(|storage| !storage.is_empty())
}

fn nowhere(spec: &ProxmoxNodeClassSpec, zones: &[String]) -> String {
    let name = &spec.instance_template_ref.name;
    match (zones.is_empty(), storage(spec)) {
        (true, _) => format!("ProxmoxUnmanagedTemplate {name} found no template yet; its own conditions say why"),
        (false, Some(storage)) => {
            format!("template {name} is on no host with storage {storage} available; found it at {}", zones.join(", "))
        }
        (false, None) => format!("template {name} is not in region {}", spec.region.as_deref().unwrap_or_default()),
    }
}

/// The first field that is set and not acted on.
fn unsupported(spec: &ProxmoxNodeClassSpec) -> Option<&'static str> {
    let found = [
        (
            spec.instance_template_ref.kind == InstanceTemplateKind::ProxmoxTemplate,
            "spec.instanceTemplateRef.kind ProxmoxTemplate",
        ),
        (
            spec.placement_strategy.zone_balance == ZoneBalance::AvailabilityFirst,
            "spec.placementStrategy.zoneBalance AvailabilityFirst",
        ),
        (spec.security_groups.iter().flatten().next().is_some(), "spec.securityGroups"),
    ];
    found.into_iter().find(|(is_set, _)| *is_set).map(|(_, field)| field)
}

/// A CD-ROM without templates gets the built-in data: the reference refuses that.
fn metadata(spec: &ProxmoxNodeClassSpec) -> Verdict {
    let options = &spec.metadata_options;
    let field = match (options.type_, &options.templates_ref, &options.values_ref) {
        (_, None, None) | (MetadataType::None, ..) => return Verdict::holds(METADATA_READY),
        (_, Some(_), _) => "spec.metadataOptions.templatesRef",
        (_, None, Some(_)) => "spec.metadataOptions.valuesRef",
    };
    Verdict::fails(
        "FieldNotSupportedYet",
        format!("{field} is not supported yet; without it the built-in first-boot data is used"),
    )
}
