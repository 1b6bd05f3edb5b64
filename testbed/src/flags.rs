//! The command lines of the four components: what a kubeadm cluster has, on loopback.

use std::path::Path;

/// Where one control plane listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) apiserver: u16,
    pub(crate) controller_manager: u16,
    pub(crate) scheduler: u16,
}

/// Every request once, when it has been answered: who, what, which object, which status.
pub(crate) const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived", "ResponseStarted"],
  "rules": [{ "level": "Metadata" }]
}
"#;

pub(crate) fn etcd(dir: &Path, ports: &Ports) -> Vec<String> {
    let at = |name: &str| dir.join(name).display().to_string();
    let client = format!("https://127.0.0.1:{}", ports.etcd);
    let peer = format!("https://127.0.0.1:{}", ports.etcd_peer);
    vec![
        format!("--data-dir={}", at("etcd")),
        format!("--cert-file={}", at("server.crt")),
        format!("--key-file={}", at("server.key")),
        format!("--trusted-ca-file={}", at("ca.crt")),
        "--client-cert-auth".to_owned(),
        format!("--peer-cert-file={}", at("server.crt")),
        format!("--peer-key-file={}", at("server.key")),
        format!("--peer-trusted-ca-file={}", at("ca.crt")),
        "--peer-client-cert-auth".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // kill -9 of the process loses nothing: what it wrote is in the kernel's hands. Only a crash of the machine would.
        "--unsafe-no-fsync".to_owned(),
    ]
}

pub(crate) fn apiserver(dir: &Path, ports: &Ports) -> Vec<String> {
    let at = |name: &str| dir.join(name).display().to_string();
    vec![
        format!("--etcd-servers=https://127.0.0.1:{}", ports.etcd),
        format!("--etcd-cafile={}", at("ca.crt")),
        format!("--etcd-certfile={}", at("server.crt")),
        format!("--etcd-keyfile={}", at("server.key")),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // A loopback address is refused as the endpoint of the `kubernetes` Service, and no pod is there to use it.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={}", ports.apiserver),
        format!("--tls-cert-file={}", at("server.crt")),
        format!("--tls-private-key-file={}", at("server.key")),
        format!("--client-ca-file={}", at("ca.crt")),
        "--authorization-mode=Node,RBAC".to_owned(),
        // Off by default, on in every kubeadm cluster: without it a kubelet may set labels that real clusters refuse.
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--enable-bootstrap-token-auth=true".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", at("sa.pub")),
        format!("--service-account-signing-key-file={}", at("sa.key")),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // Without these the other components log an error every few seconds while they look for them.
        format!("--requestheader-client-ca-file={}", at("ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--audit-policy-file={}", at("audit-policy.json")),
        format!("--audit-log-path={}", at("audit.log")),
        // In MiB. The reader follows one file, so it must not be rotated away under it.
        "--audit-log-maxsize=65536".to_owned(),
        // A bed that is thrown away gains nothing from a slow goodbye.
        "--shutdown-delay-duration=0s".to_owned(),
    ]
}

pub(crate) fn controller_manager(dir: &Path, ports: &Ports) -> Vec<String> {
    let at = |name: &str| dir.join(name).display().to_string();
    let mut args = serving(dir, ports.controller_manager, "controller-manager");
    args.extend([
        // The last two are off by default, and kubeadm turns them on.
        "--controllers=*,bootstrapsigner,tokencleaner".to_owned(),
        format!("--cluster-signing-cert-file={}", at("ca.crt")),
        format!("--cluster-signing-key-file={}", at("ca.key")),
        format!("--root-ca-file={}", at("ca.crt")),
        format!("--service-account-private-key-file={}", at("sa.key")),
        "--use-service-account-credentials=true".to_owned(),
        // It makes an account for each controller before it starts; the default limits stretch that over five seconds.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=500".to_owned(),
    ]);
    args
}

pub(crate) fn scheduler(dir: &Path, ports: &Ports) -> Vec<String> {
    serving(dir, ports.scheduler, "scheduler")
}

/// What controller manager and scheduler have in common.
fn serving(dir: &Path, port: u16, name: &str) -> Vec<String> {
    let at = |name: &str| dir.join(name).display().to_string();
    let kubeconfig = at(&format!("{name}.kubeconfig"));
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", at("server.crt")),
        format!("--tls-private-key-file={}", at("server.key")),
        // There is one of each, and it should work from its first second.
        "--leader-elect=false".to_owned(),
    ]
}
