//! Which fields do templates see, and of which types are they?
//!
//! Names, order, types and YAML keys are those that existing templates were written for: a template that prints a whole
//! part of the context gives the same bytes. What is new is hidden from such prints and can only be named.

use tenon_gotemplate::{Field, IntKind, Struct, StructType, Type, UintKind, Value};

const INT64: Type = Type::Int(IntKind::Int64);
const UINT32: Type = Type::Uint(UintKind::Uint32);
const OPTIONAL_BOOL: Type = Type::Pointer(&Type::Bool);
const OPTIONAL_INT32: Type = Type::Pointer(&INT32);
/// What the kubelet's thresholds are.
pub(crate) const INT32: Type = Type::Int(IntKind::Int32);
const OPTIONAL_DURATION: Type = Type::Pointer(&DURATION_TYPE);
/// What a duration points to.
pub(crate) const DURATION_TYPE: Type = Type::Struct(&DURATION);
const INTERFACE_TYPE: Type = Type::Struct(&INTERFACE);
/// What the list of interfaces holds.
pub(crate) const INTERFACE_ITEM: &Type = &INTERFACE_TYPE;
const TAINT_TYPE: Type = Type::Struct(&TAINT);
/// What the list of taints holds.
pub(crate) const TAINT_ITEM: &Type = &TAINT_TYPE;
const KUBELET_TYPE: Type = Type::Struct(&KUBELET);
/// What the kubelet's configuration points to.
pub(crate) const KUBELET_TARGET: &Type = &KUBELET_TYPE;
/// What it points to where nobody set the quota's period.
pub(crate) const USUAL_KUBELET_TARGET: &Type = &Type::Struct(&USUAL_KUBELET);

const fn field(name: &'static str, yaml: &'static str, type_: Type) -> Field {
    Field { name, yaml, omit_empty: false, type_ }
}

const fn optional(name: &'static str, yaml: &'static str, type_: Type) -> Field {
    Field { name, yaml, omit_empty: true, type_ }
}

/// New, and hidden where the whole is printed.
const fn hidden(name: &'static str, type_: Type) -> Field {
    field(name, "-", type_)
}

const fn plain(name: &'static str, fields: &'static [Field]) -> StructType {
    StructType { name, fields, text: None }
}

/// The root of user-data.
pub(crate) static ROOT: StructType = plain(
    "instance.UserDataValues",
    &[
        field("Metadata", "metadata", Type::Struct(&METADATA)),
        field("Network", "network", Type::Struct(&NETWORK)),
        field("Resources", "resources", Type::Struct(&RESOURCES)),
        field("Kubernetes", "kubernetes", Type::Struct(&KUBERNETES)),
        field("Values", "values", Type::STRING_MAP),
    ],
);

/// The root of meta-data and vendor-data.
pub(crate) static METADATA: StructType = plain(
    "cloudinit.MetaData",
    &[
        field("Hostname", "hostname", Type::String),
        field("InstanceID", "instanceid", Type::String),
        field("InstanceUUID", "instanceuuid", Type::String),
        field("InstanceType", "instancetype", Type::String),
        field("ProviderID", "providerid", Type::String),
        field("Region", "region", Type::String),
        field("Zone", "zone", Type::String),
        field("Tags", "tags", Type::STRINGS),
        field("NodeClass", "nodeclass", Type::String),
    ],
);

/// The root of network-config.
pub(crate) static NETWORK: StructType = plain(
    "cloudinit.NetworkConfig",
    &[
        field("Interfaces", "interfaces", Type::List(&INTERFACE_TYPE)),
        optional("SearchDomains", "search_domains", Type::STRINGS),
        optional("NameServers", "name_servers", Type::STRINGS),
    ],
);

pub(crate) static INTERFACE: StructType = plain(
    "cloudinit.InterfaceConfig",
    &[
        field("Name", "name", Type::String),
        optional("MacAddr", "mac_address", Type::String),
        optional("DHCPv4", "dhcp4", Type::Bool),
        optional("DHCPv6", "dhcp6", Type::Bool),
        optional("SLAAC", "slaac", Type::Bool),
        optional("Address4", "addresses4", Type::STRINGS),
        optional("Address6", "addresses6", Type::STRINGS),
        optional("Gateway4", "gateway4", Type::String),
        optional("Gateway6", "gateway6", Type::String),
        optional("MTU", "mtu", UINT32),
        optional("NodeAddress4", "node_address4", Type::String),
        optional("NodeAddress6", "node_address6", Type::String),
        optional("NodeGateway4", "node_gateway4", Type::String),
        optional("NodeGateway6", "node_gateway6", Type::String),
    ],
);

pub(crate) static RESOURCES: StructType = plain(
    "instance.Resources",
    &[
        optional("CPU", "cpu", INT64),
        optional("Memory", "memory", INT64),
        optional("Hugepages1Gi", "hugepages1Gi", Type::INT),
        optional("Hugepages2Mi", "hugepages2Mi", Type::INT),
    ],
);

pub(crate) static KUBERNETES: StructType = plain(
    "instance.Kubernetes",
    &[
        field("Version", "version", Type::String),
        field("RootCA", "rootca", Type::String),
        field("BootstrapToken", "bootstraptoken", Type::String),
        field("KubeletConfiguration", "kubeletconfiguration", Type::Pointer(&KUBELET_TYPE)),
        hidden("APIServer", Type::String),
        hidden("NodeLabels", Type::STRING_MAP),
        hidden("KubeletConfigurationFile", Type::String),
        hidden("BootstrapKubeconfig", Type::String),
    ],
);

pub(crate) static TAINT: StructType = plain(
    "instance.KubernetesTaint",
    &[
        optional("Key", "key", Type::String),
        optional("Value", "value", Type::String),
        optional("Effect", "effect", Type::String),
    ],
);

/// A duration prints as its text, as a kubelet reads it. Its numbers are what Go's methods of these names give.
pub(crate) static DURATION: StructType = StructType {
    name: "v1.Duration",
    fields: &[
        field("Duration", "duration", Type::Struct(&TIME)),
        hidden("Hours", Type::Float),
        hidden("Minutes", Type::Float),
        hidden("Seconds", Type::Float),
        hidden("Milliseconds", INT64),
    ],
    text: Some(duration_text),
};

/// What is inside of a duration.
pub(crate) static TIME: StructType = StructType {
    name: "time.Duration",
    fields: &[
        hidden("Text", Type::String),
        hidden("Hours", Type::Float),
        hidden("Minutes", Type::Float),
        hidden("Seconds", Type::Float),
        hidden("Milliseconds", INT64),
    ],
    text: Some(time_text),
};

fn duration_text(duration: &Struct) -> String {
    match duration.get(b"Duration") {
        Some(Value::Struct(time)) => time_text(time),
        _ => String::new(),
    }
}

fn time_text(time: &Struct) -> String {
    match time.get(b"Text") {
        Some(Value::String(text)) => text.to_lossy().into_owned(),
        _ => String::new(),
    }
}

/// The kubelet's object.
pub(crate) static KUBELET: StructType = plain("instance.KubeletConfiguration", &WITH_QUOTA_PERIOD);
/// The same where nobody set the quota's period, which the object did not have when templates were written for it.
pub(crate) static USUAL_KUBELET: StructType = plain("instance.KubeletConfiguration", &WITHOUT_QUOTA_PERIOD);

static WITH_QUOTA_PERIOD: [Field; 24] = kubelet_fields("cpuCFSQuotaPeriod");
static WITHOUT_QUOTA_PERIOD: [Field; 24] = kubelet_fields("-");

const fn kubelet_fields(quota_period: &'static str) -> [Field; 24] {
    [
        optional("CPUManagerPolicy", "cpuManagerPolicy", Type::String),
        optional("CPUCFSQuota", "cpuCFSQuota", OPTIONAL_BOOL),
        optional("CPUCFSQuotaPeriod", quota_period, OPTIONAL_DURATION),
        optional("CPUManagerPolicyOptions", "cpuManagerPolicyOptions", Type::STRING_MAP),
        optional("CPUManagerReconcilePeriod", "cpuManagerReconcilePeriod", OPTIONAL_DURATION),
        optional("MemoryManagerPolicy", "memoryManagerPolicy", Type::String),
        optional("TopologyManagerPolicy", "topologyManagerPolicy", Type::String),
        optional("TopologyManagerScope", "topologyManagerScope", Type::String),
        optional("TopologyManagerPolicyOptions", "topologyManagerPolicyOptions", Type::STRING_MAP),
        optional("ImageMinimumGCAge", "imageMinimumGCAge", OPTIONAL_DURATION),
        optional("ImageMaximumGCAge", "imageMaximumGCAge", OPTIONAL_DURATION),
        optional("ImageGCHighThresholdPercent", "imageGCHighThresholdPercent", OPTIONAL_INT32),
        optional("ImageGCLowThresholdPercent", "imageGCLowThresholdPercent", OPTIONAL_INT32),
        optional("ShutdownGracePeriod", "shutdownGracePeriod", OPTIONAL_DURATION),
        optional("ShutdownGracePeriodCriticalPods", "shutdownGracePeriodCriticalPods", OPTIONAL_DURATION),
        optional("AllowedUnsafeSysctls", "allowedUnsafeSysctls", Type::STRINGS),
        optional("ClusterDNS", "clusterDNS", Type::STRINGS),
        optional("MaxPods", "maxPods", OPTIONAL_INT32),
        optional("ProviderID", "providerID", Type::String),
        optional("FailSwapOn", "failSwapOn", OPTIONAL_BOOL),
        optional("SystemReserved", "systemReserved", Type::STRING_MAP),
        optional("KubeReserved", "kubeReserved", Type::STRING_MAP),
        optional("EvictionHard", "evictionHard", Type::STRING_MAP),
        optional("RegisterWithTaints", "registerWithTaints", Type::List(&TAINT_TYPE)),
    ]
}
