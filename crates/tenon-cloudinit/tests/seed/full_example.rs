//! What does a whole seed look like?

use crate::read_back::{seed, text};
use crate::sample::full;

#[test]
fn a_full_example_reads_like_this() {
    let seed = seed(&full());
    assert_eq!(text(&seed.user_data), USER_DATA);
    assert_eq!(text(&seed.meta_data), META_DATA);
    assert_eq!(text(&seed.network_config.unwrap()), NETWORK_CONFIG);
}

const USER_DATA: &str = r##"#cloud-config
hostname: default-7f2c
manage_etc_hosts: true
package_update: true
packages:
- qemu-guest-agent
users:
- name: karpenter
  sudo: ALL=(ALL) NOPASSWD:ALL
  shell: /bin/bash
  groups:
  - users
  ssh_authorized_keys:
  - "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ops: on # call"
  - ssh-rsa AAAAB3 a
  - ssh-rsa AAAAB3 b
write_files:
- path: /etc/sysctl.d/99-hugepages.conf
  owner: root:root
  permissions: "0644"
  content: |
    vm.nr_hugepages = 512
- path: /etc/tmpfiles.d/99-hugepages.conf
  owner: root:root
  permissions: "0644"
  content: |
    w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 1
- path: /etc/karpenter.yaml
  owner: root:root
  permissions: "0600"
  content: |
    metadata:
      hostname: default-7f2c
      instanceid: "20001"
      instanceuuid: 1f0a2b3c-0000-4000-8000-000000000001
      instancetype: 4VCPU-8GB
      providerid: proxmox://cluster-1/20001
      region: cluster-1
      zone: pve1
      tags:
      - karpenter
      - "no"
      nodeclass: default
    network:
      interfaces:
      - name: eth0
        mac_address: BC:24:11:00:00:01
        dhcp6: true
        addresses4:
        - 10.0.0.5/24
        gateway4: "10.0.0.254"
        mtu: 1500
      search_domains:
      - example.com
      name_servers:
      - "10.0.0.2"
    resources:
      cpu: 4
      memory: 8589934592
      hugepages1Gi: 1
      hugepages2Mi: 512
    kubernetes:
      version: v1.36.1
      rootca: |
        -----BEGIN CERTIFICATE-----
        MIIB: not # real
        AAAA
        -----END CERTIFICATE-----
      bootstraptoken: abc123.0123456789abcdef
      apiserver: https://10.0.0.1:6443
      kubeletconfiguration:
        cpuManagerPolicy: static
        cpuCFSQuotaPeriod: 50ms
        shutdownGracePeriod: 30s
        clusterDNS:
        - "10.96.0.10"
        maxPods: 110
        failSwapOn: false
        kubeReserved:
          cpu: 80m
          memory: 384Mi
        evictionHard:
          memory.available: 100Mi
          nodefs.available: 10%
        providerID: proxmox://cluster-1/20001
        registerWithTaints:
        - key: karpenter.sh/unregistered
          effect: NoExecute
        - key: dedicated
          value: db
          effect: NoSchedule
      nodelabels:
        karpenter.sh/nodepool: default
        node-role.kubernetes.io/worker: ""
        topology.kubernetes.io/zone: pve1
    values:
      SSHAuthorizedKeys: ssh-rsa AAAAB3 a, ssh-rsa AAAAB3 b
      enabled: "yes"
- path: /etc/kubernetes/bootstrap-kubelet.conf
  owner: root:root
  permissions: "0600"
  content: |
    apiVersion: v1
    kind: Config
    clusters:
    - name: cluster
      cluster:
        server: https://10.0.0.1:6443
        certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI6IG5vdCAjIHJlYWwKQUFBQQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==
    users:
    - name: kubelet-bootstrap
      user:
        token: abc123.0123456789abcdef
    contexts:
    - name: kubelet-bootstrap@cluster
      context:
        cluster: cluster
        user: kubelet-bootstrap
    current-context: kubelet-bootstrap@cluster
- path: /etc/kubernetes/pki/ca.crt
  owner: root:root
  permissions: "0644"
  content: |
    -----BEGIN CERTIFICATE-----
    MIIB: not # real
    AAAA
    -----END CERTIFICATE-----
- path: /var/lib/kubelet/config.yaml
  owner: root:root
  permissions: "0644"
  content: |
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    authentication:
      anonymous:
        enabled: false
      webhook:
        enabled: true
      x509:
        clientCAFile: /etc/kubernetes/pki/ca.crt
    authorization:
      mode: Webhook
    cgroupDriver: systemd
    containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
    clusterDomain: cluster.local
    rotateCertificates: true
    serverTLSBootstrap: false
    featureGates:
      CustomCPUCFSQuotaPeriod: true
    cpuManagerPolicy: static
    cpuCFSQuotaPeriod: 50ms
    shutdownGracePeriod: 30s
    clusterDNS:
    - "10.96.0.10"
    maxPods: 110
    failSwapOn: false
    kubeReserved:
      cpu: 80m
      memory: 384Mi
    evictionHard:
      memory.available: 100Mi
      nodefs.available: 10%
    providerID: proxmox://cluster-1/20001
    registerWithTaints:
    - key: karpenter.sh/unregistered
      effect: NoExecute
    - key: dedicated
      value: db
      effect: NoSchedule
- path: /etc/systemd/system/kubelet.service.d/20-tenon.conf
  owner: root:root
  permissions: "0644"
  content: |
    [Unit]
    Wants=containerd.service
    After=containerd.service
    [Service]
    # The empty one takes away the image's own command; systemd would refuse two.
    ExecStart=
    ExecStart=/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml --hostname-override=default-7f2c --node-labels=karpenter.sh/nodepool=default,topology.kubernetes.io/zone=pve1
runcmd:
- - systemctl
  - enable
  - --now
  - qemu-guest-agent
- - sysctl
  - -p
  - /etc/sysctl.d/99-hugepages.conf
- - systemd-tmpfiles
  - --create
  - /etc/tmpfiles.d/99-hugepages.conf
- - systemctl
  - daemon-reload
- - systemctl
  - enable
  - kubelet
- - systemctl
  - restart
  - kubelet
"##;

const META_DATA: &str = r##"hostname: default-7f2c
local-hostname: default-7f2c
instance-id: 20001
instance-type: 4VCPU-8GB
provider-id: proxmox://cluster-1/20001
region: cluster-1
zone: pve1
availability-zone: pve1
"##;

const NETWORK_CONFIG: &str = r##"network:
  version: 2
  renderer: networkd
  ethernets:
    eth0:
      match:
        macaddress: "bc:24:11:00:00:01"
      mtu: 1500
      dhcp6: true
      addresses:
      - "10.0.0.5/24"
      routes:
      - to: "0.0.0.0/0"
        via: "10.0.0.254"
      nameservers:
        addresses:
        - "10.0.0.2"
        search:
        - "example.com"
"##;
