//! Do templates as users of the Go provider write them give what real Go gives for the same context?

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};
use tenon_cloudinit::{SeedFileName, SeedInput, Templates, Values, render};

use crate::go;
use crate::sample::{full, map};

/// The examples that the guide names.
const EXAMPLES: [(&str, &str); 3] = [
    ("kubeadm", include_str!("../../../../examples/first-boot/kubeadm.yaml")),
    ("k3s", include_str!("../../../../examples/first-boot/k3s.yaml")),
    ("talos", include_str!("../../../../examples/first-boot/talos.yaml")),
];

#[derive(Deserialize)]
struct Manifest {
    kind: String,
    metadata: Metadata,
    #[serde(default, rename = "stringData")]
    string_data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// The templates and the values of an example.
fn example(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let manifests: Vec<Manifest> = serde_saphyr::from_multiple(text).unwrap();
    let mut secrets = manifests.into_iter().filter(|manifest| manifest.kind == "Secret");
    let (templates, values) = (secrets.next().unwrap(), secrets.next().unwrap());
    assert_eq!(values.metadata.name, format!("{}-values", templates.metadata.name));
    (templates.string_data, values.string_data)
}

fn templates(texts: &BTreeMap<String, String>) -> Templates {
    Templates::from_keys(texts.iter().map(|(key, text)| (key.as_str(), text.as_bytes())))
}

/// Machines that differ in what templates ask for.
fn machines() -> Vec<SeedInput> {
    let plain = SeedInput { kubelet: tenon_cloudinit::KubeletSettings::default(), ..full() };
    let mut asking = plain.clone();
    asking.network.interfaces[0].addresses4.clear();
    asking.network.interfaces[0].dhcp4 = true;
    asking.network.name_servers.clear();
    asking.resources.hugepages_2mi = 0;
    let mut bridged = full();
    bridged.network.interfaces[0].node_address6 = Some("2001:db8::1/64".to_owned());
    bridged.network.interfaces.push(tenon_cloudinit::Interface {
        name: "eth1".to_owned(),
        mac: "BC:24:11:00:00:02".to_owned(),
        slaac: true,
        mtu: 9000,
        ..tenon_cloudinit::Interface::default()
    });
    bridged.identity.tags = vec!["debug".to_owned(), "yes".to_owned(), "0x1f".to_owned()];
    bridged.kubelet.allowed_unsafe_sysctls = vec!["net.*".to_owned(), "kernel.shm*".to_owned()];
    bridged.kubelet.shutdown_grace_period = Some("5m".to_owned());
    bridged.kubelet.system_reserved = map(&[("cpu", "10m"), ("memory", "64Mi")]);
    vec![full(), plain, asking, bridged]
}

/// The context as Go reads it, written down from what is known of the machine.
fn context(input: &SeedInput) -> Value {
    let identity = &input.identity;
    let interfaces: Vec<Value> = input.network.interfaces.iter().map(interface).collect();
    let bootstrap = input.bootstrap.as_ref().unwrap();
    json!({
        "Metadata": {
            "Hostname": identity.node_name, "InstanceID": identity.vmid.to_string(), "InstanceUUID": identity.instance_uuid,
            "InstanceType": identity.instance_type, "ProviderID": identity.provider_id, "Region": identity.region,
            "Zone": identity.zone, "Tags": identity.tags, "NodeClass": identity.node_class,
        },
        "Network": {
            "Interfaces": interfaces,
            "SearchDomains": filled(&input.network.search_domains), "NameServers": filled(&input.network.name_servers),
        },
        "Resources": {
            "CPU": input.resources.cpu, "Memory": input.resources.memory_bytes,
            "Hugepages1Gi": input.resources.hugepages_1gi, "Hugepages2Mi": input.resources.hugepages_2mi,
        },
        "Kubernetes": {
            "Version": input.kubernetes_version, "RootCA": bootstrap.ca_pem, "BootstrapToken": bootstrap.token.expose(),
            "KubeletConfiguration": kubelet(input),
        },
        "Values": input.values.text,
    })
}

fn filled(items: &[String]) -> Value {
    if items.is_empty() { Value::Null } else { json!(items) }
}

fn entries(map: &BTreeMap<String, String>) -> Value {
    if map.is_empty() { Value::Null } else { json!(map) }
}

fn interface(card: &tenon_cloudinit::Interface) -> Value {
    json!({
        "Name": card.name, "MacAddr": card.mac, "DHCPv4": card.dhcp4, "DHCPv6": card.dhcp6, "SLAAC": card.slaac,
        "Address4": filled(&card.addresses4), "Address6": filled(&card.addresses6),
        "Gateway4": card.gateway4.clone().unwrap_or_default(), "Gateway6": card.gateway6.clone().unwrap_or_default(),
        "MTU": card.mtu, "NodeAddress6": card.node_address6.clone().unwrap_or_default(),
    })
}

fn kubelet(input: &SeedInput) -> Value {
    let kubelet = &input.kubelet;
    let mut taints = vec![json!({ "Key": "karpenter.sh/unregistered", "Effect": "NoExecute" })];
    taints.extend(
        kubelet
            .register_with_taints
            .iter()
            .map(|taint| json!({ "Key": taint.key, "Value": taint.value, "Effect": taint.effect.as_str() })),
    );
    let duration = |text: &Option<String>| text.as_ref().map_or(Value::Null, |text| json!(text));
    json!({
        "CPUManagerPolicy": kubelet.cpu_manager_policy.clone().unwrap_or_default(),
        "CPUCFSQuotaPeriod": duration(&kubelet.cpu_cfs_quota_period),
        "ShutdownGracePeriod": duration(&kubelet.shutdown_grace_period),
        "AllowedUnsafeSysctls": filled(&kubelet.allowed_unsafe_sysctls), "ClusterDNS": filled(&kubelet.cluster_dns),
        "MaxPods": kubelet.max_pods, "ProviderID": input.identity.provider_id, "FailSwapOn": kubelet.fail_swap_on,
        "SystemReserved": entries(&kubelet.system_reserved), "KubeReserved": entries(&kubelet.kube_reserved),
        "EvictionHard": entries(&kubelet.eviction_hard), "RegisterWithTaints": taints,
    })
}

#[derive(Deserialize)]
struct Answer {
    output: String,
    error: String,
}

/// One template for one machine, and what we make of it.
struct Rendering {
    what: String,
    question: Value,
    ours: Vec<u8>,
}

fn renderings(name: &str, texts: &BTreeMap<String, String>, values: &BTreeMap<String, String>) -> Vec<Rendering> {
    let mut all = Vec::new();
    for (number, mut machine) in machines().into_iter().enumerate() {
        machine.values = Values::from(values.clone());
        let seed = render(&machine, &templates(texts)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (file, ours) in seed.files() {
            let Some(text) = texts.get(file.key()) else { continue };
            let question = json!({ "template": text, "file": file.key(), "context": context(&machine) });
            all.push(Rendering { what: format!("{name}, {file}, machine {number}"), question, ours: ours.to_vec() });
        }
    }
    all
}

fn compare(all: &[Rendering]) {
    let questions: Vec<&Value> = all.iter().map(|rendering| &rendering.question).collect();
    let Some(answers) = go::run("render", &serde_json::to_vec(&questions).unwrap()) else { return };
    let answers: Vec<Answer> = serde_json::from_str(&answers).unwrap();
    let mut different = String::new();
    for (Rendering { what, ours, .. }, Answer { output, error }) in all.iter().zip(answers) {
        let ours = String::from_utf8_lossy(ours);
        if ours != output || !error.is_empty() {
            let _ = writeln!(different, "{what}: {error}\n--- ours\n{ours}\n--- Go's\n{output}");
        }
    }
    assert!(different.is_empty(), "{different}");
}

#[test]
fn the_examples_render_to_the_bytes_that_go_gives() {
    let all: Vec<Rendering> = EXAMPLES
        .into_iter()
        .flat_map(|(name, text)| {
            let (texts, values) = example(text);
            renderings(name, &texts, &values)
        })
        .collect();
    assert!(all.len() > 20, "{}", all.len());
    compare(&all);
}

#[test]
fn whole_parts_of_the_context_print_as_go_prints_them() {
    let user_data = "{{ toYaml . }}\n{{ toYamlPretty .Kubernetes }}\n{{ toJson .Network }}\n{{ toPrettyJson .Metadata }}\n\
                     {{ .Metadata }} {{ .Resources }} {{ printf \"%+v\" .Network }}\n\
                     {{ .Kubernetes.KubeletConfiguration | toJson }}\n\
                     {{ with .Kubernetes.KubeletConfiguration.ShutdownGracePeriod }}{{ . }} {{ .Duration }} {{ .Seconds }} \
                     {{ .Duration.Minutes }} {{ .Milliseconds }}{{ end }}\n\
                     {{ range .Network.Interfaces }}{{ eq .MTU 1500 }}{{ .MTU | printf \"%T\" }}{{ end }}\n";
    let texts = map(&[
        ("user-data", user_data),
        ("network-config", "a: {{ toJson . }}\n"),
        ("meta-data", "a: {{ toJson . }}\n"),
        ("vendor-data", "{{ . }}"),
    ]);
    compare(&renderings("context", &texts, &map(&[("a", "b"), ("c", "multi\nline\n")])));
}

#[test]
fn a_template_that_sees_no_value_is_refused_with_its_place() {
    let texts =
        map(&[("user-data", "#cloud-config\nhostname: {{ .Metadata.Hostname }}\ntoken: {{ .Values.token }}\n")]);
    let error = render(&full(), &templates(&texts)).unwrap_err();
    assert_eq!(error.to_string(), "user-data, line 3, column 11: there is no value in {{ .Values.token }}");
    assert_eq!(error.file(), Some(SeedFileName::UserData));
}

#[test]
fn bad_templates_say_which_file_which_line_and_why() {
    for (file, text, expected) in [
        (
            "user-data",
            "#cloud-config\na: {{ nosuch 1 }}\n",
            "user-data, line 2, column 7: function \"nosuch\" not defined",
        ),
        ("user-data", "a\n{{ if true }}\n", "user-data, line 3, column 1: unexpected EOF"),
        ("meta-data", "a: {{ .Values.x }}\n", "meta-data, line 1, column 14: can't evaluate field Values in type"),
        ("network-config", "a: {{ index .Interfaces 7 }}\n", "network-config, line 1, column 7: error calling index"),
        ("user-data", "{{ range 2000000 }}aaaaaaaa{{ end }}", "the output is larger than 1048576 bytes"),
        ("user-data", "#cloud-config\na: [b\n", "user-data renders to text that is not valid YAML: line"),
        ("user-data", "#cloud-config\n- a\n", "user-data renders to text that is not valid YAML: line"),
        ("network-config", "a: b: c\n", "network-config renders to text that is not valid YAML: line 1, column"),
    ] {
        let error = render(&full(), &templates(&map(&[(file, text)]))).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_no_cloud_config_is_left_to_its_reader() {
    let script = "#!/bin/sh\ncat >/x <<EOF\nversion: v1alpha1\nEOF\necho [\n";
    for text in
        [script, "#!/bin/sh\necho [\n", "Content-Type: multipart/mixed; [\n", "## template: jinja\na: {{ \"{%\" }} [\n"]
    {
        let seed = render(&full(), &templates(&map(&[("user-data", text)]))).unwrap();
        assert!(!seed.user_data.is_empty());
    }
}

#[test]
fn nothing_stands_for_an_empty_list_or_map_as_in_go() {
    let text = "{{ hasTag .Values.nope \"k\" }}{{ get .Values.nope \"k\" }}|{{ join nil \",\" }}|{{ hasKey nil \"k\" }}\n\
                {{ define \"user-data\" }}x{{ end }}{{ template \"user-data\" . }}{{ len .Values }}{{ empty .Values }}";
    compare(&renderings("nothing", &map(&[("user-data", text)]), &map(&[("a", "b")])));
}

#[test]
fn a_value_that_is_no_text_reaches_a_template_to_the_byte() {
    let mut machine = full();
    machine.values = [("key".to_owned(), vec![0xff, 0xfe, 0])].into_iter().collect();
    let seed = render(&machine, &templates(&map(&[("user-data", "{{ .Values.key | b64enc }} {{ len .Values.key }}")])));
    assert_eq!(seed.unwrap().user_data, b"//4A 3");
    // The built-in user-data has no place for it, and is whole without it.
    assert!(render(&machine, &Templates::default()).is_ok());
}

#[test]
fn errors_show_neither_values_nor_what_a_template_has_between_quotes() {
    let mut machine = full();
    machine.values = Values::from(map(&[("secret", "hunter2(")]));
    for text in [
        "{{ cidrhost .Values.secret }}",
        "{{ regexFind .Values.secret \"a\" }}",
        "{{ range .Values.secret }}{{ end }}",
        "{{ b64dec .Values.secret }}",
        "{{ b64dec \"hunter2\" }}",
        "{{ getValue .Values.secret .Values.secret }}",
        "{{ index .Values.secret 99 }}",
        "{{ eq .Values.secret 1 }}",
        "{{ indent -1 .Values.secret }}",
    ] {
        let error = render(&machine, &templates(&map(&[("user-data", text)]))).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_kubelet_setting_is_checked_only_where_the_file_is_ours() {
    let mut machine = full();
    machine.kubelet.image_gc_high_threshold_percent = Some(70);
    assert!(render(&machine, &Templates::default()).is_err());
    let own = map(&[("user-data", "{{ .Kubernetes.KubeletConfiguration.ImageGCHighThresholdPercent }}")]);
    assert_eq!(render(&machine, &templates(&own)).unwrap().user_data, b"70");
}
