//! Kubelet commands, good and bad.

use super::*;

fn parse(command: &str) -> Result<Command, Trouble> {
    Command::parse(&command.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn flags_are_read_in_both_spellings() {
    let text = "/usr/bin/kubelet --bootstrap-kubeconfig=/b --kubeconfig /k --config=/c --v 2 --hostname-override=Node-A \
                --node-labels=a=b,c/d=,e=f=g";
    let expected = Command {
        bootstrap_kubeconfig: Some("/b".into()),
        kubeconfig: "/k".into(),
        config: Some("/c".into()),
        hostname_override: Some("node-a".into()),
        node_labels: map(&[("a", "b"), ("c/d", ""), ("e", "f=g")]),
        settings: Settings::default(),
    };
    assert_eq!(parse(text).unwrap(), expected);
}

#[test]
fn settings_are_read_from_flags() {
    let text = "kubelet --kubeconfig=/k --provider-id=proxmox://a/1 --max-pods=7 --kube-reserved=cpu=1,memory=1Gi \
                --system-reserved=cpu=2 --eviction-hard=memory.available<5%,nodefs.available<1Gi --client-ca-file=/ca \
                --register-with-taints=a=b:NoSchedule,c:NoExecute --cloud-provider=external";
    let settings = parse(text).unwrap().settings;
    assert_eq!((settings.provider_id.as_deref(), settings.max_pods), (Some("proxmox://a/1"), Some(7)));
    assert_eq!(settings.kube_reserved, Some(map(&[("cpu", "1"), ("memory", "1Gi")])));
    assert_eq!(settings.system_reserved, Some(map(&[("cpu", "2")])));
    assert_eq!(settings.eviction_hard, Some(map(&[("memory.available", "5%"), ("nodefs.available", "1Gi")])));
    assert_eq!(settings.client_ca_file.as_deref(), Some("/ca"));
    let taints = json!([{ "key": "a", "value": "b", "effect": "NoSchedule" }, { "key": "c", "effect": "NoExecute" }]);
    assert_eq!(json!(settings.taints), taints);
    assert_eq!(settings.cloud_taint.unwrap()["key"], UNINITIALIZED);
}

#[test]
fn labels_of_several_flags_are_joined_and_of_other_flags_the_last_counts() {
    let command = parse("kubelet --kubeconfig=/k --node-labels=a=1,b=1 --node-labels=b=2 --kubeconfig=/l").unwrap();
    assert_eq!(command.node_labels, map(&[("a", "1"), ("b", "2")]));
    assert_eq!(command.kubeconfig, "/l");
}

#[test]
fn a_label_that_is_reserved_for_kubernetes_stops_the_kubelet() {
    for label in ["node-role.kubernetes.io/worker", "kubernetes.io/x", "a.k8s.io/b"] {
        let refused = parse(&format!("kubelet --kubeconfig=/k --node-labels=ok=1,{label}="));
        assert!(matches!(&refused, Err(Trouble::ReservedLabel(key)) if key == label), "{refused:?}");
    }
    for label in ["topology.kubernetes.io/zone", "node.kubernetes.io/x", "a.kubelet.kubernetes.io/x", "x/kubernetes.io"]
    {
        assert!(parse(&format!("kubelet --kubeconfig=/k --node-labels={label}=1")).is_ok(), "{label}");
    }
}

#[test]
fn a_flag_that_a_kubelet_cannot_read_is_named() {
    for (flag, word) in [
        ("--max-pods=many", "--max-pods"),
        ("--register-with-taints=a=b", "`a=b` is not a taint"),
        ("--register-with-taints=a:Never", "`a:Never` is not a taint"),
    ] {
        let told = parse(&format!("kubelet --kubeconfig=/k {flag}")).unwrap_err().story();
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn a_command_that_joins_nothing_is_named() {
    assert!(matches!(parse("/usr/bin/kubelet"), Err(Trouble::NoFlag("--kubeconfig"))));
    assert_eq!(parse("/usr/bin/kubelet --kubeconfig=/k").unwrap().config, None);
}
