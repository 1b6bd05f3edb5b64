//! Pod affinity and anti-affinity, how a pod is spread, and what else it brings.

use std::collections::BTreeMap;
use tenon_api::kube_objects::Pod as KubePod;

use serde_json::{Value, json};
use tenon_api::pod::{faults, to_model};
use tenon_model::{
    Effect, HostPort, Owner, Pod, Protection, Requirement, Seconds, Selector, Tolerated, Toleration, Volume,
    WhenUnsatisfiable,
};

fn pod(metadata: &Value, spec: &Value) -> KubePod {
    let mut metadata = metadata.clone();
    metadata["name"] = "p".into();
    metadata["namespace"] = "n".into();
    let mut spec = spec.clone();
    if spec.get("containers").is_none() {
        spec["containers"] = json!([]);
    }
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn model(metadata: &Value, spec: &Value) -> Pod {
    to_model(&pod(metadata, spec))
}

fn shown(selector: Option<&Selector>) -> Vec<String> {
    selector.iter().flat_map(|selector| &selector.requirements).map(ToString::to_string).collect()
}

#[test]
fn a_spread_is_taken_over_with_all_it_says() {
    let spread = json!([
        {
            "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
            "labelSelector": { "matchLabels": { "app": "web" } }, "matchLabelKeys": ["version", "missing"],
            "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
        },
        { "maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway" },
    ]);
    let metadata = json!({ "labels": { "app": "web", "version": "v1" } });
    let pod = model(&metadata, &json!({ "topologySpreadConstraints": spread }));
    let [hard, soft] = pod.spreads.as_slice() else { panic!("{:?}", pod.spreads) };
    assert_eq!((hard.label.as_str(), hard.max_skew, hard.min_domains), ("zone", 2, Some(3)));
    assert_eq!(hard.when_unsatisfiable, WhenUnsatisfiable::DoNotSchedule);
    assert_eq!(shown(hard.selector.as_ref()), ["app In [web]", "version In [v1]"]);
    assert!(!hard.nodes.that_are_wanted && hard.nodes.that_are_tolerated);
    assert_eq!(soft.when_unsatisfiable, WhenUnsatisfiable::ScheduleAnyway);
    assert_eq!((soft.min_domains, &soft.selector), (None, &None), "nobody is counted");
    assert!(soft.nodes.that_are_wanted && !soft.nodes.that_are_tolerated, "these are the defaults");
    assert!(hard.selector.as_ref().unwrap().chooses(&pod.labels));
}

#[test]
fn pod_affinity_is_looked_for_in_the_namespaces_that_are_meant() {
    let term = |more: Value| {
        let mut term = json!({ "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } } });
        term.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        term
    };
    let required = json!([
        term(json!({})),
        term(json!({ "namespaces": ["a", "b"] })),
        term(json!({ "namespaceSelector": { "matchLabels": { "team": "red" } }, "namespaces": ["a"] })),
        term(json!({ "namespaceSelector": {} })),
    ]);
    let affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    let pod = model(&json!({}), &json!({ "affinity": affinity }));
    let names: Vec<Vec<&str>> =
        pod.pod_affinity.iter().map(|term| term.namespaces.names.iter().map(String::as_str).collect()).collect();
    assert_eq!(names, [vec!["n"], vec!["a", "b"], vec!["a"], vec![]]);
    let selectors: Vec<bool> = pod.pod_affinity.iter().map(|term| term.namespaces.selector.is_some()).collect();
    assert_eq!(selectors, [false, false, true, true]);
    assert!(
        pod.pod_affinity[3].namespaces.selector.as_ref().unwrap().chooses(&BTreeMap::new()),
        "an empty selector is all"
    );
}

#[test]
fn preferred_pod_affinity_terms_keep_their_weight_and_their_labels() {
    let term = json!({
        "topologyKey": "zone", "matchLabelKeys": ["version"], "mismatchLabelKeys": ["tenant"],
        "labelSelector": { "matchExpressions": [{ "key": "app", "operator": "Exists" }] },
    });
    let wish = json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 7, "podAffinityTerm": term }] });
    let hard = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
    let metadata = json!({ "labels": { "version": "v1", "tenant": "t" } });
    let soft = model(&metadata, &json!({ "affinity": { "podAffinity": wish, "podAntiAffinity": wish } }));
    assert_eq!(
        (
            soft.preferred_pod_affinity.len(),
            soft.preferred_pod_anti_affinity.len(),
            soft.preferred_pod_affinity[0].weight
        ),
        (1, 1, 7)
    );
    assert_eq!(soft.unsupported, None);
    let apart = model(&metadata, &json!({ "affinity": { "podAntiAffinity": hard } }));
    assert_eq!(
        shown(apart.pod_anti_affinity[0].selector.as_ref()),
        ["app Exists", "version In [v1]", "tenant NotIn [t]"]
    );
    assert_eq!(apart.unsupported, None, "what can be read is for the engine to judge");
}

#[test]
fn wishes_for_nodes_keep_their_weight() {
    let wish = |weight: i32, key: &str| json!({ "weight": weight, "preference": { "matchExpressions": [{ "key": key, "operator": "In", "values": ["a"] }] } });
    let wishing = |more: Value| {
        let wishes: Vec<Value> = [wish(1, "zone"), wish(9, "beta.kubernetes.io/arch")]
            .into_iter()
            .chain([more])
            .filter(|one| !one.is_null())
            .collect();
        let affinity = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": wishes } });
        model(&json!({}), &json!({ "affinity": affinity, "nodeSelector": { "team": "red" } }))
    };
    for no_label in
        [json!({}), json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] })]
    {
        let pod = wishing(json!({ "weight": 50, "preference": no_label }));
        assert_eq!(pod.preferred.iter().map(|wish| wish.weight).collect::<Vec<_>>(), [1, 9, 50]);
        assert_eq!(pod.all_requirements().get("kubernetes.io/arch"), None, "the heaviest counts, if only for itself");
    }
    let pod = wishing(Value::Null);
    assert_eq!(pod.all_requirements().get("kubernetes.io/arch"), Some(&Requirement::is("a")));
    assert_eq!(pod.strict_requirements().get("kubernetes.io/arch"), None);
    assert_eq!(pod.all_requirements().get("team"), Some(&Requirement::is("red")));
}

#[test]
fn a_required_term_that_asks_for_nothing_matches_nothing() {
    let with_terms = |terms: Value| {
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        model(&json!({}), &json!({ "affinity": { "nodeAffinity": required } }))
    };
    let zone = json!({ "matchExpressions": [{ "key": "zone", "operator": "Exists" }] });
    assert_eq!(with_terms(json!([{}, zone])).alternatives.len(), 1);
    assert_eq!(
        with_terms(json!([{}])).unsupported.as_deref(),
        Some("the required node affinity of the pod has no term that a node can match; add matchExpressions")
    );
}

#[test]
fn ports_of_the_node_are_those_of_containers_and_sidecars() {
    let port = |number: i32, host: i32| json!({ "containerPort": number, "hostPort": host });
    let container = |name: &str, ports: Value| json!({ "name": name, "ports": ports });
    let mut sidecar = container("s", json!([port(1, 9001)]));
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({
        "containers": [container("a", json!([
            { "containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "10.0.0.1" }, { "containerPort": 81 }, port(82, 0),
        ]))],
        "initContainers": [sidecar, container("i", json!([port(2, 9002)]))],
    });
    let taken = |address: &str, port, protocol: &str| HostPort {
        address: address.parse().unwrap(),
        port,
        protocol: protocol.to_owned(),
    };
    let udp = taken("10.0.0.1", 8080, "UDP");
    assert_eq!(model(&json!({}), &spec).host_ports, [udp.clone(), taken("0.0.0.0", 9001, "TCP")]);
    let mut on_the_node = spec;
    on_the_node["hostNetwork"] = true.into();
    let all = [udp, taken("0.0.0.0", 81, "TCP"), taken("0.0.0.0", 82, "TCP"), taken("0.0.0.0", 9001, "TCP")];
    assert_eq!(model(&json!({}), &on_the_node).host_ports, all);
}

#[test]
fn volumes_gates_priority_and_time_are_taken_over() {
    let metadata = json!({ "creationTimestamp": "2026-01-01T00:00:10Z", "labels": { "a": "b" } });
    let pod = model(
        &metadata,
        &json!({
            "volumes": [
                { "name": "data", "persistentVolumeClaim": { "claimName": "claim" } },
                { "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
                { "name": "tmp", "emptyDir": {} },
            ],
            "schedulingGates": [{ "name": "wait" }],
            "priority": 7,
            "resourceClaims": [{ "name": "gpu" }],
            "containers": [{ "name": "c", "resources": { "claims": [{ "name": "gpu" }, { "name": "nic" }] } }],
        }),
    );
    let volume = |claim: &str, is_ephemeral| Volume { claim: claim.to_owned(), is_ephemeral };
    assert_eq!(pod.volumes, [volume("claim", false), volume("p-scratch", true)]);
    assert_eq!((pod.gates.as_slice(), pod.priority), (["wait".to_owned()].as_slice(), 7));
    assert_eq!(pod.resource_claims, ["gpu", "nic"]);
    assert_eq!(pod.created, Some(Seconds(1_767_225_610)));
    assert_eq!(pod.labels["a"], "b");
}

#[test]
fn owners_and_wishes_to_be_left_alone_are_read() {
    let owned =
        |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "name": "o", "uid": "u" });
    for (owners, expected) in [
        (json!([]), Owner::Nobody),
        (json!([owned("apps/v1", "ReplicaSet")]), Owner::Other),
        (json!([owned("apps/v1", "DaemonSet")]), Owner::DaemonSet),
        (json!([owned("apps/v1", "ReplicaSet"), owned("apps/v1", "StatefulSet")]), Owner::StatefulSet),
        (json!([owned("v1", "Node")]), Owner::Node),
        (json!([owned("apps/v2", "DaemonSet")]), Owner::Other),
    ] {
        assert_eq!(model(&json!({ "ownerReferences": owners }), &json!({})).owner, expected, "{owners}");
    }
    let said = |wish: &str| {
        model(&json!({ "annotations": { "karpenter.sh/do-not-disrupt": wish } }), &json!({})).protection.clone()
    };
    assert_eq!(said("true"), Protection::Always);
    assert_eq!(said("1h"), Protection::For("1h".parse().unwrap()));
    assert_eq!(said("soon"), Protection::Unreadable("soon".to_owned()));
    assert_eq!(model(&json!({}), &json!({})).protection, Protection::None);
}

#[test]
fn tolerations_of_every_operator_are_read_and_others_tolerate_nothing() {
    let tolerations = json!([
        { "key": "a", "operator": "Equal", "value": "x", "effect": "NoSchedule" },
        { "key": "a", "value": "y" },
        { "operator": "Exists" },
        { "key": "load", "operator": "Lt", "value": "5" },
        { "key": "load", "operator": "Gt", "value": "5", "effect": "NoExecute" },
        { "key": "a", "operator": "Matches", "value": "x" },
        { "key": "a", "operator": "Exists", "effect": "NoWay" },
    ]);
    let read = |key: Option<&str>, value, effect| Toleration { key: key.map(str::to_owned), value, effect };
    let text = str::to_owned;
    assert_eq!(
        model(&json!({}), &json!({ "tolerations": tolerations })).tolerations,
        [
            read(Some("a"), Tolerated::Equal(text("x")), Some(Effect::NoSchedule)),
            read(Some("a"), Tolerated::Equal(text("y")), None),
            read(None, Tolerated::Exists, None),
            read(Some("load"), Tolerated::Below(text("5")), None),
            read(Some("load"), Tolerated::Above(text("5")), Some(Effect::NoExecute)),
        ]
    );
}

#[test]
fn what_no_node_of_ours_can_have_is_told() {
    let told = |spec: Value| faults(&pod(&json!({}), &spec));
    let required = |expression: Value| {
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] });
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
    };
    for good in [
        json!({}),
        json!({ "nodeSelector": { "team": "red", "beta.kubernetes.io/arch": "amd64", "karpenter.sh/nodepool": "p" } }),
        required(json!({ "key": "cpu", "operator": "Gt", "values": ["4"] })),
    ] {
        assert_eq!(told(good.clone()), Vec::<String>::new(), "{good}");
    }
    for (bad, words) in [
        (json!({ "nodeSelector": { "kubernetes.io/hostname": "n" } }), "is restricted"),
        (json!({ "nodeSelector": { "karpenter.sh/registered": "true" } }), "is restricted"),
        (required(json!({ "key": "cpu", "operator": "Gt", "values": ["x"] })), "exactly one value"),
        (required(json!({ "key": "cpu", "operator": "Like", "values": ["x"] })), "is not an operator"),
        (
            required(json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["free"] })),
            "none of [free]",
        ),
        (
            required(json!({ "key": "karpenter.sh/nodepool", "operator": "DoesNotExist" })),
            "every node that Tenon creates has it",
        ),
    ] {
        let told = told(bad.clone());
        assert!(told.len() == 1 && told[0].contains(words), "{bad}: {told:?}");
    }
}
