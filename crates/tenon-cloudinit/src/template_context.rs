//! What do templates see of a VM?

use std::collections::BTreeMap;

use tenon_gotemplate::{IntKind, List, Map, Pointer, Struct, StructType, Type, UintKind, Value};
use tenon_model::GoDuration;

use crate::context_types as types;
use crate::input::{Identity, SeedInput, Values};
use crate::kubelet_settings::{KubeletSettings, Taint};
use crate::network::{Interface, Network};
use crate::{Bootstrap, Error, boot_files, node_labels};

/// What user-data sees.
pub(crate) fn root(input: &SeedInput) -> Result<Value, Error> {
    let resources = [
        Value::Int(i64::from(input.resources.cpu), IntKind::Int64),
        Value::Int(i64::try_from(input.resources.memory_bytes).unwrap_or(i64::MAX), IntKind::Int64),
        Value::int(i64::from(input.resources.hugepages_1gi)),
        Value::int(i64::from(input.resources.hugepages_2mi)),
    ];
    let fields = [
        metadata(&input.identity),
        network(&input.network),
        made(&types::RESOURCES, resources),
        kubernetes(input)?,
        values(&input.values),
    ];
    Ok(made(&types::ROOT, fields))
}

fn values(values: &Values) -> Value {
    let text = values.text.iter().map(|(key, value)| (key, value.as_bytes()));
    let binary = values.binary.iter().map(|(key, value)| (key, value.as_slice()));
    Value::Map(Map::of_strings(text.chain(binary)))
}

/// What meta-data and vendor-data see.
pub(crate) fn metadata(identity: &Identity) -> Value {
    let fields = [
        Value::string(&identity.node_name),
        Value::string(identity.vmid.to_string()),
        Value::string(&identity.instance_uuid),
        Value::string(&identity.instance_type),
        Value::string(&identity.provider_id),
        Value::string(&identity.region),
        Value::string(&identity.zone),
        strings(&identity.tags),
        Value::string(&identity.node_class),
    ];
    made(&types::METADATA, fields)
}

/// What network-config sees.
pub(crate) fn network(network: &Network) -> Value {
    let interfaces = network.interfaces.iter().map(interface);
    let fields =
        [list(types::INTERFACE_ITEM, interfaces), strings(&network.search_domains), strings(&network.name_servers)];
    made(&types::NETWORK, fields)
}

fn interface(interface: &Interface) -> Value {
    let text = |text: &Option<String>| Value::string(text.as_deref().unwrap_or_default());
    let fields = [
        Value::string(&interface.name),
        Value::string(&interface.mac),
        Value::Bool(interface.dhcp4),
        Value::Bool(interface.dhcp6),
        Value::Bool(interface.slaac),
        strings(&interface.addresses4),
        strings(&interface.addresses6),
        text(&interface.gateway4),
        text(&interface.gateway6),
        Value::Uint(u64::from(interface.mtu), UintKind::Uint32),
        text(&interface.node_address4),
        text(&interface.node_address6),
        text(&interface.node_gateway4),
        text(&interface.node_gateway6),
    ];
    made(&types::INTERFACE, fields)
}

fn kubernetes(input: &SeedInput) -> Result<Value, Error> {
    let bootstrap = input.bootstrap.as_ref();
    let text = |pick: fn(&Bootstrap) -> &str| Value::string(bootstrap.map(pick).unwrap_or_default());
    let reachable = bootstrap.filter(|bootstrap| !bootstrap.api_server.is_empty());
    let kubeconfig = reachable.map(Bootstrap::kubeconfig).transpose()?;
    let fields = [
        Value::string(&input.kubernetes_version),
        text(|bootstrap| &bootstrap.ca_pem),
        text(|bootstrap| bootstrap.token.expose()),
        Value::Pointer(kubelet(input)),
        text(|bootstrap| &bootstrap.api_server),
        allowed_labels(input),
        Value::string(boot_files::kubelet_config(input)?),
        Value::string(kubeconfig.unwrap_or_default()),
    ];
    Ok(made(&types::KUBERNETES, fields))
}

/// Those that a kubelet may set: with another one it would not start.
fn allowed_labels(input: &SeedInput) -> Value {
    let allowed = node_labels::sort(&input.kubelet.node_labels).set.into_iter();
    string_map(&allowed.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

fn kubelet(input: &SeedInput) -> Pointer {
    let settings: &KubeletSettings = &input.kubelet;
    let text = |text: &Option<String>| Value::string(text.as_deref().unwrap_or_default());
    let fields = [
        text(&settings.cpu_manager_policy),
        boolean(settings.cpu_cfs_quota),
        duration(settings.cpu_cfs_quota_period.as_deref()),
        string_map(&settings.cpu_manager_policy_options),
        duration(settings.cpu_manager_reconcile_period.as_deref()),
        text(&settings.memory_manager_policy),
        text(&settings.topology_manager_policy),
        text(&settings.topology_manager_scope),
        string_map(&settings.topology_manager_policy_options),
        duration(settings.image_minimum_gc_age.as_deref()),
        duration(settings.image_maximum_gc_age.as_deref()),
        number(settings.image_gc_high_threshold_percent),
        number(settings.image_gc_low_threshold_percent),
        duration(settings.shutdown_grace_period.as_deref()),
        duration(settings.shutdown_grace_period_critical_pods.as_deref()),
        strings(&settings.allowed_unsafe_sysctls),
        strings(&settings.cluster_dns),
        number(settings.max_pods),
        Value::string(&input.identity.provider_id),
        boolean(settings.fail_swap_on),
        string_map(&settings.system_reserved),
        string_map(&settings.kube_reserved),
        string_map(&settings.eviction_hard),
        list(types::TAINT_ITEM, settings.taints().iter().map(taint)),
    ];
    match settings.cpu_cfs_quota_period {
        Some(_) => Pointer::new(types::KUBELET_TARGET, made(&types::KUBELET, fields)),
        None => Pointer::new(types::USUAL_KUBELET_TARGET, made(&types::USUAL_KUBELET, fields)),
    }
}

fn taint(taint: &Taint) -> Value {
    let effect = taint.effect.as_str();
    made(&types::TAINT, [Value::string(&taint.key), Value::string(&taint.value), Value::string(effect)])
}

fn made<const N: usize>(type_: &'static StructType, fields: [Value; N]) -> Value {
    Value::Struct(Struct::new(type_, fields.into()))
}

/// Nothing is the nil list, which YAML leaves out where it may.
fn strings(items: &[String]) -> Value {
    Value::List(if items.is_empty() { List::nil(&Type::String) } else { List::of_strings(items) })
}

fn string_map(entries: &BTreeMap<String, String>) -> Value {
    Value::Map(if entries.is_empty() { Map::nil(&Type::String) } else { Map::of_strings(entries) })
}

/// Structs nest two levels at most, which no list refuses.
fn list(item: &'static Type, items: impl Iterator<Item = Value>) -> Value {
    let items: Vec<Value> = items.collect();
    let empty = List::nil(item);
    Value::List(if items.is_empty() { empty } else { List::new(item, items).unwrap_or(empty) })
}

fn boolean(value: Option<bool>) -> Value {
    Value::Pointer(match value {
        Some(value) => Pointer::new(&Type::Bool, Value::Bool(value)),
        None => Pointer::nil(&Type::Bool),
    })
}

fn number(value: Option<u32>) -> Value {
    Value::Pointer(match value {
        Some(value) => Pointer::new(&types::INT32, Value::Int(i64::from(value), IntKind::Int32)),
        None => Pointer::nil(&types::INT32),
    })
}

/// A duration in Go's spelling: `5m` is `5m0s`.
fn duration(text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Pointer(Pointer::nil(&types::DURATION_TYPE)) };
    let parsed = text.parse::<GoDuration>().ok();
    let spelled = parsed.map_or_else(|| text.to_owned(), |duration| duration.to_string());
    let nanos = parsed.map_or(0, GoDuration::as_nanos);
    // Exact up to a hundred days, and close beyond.
    #[expect(clippy::cast_precision_loss, reason = "Go rounds to the nearest float as well")]
    let seconds = nanos as f64 / 1e9;
    let numbers = || {
        let floats = [seconds / 3600.0, seconds / 60.0, seconds].map(Value::Float);
        floats.into_iter().chain([Value::Int(nanos / 1_000_000, IntKind::Int64)])
    };
    let time = Struct::new(&types::TIME, std::iter::once(Value::string(spelled)).chain(numbers()).collect());
    let duration = std::iter::once(Value::Struct(time)).chain(numbers()).collect();
    let duration = Value::Struct(Struct::new(&types::DURATION, duration));
    Value::Pointer(Pointer::new(&types::DURATION_TYPE, duration))
}
