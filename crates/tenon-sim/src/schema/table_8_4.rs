//! Table: where Proxmox VE 8.4 accepts something else than 9.2, in the notation of `table`.
//!
//! What stands here comes after what stands there under the same heading; `-name` takes a parameter away. Keys a config may
//! have are those of 9.2 in both, so that `delete=` of one that 8.4 does not know is accepted.

pub(super) const DIFFERENCES: &str = r##"
format drive
 cyls int?
 heads int?
 secs int?
 trans str? enum:none|lba|auto
format agent
 -freeze-fs
 -guest-fsfreeze
 freeze-fs-on-backup bool?
format crs
 ha str? enum:basic|static
 -ha-auto-rebalance
 -ha-auto-rebalance-hold-duration
 -ha-auto-rebalance-margin
 -ha-auto-rebalance-method
 -ha-auto-rebalance-threshold
format efidisk0
 -ms-cert
format machine
 -aw-bits
format net
 -host-tunnel
format tpmstate0
 -format
group options
 -allow-ksm
 -intel-tdx
 serial[4] str? ~(/dev/.+|socket)
POST /access/roles
 privs str? <pve-priv-8-4-list>
PUT /cluster/options
 -location
 -replication
GET /storage
 type str? enum:btrfs|cephfs|cifs|dir|esxi|glusterfs|iscsi|iscsidirect|lvm|lvmthin|nfs|pbs|rbd|zfs|zfspool
GET /nodes/{node}/network
 type str? enum:bridge|bond|eth|alias|vlan|OVSBridge|OVSBond|OVSPort|OVSIntPort|vnet|any_bridge|any_local_bridge
GET /nodes/{node}/capabilities/qemu/cpu
 -arch
POST /nodes/{node}/qemu
 -ha-managed
POST /nodes/{node}/qemu/{vmid}/status/start
 -nets-host-mtu
 -with-conntrack-state
POST /nodes/{node}/qemu/{vmid}/agent/ping
 !["perm","/vms/{vmid}",["VM.Monitor"]]
POST /nodes/{node}/qemu/{vmid}/agent/exec
 !["perm","/vms/{vmid}",["VM.Monitor"]]
GET /nodes/{node}/qemu/{vmid}/agent/exec-status
 !["perm","/vms/{vmid}",["VM.Monitor"]]
GET /nodes/{node}/qemu/{vmid}/agent/file-read
 !["perm","/vms/{vmid}",["VM.Monitor"]]
 -count
 -decode
 -offset
GET /nodes/{node}/qemu/{vmid}/agent/get-host-name
 !["perm","/vms/{vmid}",["VM.Monitor"]]
GET /nodes/{node}/qemu/{vmid}/agent/get-osinfo
 !["perm","/vms/{vmid}",["VM.Monitor"]]
GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces
 !["perm","/vms/{vmid}",["VM.Monitor"]]
GET /nodes/{node}/qemu/{vmid}/agent/get-time
 !["perm","/vms/{vmid}",["VM.Monitor"]]
"##;
