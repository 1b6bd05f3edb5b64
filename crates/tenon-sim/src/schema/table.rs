//! Table: which calls there are and what each of their parameters must look like.
//!
//! Facts of Proxmox VE 9.2 in a notation of our own, read by `read`: a line at the margin opens a format (the parts of a
//! property string), a group (parameters that several calls share) or a call; indented lines are its parameters.
//!
//! - `name type`: `bool`, `int`, `num`, `str` or `list`; `?` when it may be left out; `name[4]` stands for `name0` to `name3`
//! - `key`: the part that may be written without its name; `->other`: another name for a part; `as model`: the name is a value
//! - `min:` `max:` `minlen:` `maxlen:` `enum:a|b` `needs:other` `<format>` `{format defined here}`, and last `~pattern`
//! - `@group` takes a group in, `+format` another format; `!` says who may call

pub(super) const TABLE: &str = r##"
format drive
 aio str? enum:native|threads|io_uring
 backup bool?
 bps int?
 bps_max_length int? min:1
 bps_rd int?
 bps_rd_length ->bps_rd_max_length
 bps_rd_max_length int? min:1
 bps_wr int?
 bps_wr_length ->bps_wr_max_length
 bps_wr_max_length int? min:1
 cache str? enum:none|writethrough|writeback|unsafe|directsync
 detect_zeroes bool?
 discard str? enum:ignore|on
 file str key <pve-volume-id-or-qm-path>
 format str? enum:raw|qcow|qed|qcow2|vmdk|cloop
 import-from str? <pve-volume-id-or-absolute-path>
 iops int?
 iops_max int?
 iops_max_length int? min:1
 iops_rd int?
 iops_rd_length ->iops_rd_max_length
 iops_rd_max int?
 iops_rd_max_length int? min:1
 iops_wr int?
 iops_wr_length ->iops_wr_max_length
 iops_wr_max int?
 iops_wr_max_length int? min:1
 mbps num?
 mbps_max num?
 mbps_rd num?
 mbps_rd_max num?
 mbps_wr num?
 mbps_wr_max num?
 media str? enum:cdrom|disk
 replicate bool?
 rerror str? enum:ignore|report|stop
 serial str? maxlen:60 <urlencoded>
 shared bool?
 size str? <disk-size>
 snapshot bool?
 volume ->file
 werror str? enum:enospc|ignore|report|stop
format agent
 enabled bool key
 freeze-fs bool?
 freeze-fs-on-backup ->freeze-fs
 fstrim_cloned_disks bool?
 guest-fsfreeze ->freeze-fs
 type str? enum:virtio|isa
format audio0
 device str enum:ich9-intel-hda|intel-hda|AC97
 driver str? enum:spice|none
format bwlimit
 clone num? min:0
 default num? min:0
 migration num? min:0
 move num? min:0
 restore num? min:0
format crs
 ha str? enum:basic|static|dynamic
 ha-auto-rebalance bool?
 ha-auto-rebalance-hold-duration num? min:0 needs:ha-auto-rebalance
 ha-auto-rebalance-margin num? min:0 max:100 needs:ha-auto-rebalance
 ha-auto-rebalance-method str? needs:ha-auto-rebalance enum:bruteforce|topsis
 ha-auto-rebalance-threshold num? min:0 max:100 needs:ha-auto-rebalance
 ha-rebalance-on-start bool?
format drive-ide
 +drive
 model str? maxlen:120 <urlencoded>
 ssd bool?
 wwn str? ~(?:^(0x)[0-9a-fA-F]{16})
format drive-sata
 +drive
 ssd bool?
 wwn str? ~(?:^(0x)[0-9a-fA-F]{16})
format drive-scsi
 +drive
 iothread bool?
 product str? ~[A-Za-z0-9\-_\s]{0,16}
 queues int? min:2
 ro bool?
 scsiblock bool?
 ssd bool?
 vendor str? ~[A-Za-z0-9\-_\s]{0,8}
 wwn str? ~(?:^(0x)[0-9a-fA-F]{16})
format drive-virtio
 +drive
 iothread bool?
 ro bool?
format efidisk0
 efitype str? enum:2m|4m
 file str key <pve-volume-id-or-qm-path>
 format str? enum:raw|qcow|qed|qcow2|vmdk|cloop
 import-from str? <pve-volume-id-or-absolute-path>
 ms-cert str? enum:2011|2023|2023w|2023k
 pre-enrolled-keys bool?
 size str? <disk-size>
 volume ->file
format ha
 shutdown_policy str enum:freeze|failover|conditional|migrate
format ivshmem
 name str? ~[a-zA-Z0-9\-]+
 size int min:1
format machine
 aw-bits num? min:32 max:64
 enable-s3 bool?
 enable-s4 bool?
 type str? key maxlen:40 ~(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)
 viommu str? enum:intel|virtio
format memory
 current int key min:16
format migration
 network str? <CIDR>
 type str key enum:secure|insecure
format net
 bridge str? <pve-bridge-id>
 e1000 ->macaddr as model
 e1000-82540em ->macaddr as model
 e1000-82544gc ->macaddr as model
 e1000-82545em ->macaddr as model
 e1000e ->macaddr as model
 firewall bool?
 host-tunnel bool?
 i82551 ->macaddr as model
 i82557b ->macaddr as model
 i82559er ->macaddr as model
 link_down bool?
 macaddr str? <mac-addr>
 model str key enum:e1000|e1000-82540em|e1000-82544gc|e1000-82545em|e1000e|i82551|i82557b|i82559er|ne2k_isa|ne2k_pci|pcnet|rtl8139|virtio|vmxnet3
 mtu int? min:1 max:65520
 ne2k_isa ->macaddr as model
 ne2k_pci ->macaddr as model
 pcnet ->macaddr as model
 queues int? min:0 max:64
 rate num? min:0
 rtl8139 ->macaddr as model
 tag int? min:1 max:4094
 trunks str? ~(?:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)
 virtio ->macaddr as model
 vmxnet3 ->macaddr as model
format next-id
 lower int?
 upper int?
format notify
 fencing str? enum:always|never
 package-updates str? enum:auto|always|never
 replication str? enum:always|never
 target-fencing str?
 target-package-updates str?
 target-replication str?
format numa
 cpus str ~(?:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)
 hostnodes str? ~(?:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)
 memory num?
 policy str? enum:preferred|bind|interleave
format spice_enhancements
 foldersharing bool?
 videostreaming str? enum:off|all|filter
format tag-style
 case-sensitive bool?
 color-map str? ~(?:(?i:[a-z0-9_][a-z0-9_\-\+\.]*):[0-9a-fA-F]{6}(?::[0-9a-fA-F]{6})?)(?:;(?:(?i:[a-z0-9_][a-z0-9_\-\+\.]*):[0-9a-fA-F]{6}(?::[0-9a-fA-F]{6})?))*
 ordering str? enum:config|alphabetical
 shape str? enum:full|circle|dense|none
format tpmstate0
 file str key <pve-volume-id-or-qm-path>
 format str? enum:raw|qcow2|vmdk
 import-from str? <pve-volume-id-or-absolute-path>
 size str? <disk-size>
 version str? enum:v1.2|v2.0
 volume ->file
format u2f
 appid str?
 origin str?
format unused
 file str key <pve-volume-id>
 volume ->file
format usb
 host str? key ~(?:(?:(?:(?:(0x)?([0-9A-Fa-f]{4}):(0x)?([0-9A-Fa-f]{4})))|(?:(?:(\d+)\-(\d+(\.\d+)*)))|[Ss][Pp][Ii][Cc][Ee]))
 mapping str? <pve-configid>
 usb3 bool?
format user-tag-access
 user-allow str? enum:none|list|existing|free
 user-allow-list str? ~(?i:[a-z0-9_][a-z0-9_\-\+\.]*)(?:;(?i:[a-z0-9_][a-z0-9_\-\+\.]*))*
format vga
 clipboard str? enum:vnc
 memory int? min:4 max:512
 type str? key enum:cirrus|qxl|qxl2|qxl3|qxl4|none|serial0|serial1|serial2|serial3|std|virtio|virtio-gl|vmware
format virtiofs
 cache str? enum:auto|always|metadata|never
 direct-io bool?
 dirid str key <pve-configid>
 expose-acl bool?
 expose-xattr bool?
format webauthn
 allow-subdomains bool?
 id str?
 origin str?
 rp str?
format pve-qm-ide
 +drive-ide
format pve-qm-ipconfig
 gw str? needs:ip <ipv4>
 gw6 str? needs:ip6 <ipv6>
 ip str? <pve-ipv4-config>
 ip6 str? <pve-ipv6-config>
format pve-qm-smbios1
 base64 bool?
 family str? ~[A-Za-z0-9+/]+={0,2}
 manufacturer str? ~[A-Za-z0-9+/]+={0,2}
 product str? ~[A-Za-z0-9+/]+={0,2}
 serial str? ~[A-Za-z0-9+/]+={0,2}
 sku str? ~[A-Za-z0-9+/]+={0,2}
 uuid str? ~[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}
 version str? ~[A-Za-z0-9+/]+={0,2}
format pve-qm-hostpci
 device-id str? ~0x[0-9a-fA-F]{4}
 driver str? enum:vfio|keep
 host str? key ~(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?(?:;(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)*
 legacy-igd bool?
 mapping str? <pve-configid>
 mdev str? ~[^/\.:]+
 pcie bool?
 rombar bool?
 romfile str? ~[^,;]+
 sub-device-id str? ~0x[0-9a-fA-F]{4}
 sub-vendor-id str? ~0x[0-9a-fA-F]{4}
 vendor-id str? ~0x[0-9a-fA-F]{4}
 x-vga bool?
format pve-vm-cpu-conf
 cputype str? key
 flags str? ~[+-](?:nested-virt|md-clear|pcid|spec-ctrl|ssbd|ibpb|virt-ssbd|amd-ssbd|amd-no-ssb|pdpe1gb|hv-tlbflush|hv-evmcs|aes)(?:;[+-](?:nested-virt|md-clear|pcid|spec-ctrl|ssbd|ibpb|virt-ssbd|amd-ssbd|amd-no-ssb|pdpe1gb|hv-tlbflush|hv-evmcs|aes))*
 guest-phys-bits int? min:32 max:64
 hidden bool?
 hv-vendor-id str? ~[a-zA-Z0-9]{1,12}
 level int? min:0 max:64
 phys-bits str? ~host|(?:[89]|[1-5][0-9]|6[0-4])
 reported-model str?
format pve-qm-rng
 max_bytes int? min:0
 period int? min:1
 source str key enum:/dev/urandom|/dev/random|/dev/hwrng
format pve-qm-watchdog
 action str? enum:reset|shutdown|poweroff|pause|debug|none
 model str? key enum:i6300esb|ib700
format pve-qm-cicustom
 meta str? <pve-volume-id>
 network str? <pve-volume-id>
 user str? <pve-volume-id>
 vendor str? <pve-volume-id>
format pve-qm-boot
 legacy str? key ~[acdn]{1,4}
 order str? <pve-qm-bootdev-list>
format pve-qemu-sev-fmt
 allow-smt bool?
 kernel-hashes bool?
 no-debug bool?
 no-key-sharing bool?
 type str? key enum:std|es|snp
format pve-qemu-tdx-fmt
 attestation bool?
 type str? key enum:tdx
 vsock-cid int? min:2
 vsock-port int? min:0
group host
 node str <pve-node>
group vm
 node str <pve-node>
 vmid int min:100 max:999999999 <pve-vmid>
group store
 node str <pve-node>
 storage str <pve-storage-id>
group options
 acpi bool?
 affinity str? <pve-cpuset>
 agent str? {agent}
 allow-ksm bool?
 amd-sev str? <pve-qemu-sev-fmt>
 arch str? enum:x86_64|aarch64
 args str?
 audio0 str? {audio0}
 autostart bool?
 balloon int? min:0
 bios str? enum:seabios|ovmf
 boot str? <pve-qm-boot>
 bootdisk str? <pve-qm-bootdisk> ~(ide|sata|scsi|virtio)\d+
 cdrom str? <pve-qm-ide>
 cicustom str? <pve-qm-cicustom>
 cipassword str?
 citype str? enum:configdrive2|nocloud|opennebula
 ciupgrade bool?
 ciuser str?
 cores int? min:1
 cpu str? <pve-vm-cpu-conf>
 cpulimit num? min:0 max:128
 cpuunits int? min:1 max:262144
 description str? maxlen:8192
 efidisk0 str? {efidisk0}
 freeze bool?
 hookscript str? <pve-volume-id>
 hostpci[16] str? <pve-qm-hostpci>
 hotplug str? <pve-hotplug-features>
 hugepages str? enum:any|2|1024
 ide[4] str? {drive-ide}
 intel-tdx str? <pve-qemu-tdx-fmt>
 ipconfig[32] str? <pve-qm-ipconfig>
 ivshmem str? {ivshmem}
 keephugepages bool?
 keyboard str? enum:de|de-ch|da|en-gb|en-us|es|fi|fr|fr-be|fr-ca|fr-ch|hu|is|it|ja|lt|mk|nl|no|pl|pt|pt-br|sv|sl|tr
 kvm bool?
 localtime bool?
 lock str? enum:backup|clone|create|migrate|rollback|snapshot|snapshot-delete|suspending|suspended
 machine str? {machine}
 memory str? {memory}
 migrate_downtime num? min:0
 migrate_speed int? min:0
 name str? <dns-name>
 nameserver str? <address-list>
 net[32] str? {net}
 numa bool?
 numa[8] str? {numa}
 onboot bool?
 ostype str? enum:other|wxp|w2k|w2k3|w2k8|wvista|win7|win8|win10|win11|l24|l26|solaris
 parallel[3] str? ~/dev/parport\d+|/dev/usb/lp\d+
 protection bool?
 reboot bool?
 rng0 str? <pve-qm-rng>
 sata[6] str? {drive-sata}
 scsi[31] str? {drive-scsi}
 scsihw str? enum:lsi|lsi53c810|virtio-scsi-pci|virtio-scsi-single|megasas|pvscsi
 searchdomain str?
 serial[4] str? ~(/dev/[^,]+|socket)
 shares int? min:0 max:50000
 smbios1 str? maxlen:512 <pve-qm-smbios1>
 smp int? min:1
 sockets int? min:1
 spice_enhancements str? {spice_enhancements}
 sshkeys str? <urlencoded>
 startdate str? ~(now|\d{4}-\d{1,2}-\d{1,2}(T\d{1,2}:\d{1,2}:\d{1,2})?)
 startup str? <pve-startup-order>
 tablet bool?
 tags str? <pve-tag-list>
 tdf bool?
 template bool?
 tpmstate0 str? {tpmstate0}
 unused[256] str? {unused}
 usb[14] str? {usb}
 vcpus int? min:1
 vga str? {vga}
 virtio[16] str? {drive-virtio}
 virtiofs[10] str? {virtiofs}
 vmgenid str? ~(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])
 vmstatestorage str? <pve-storage-id>
 watchdog str? <pve-qm-watchdog>
group rule
 comment str?
 dest str? maxlen:512 <pve-fw-addr-spec>
 digest str? maxlen:64
 dport str? <pve-fw-dport-spec>
 enable int? min:0
 icmp-type str? <pve-fw-icmp-type-spec>
 iface str? minlen:2 maxlen:20 <pve-iface>
 log str? enum:emerg|alert|crit|err|warning|notice|info|debug|nolog
 macro str? maxlen:128
 pos int? min:0
 proto str? <pve-fw-protocol-spec>
 source str? maxlen:512 <pve-fw-addr-spec>
 sport str? <pve-fw-sport-spec>
GET /version
 !all
POST /access/ticket
 !world
 new-format bool?
 otp str?
 password str
 path str? maxlen:64 needs:privs
 privs str? maxlen:64 needs:path <pve-priv-list>
 realm str? maxlen:32 <pve-realm>
 tfa-challenge str?
 username str maxlen:64
GET /access/permissions
 !all
 path str?
 userid str? ~(?:^(?:[^\s:/]+)\@(?:[A-Za-z][A-Za-z0-9\.\-_]+)(?:!(?:[A-Za-z][A-Za-z0-9\.\-_]+))?$)
GET /access/acl
 !all
PUT /access/acl
 !["perm-modify","{path}"]
 delete bool?
 groups str? <pve-groupid-list>
 path str
 propagate bool?
 roles str <pve-roleid-list>
 tokens str? <pve-tokenid-list>
 users str? <pve-userid-list>
GET /access/roles
 !all
POST /access/roles
 !["perm","/access",["Sys.Modify"]]
 privs str? <pve-priv-list>
 roleid str <pve-roleid>
GET /access/roles/{roleid}
 !all
 roleid str <pve-roleid>
DELETE /access/roles/{roleid}
 !["perm","/access",["Sys.Modify"]]
 roleid str <pve-roleid>
GET /access/users
 !all
 enabled bool?
 full bool?
POST /access/users
 !["and",["userid-param","Realm.AllocateUser"],["userid-group",["User.Modify"],"groups_param","create"]]
 comment str? maxlen:2048
 email str? maxlen:254 <email-opt>
 enable bool?
 expire int? min:0
 firstname str? maxlen:1024
 groups str? <pve-groupid-list>
 keys str? ~[0-9a-zA-Z!=]{0,4096}
 lastname str? maxlen:1024
 password str? minlen:8 maxlen:64
 userid str maxlen:64 <pve-userid>
GET /access/users/{userid}
 !["userid-group",["User.Modify","Sys.Audit"]]
 userid str maxlen:64 <pve-userid>
DELETE /access/users/{userid}
 !["and",["userid-param","Realm.AllocateUser"],["userid-group",["User.Modify"]]]
 userid str maxlen:64 <pve-userid>
GET /access/users/{userid}/token
 !["or",["userid-param","self"],["userid-group",["User.Modify"]]]
 userid str maxlen:64 <pve-userid>
GET /access/users/{userid}/token/{tokenid}
 !["or",["userid-param","self"],["userid-group",["User.Modify"]]]
 tokenid str ~(?:[A-Za-z][A-Za-z0-9\.\-_]+)
 userid str maxlen:64 <pve-userid>
POST /access/users/{userid}/token/{tokenid}
 !["or",["userid-param","self"],["userid-group",["User.Modify"]]]
 comment str?
 expire int? min:0
 privsep bool?
 tokenid str ~(?:[A-Za-z][A-Za-z0-9\.\-_]+)
 userid str maxlen:64 <pve-userid>
DELETE /access/users/{userid}/token/{tokenid}
 !["or",["userid-param","self"],["userid-group",["User.Modify"]]]
 tokenid str ~(?:[A-Za-z][A-Za-z0-9\.\-_]+)
 userid str maxlen:64 <pve-userid>
GET /cluster/resources
 !all
 type str? enum:vm|storage|node|sdn
GET /cluster/status
 !["perm","/",["Sys.Audit"]]
GET /cluster/nextid
 !all
 vmid int? min:100 max:999999999 <pve-vmid>
GET /cluster/options
 !all
PUT /cluster/options
 !["perm","/",["Sys.Modify"]]
 bwlimit str? {bwlimit}
 consent-text str? maxlen:65536
 console str? enum:applet|vv|html5|xtermjs
 crs str? {crs}
 delete str? <pve-configid-list>
 description str? maxlen:65536
 email_from str? <email-opt>
 fencing str? enum:watchdog|hardware|both
 ha str? {ha}
 http_proxy str? ~http://.*
 keyboard str? enum:de|de-ch|da|en-gb|en-us|es|fi|fr|fr-be|fr-ca|fr-ch|hu|is|it|ja|lt|mk|nl|no|pl|pt|pt-br|sv|sl|tr
 language str? enum:ar|ca|da|de|en|es|eu|fa|fr|hr|he|it|ja|ka|kr|nb|nl|nn|pl|pt_BR|ru|sl|sv|tr|ukr|zh_CN|zh_TW
 location str? <pve-node-location>
 mac_prefix str? <mac-prefix>
 max_workers int? min:1
 migration str? {migration}
 migration_unsecure bool?
 next-id str? {next-id}
 notify str? {notify}
 registered-tags str? ~(?:(?i:[a-z0-9_][a-z0-9_\-\+\.]*);)*(?i:[a-z0-9_][a-z0-9_\-\+\.]*)
 replication str? {migration}
 tag-style str? {tag-style}
 u2f str? {u2f}
 user-tag-access str? {user-tag-access}
 webauthn str? {webauthn}
GET /cluster/ha/status/current
 !["perm","/",["Sys.Audit"]]
GET /cluster/ha/status/manager_status
 !["perm","/",["Sys.Audit"]]
GET /cluster/tasks
 !all
GET /cluster/firewall/groups
 !all
POST /cluster/firewall/groups
 !["perm","/",["Sys.Modify"]]
 comment str?
 digest str? maxlen:64
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
 rename str? minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
GET /cluster/firewall/groups/{group}
 !["perm","/",["Sys.Audit"]]
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
POST /cluster/firewall/groups/{group}
 !["perm","/",["Sys.Modify"]]
 @rule
 action str minlen:2 maxlen:20 ~[A-Za-z][A-Za-z0-9\-\_]+
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
 type str enum:in|out|forward|group
DELETE /cluster/firewall/groups/{group}
 !["perm","/",["Sys.Modify"]]
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
GET /cluster/firewall/groups/{group}/{pos}
 !["perm","/",["Sys.Audit"]]
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
 pos int? min:0
PUT /cluster/firewall/groups/{group}/{pos}
 !["perm","/",["Sys.Modify"]]
 @rule
 action str? minlen:2 maxlen:20 ~[A-Za-z][A-Za-z0-9\-\_]+
 delete str? <pve-configid-list>
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
 moveto int? min:0
 type str? enum:in|out|forward|group
DELETE /cluster/firewall/groups/{group}/{pos}
 !["perm","/",["Sys.Modify"]]
 digest str? maxlen:64
 group str minlen:2 maxlen:18 ~[A-Za-z][A-Za-z0-9\-\_]+
 pos int? min:0
GET /pools
 !all
 poolid str? <pve-poolid>
 type str? needs:poolid enum:qemu|lxc|storage
POST /pools
 !["perm","/pool/{poolid}",["Pool.Allocate"]]
 comment str?
 poolid str <pve-poolid>
PUT /pools
 !["perm","/pool/{poolid}",["Pool.Allocate"]]
 allow-move bool?
 comment str?
 delete bool?
 poolid str <pve-poolid>
 storage str? <pve-storage-id-list>
 vms str? <pve-vmid-list>
DELETE /pools
 !["perm","/pool/{poolid}",["Pool.Allocate"]]
 poolid str <pve-poolid>
GET /pools/{poolid}
 !["perm","/pool/{poolid}",["Pool.Audit"]]
 poolid str <pve-poolid>
 type str? enum:qemu|lxc|storage
PUT /pools/{poolid}
 !["perm","/pool/{poolid}",["Pool.Allocate"]]
 allow-move bool?
 comment str?
 delete bool?
 poolid str <pve-poolid>
 storage str? <pve-storage-id-list>
 vms str? <pve-vmid-list>
DELETE /pools/{poolid}
 !["perm","/pool/{poolid}",["Pool.Allocate"]]
 poolid str <pve-poolid>
GET /storage
 !all
 type str? enum:btrfs|cephfs|cifs|dir|esxi|iscsi|iscsidirect|lvm|lvmthin|nfs|pbs|rbd|zfs|zfspool
GET /storage/{storage}
 !["perm","/storage/{storage}",["Datastore.Allocate"]]
 storage str <pve-storage-id>
GET /nodes
 !all
GET /nodes/{node}/version
 !all
 @host
GET /nodes/{node}/status
 !["perm","/nodes/{node}",["Sys.Audit"]]
 @host
GET /nodes/{node}/network
 !all
 @host
 type str? enum:bridge|bond|eth|alias|vlan|fabric|OVSBridge|OVSBond|OVSPort|OVSIntPort|vnet|any_bridge|any_local_bridge|include_sdn
GET /nodes/{node}/network/{iface}
 !["perm","/nodes/{node}",["Sys.Audit"]]
 @host
 iface str minlen:2 maxlen:20 <pve-iface>
GET /nodes/{node}/hardware/pci
 !["perm","/",["Sys.Audit","Sys.Modify"],"any",1]
 @host
 pci-class-blacklist str? <string-list>
 verbose bool?
GET /nodes/{node}/capabilities/qemu/cpu
 !all
 @host
 arch str? enum:x86_64|aarch64
GET /nodes/{node}/storage
 !all
 @host
 content str? <pve-storage-content-list>
 enabled bool?
 format bool?
 storage str? <pve-storage-id>
 target str? <pve-node>
GET /nodes/{node}/storage/{storage}/status
 !["perm","/storage/{storage}",["Datastore.Audit","Datastore.AllocateSpace"],"any",1]
 @store
GET /nodes/{node}/storage/{storage}/content
 !["perm","/storage/{storage}",["Datastore.Audit","Datastore.AllocateSpace"],"any",1]
 @store
 content str? <pve-storage-content>
 vmid int? min:100 max:999999999 <pve-vmid>
GET /nodes/{node}/storage/{storage}/content/{volume}
 !all
 @host
 storage str? <pve-storage-id>
 volume str
DELETE /nodes/{node}/storage/{storage}/content/{volume}
 !all
 @host
 delay int? min:1 max:30
 storage str? <pve-storage-id>
 volume str
POST /nodes/{node}/storage/{storage}/upload
 !["perm","/storage/{storage}",["Datastore.AllocateTemplate"]]
 @store
 checksum str? needs:checksum-algorithm
 checksum-algorithm str? needs:checksum enum:md5|sha1|sha224|sha256|sha384|sha512
 content str <pve-storage-content> enum:iso|vztmpl|import
 filename str maxlen:255
 tmpfilename str? ~/var/tmp/pveupload-[0-9a-f]+
POST /nodes/{node}/storage/{storage}/download-url
 !["and",["perm","/storage/{storage}",["Datastore.AllocateTemplate"]],["or",["perm","/",["Sys.Audit","Sys.Modify"]],["perm","/nodes/{node}",["Sys.AccessNetwork"]]]]
 @store
 checksum str? needs:checksum-algorithm
 checksum-algorithm str? needs:checksum enum:md5|sha1|sha224|sha256|sha384|sha512
 compression str?
 content str <pve-storage-content> enum:iso|vztmpl|import
 filename str maxlen:255
 url str ~https?://.*
 verify-certificates bool?
GET /nodes/{node}/tasks
 !all
 @host
 errors bool?
 limit int? min:0
 since int?
 source str? enum:archive|active|all
 start int? min:0
 statusfilter str? <pve-task-status-type-list>
 typefilter str?
 until int?
 userfilter str?
 vmid int? min:100 max:999999999 <pve-vmid>
DELETE /nodes/{node}/tasks/{upid}
 !all
 @host
 upid str
GET /nodes/{node}/tasks/{upid}/status
 !all
 @host
 upid str
GET /nodes/{node}/tasks/{upid}/log
 !all
 @host
 download bool?
 limit int? min:0
 start int? min:0
 upid str
GET /nodes/{node}/qemu
 !all
 @host
 full bool?
POST /nodes/{node}/qemu
 !all
 @options
 @vm
 archive str? maxlen:255
 bwlimit int? min:0
 force bool? needs:archive
 ha-managed bool?
 import-working-storage str? <pve-storage-id>
 live-restore bool?
 pool str? <pve-poolid>
 start bool?
 storage str? <pve-storage-id>
 unique bool? needs:archive
DELETE /nodes/{node}/qemu/{vmid}
 !["perm","/vms/{vmid}",["VM.Allocate"]]
 @vm
 destroy-unreferenced-disks bool?
 purge bool?
 skiplock bool?
GET /nodes/{node}/lxc/{vmid}/config
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 current bool?
 snapshot str? maxlen:40 <pve-configid>
GET /nodes/{node}/qemu/{vmid}/config
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 current bool?
 snapshot str? maxlen:40 <pve-configid>
PUT /nodes/{node}/qemu/{vmid}/config
 !["perm","/vms/{vmid}",["VM.Config.Disk","VM.Config.CDROM","VM.Config.CPU","VM.Config.Memory","VM.Config.Network","VM.Config.HWType","VM.Config.Options","VM.Config.Cloudinit"],"any",1]
 @options
 @vm
 delete str? <pve-configid-list>
 digest str? maxlen:40
 force bool? needs:delete
 revert str? <pve-configid-list>
 skiplock bool?
POST /nodes/{node}/qemu/{vmid}/config
 !["perm","/vms/{vmid}",["VM.Config.Disk","VM.Config.CDROM","VM.Config.CPU","VM.Config.Memory","VM.Config.Network","VM.Config.HWType","VM.Config.Options","VM.Config.Cloudinit"],"any",1]
 @options
 @vm
 background_delay int? min:1 max:30
 delete str? <pve-configid-list>
 digest str? maxlen:40
 force bool? needs:delete
 import-working-storage str? <pve-storage-id>
 revert str? <pve-configid-list>
 skiplock bool?
GET /nodes/{node}/qemu/{vmid}/pending
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
GET /nodes/{node}/qemu/{vmid}/feature
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 feature str enum:snapshot|clone|copy
 snapname str? maxlen:40 <pve-configid>
POST /nodes/{node}/qemu/{vmid}/clone
 !["and",["perm","/vms/{vmid}",["VM.Clone"]],["or",["perm","/vms/{newid}",["VM.Allocate"]],["perm","/pool/{pool}",["VM.Allocate"],"require_param","pool"]]]
 @vm
 bwlimit int? min:0
 description str?
 format str? enum:raw|qcow2|vmdk
 full bool?
 name str? <dns-name>
 newid int min:100 max:999999999 <pve-vmid>
 pool str? <pve-poolid>
 snapname str? maxlen:40 <pve-configid>
 storage str? <pve-storage-id>
 target str? <pve-node>
POST /nodes/{node}/qemu/{vmid}/template
 !["perm","/vms/{vmid}",["VM.Allocate"]]
 @vm
 disk str? enum:@disks
PUT /nodes/{node}/qemu/{vmid}/resize
 !["perm","/vms/{vmid}",["VM.Config.Disk"]]
 @vm
 digest str? maxlen:40
 disk str enum:@disks
 size str ~\+?\d+(\.\d+)?[KMGT]?
 skiplock bool?
PUT /nodes/{node}/qemu/{vmid}/unlink
 !["perm","/vms/{vmid}",["VM.Config.Disk"]]
 @vm
 force bool?
 idlist str <pve-configid-list>
GET /nodes/{node}/qemu/{vmid}/cloudinit
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
PUT /nodes/{node}/qemu/{vmid}/cloudinit
 !["perm","/vms/{vmid}",["VM.Config.Cloudinit"]]
 @vm
GET /nodes/{node}/qemu/{vmid}/cloudinit/dump
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 type str enum:user|network|meta
GET /nodes/{node}/qemu/{vmid}/status/current
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
POST /nodes/{node}/qemu/{vmid}/status/start
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 force-cpu str?
 machine str? {machine}
 migratedfrom str? <pve-node>
 migration_network str? <CIDR>
 migration_type str? enum:secure|insecure
 nets-host-mtu str? ~net\d+=\d+(,net\d+=\d+)*
 skiplock bool?
 stateuri str? maxlen:128
 targetstorage str? <storage-pair-list>
 timeout int? min:0
 with-conntrack-state bool?
POST /nodes/{node}/qemu/{vmid}/status/stop
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 keepActive bool?
 migratedfrom str? <pve-node>
 overrule-shutdown bool?
 skiplock bool?
 timeout int? min:0
POST /nodes/{node}/qemu/{vmid}/status/shutdown
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 forceStop bool?
 keepActive bool?
 skiplock bool?
 timeout int? min:0
POST /nodes/{node}/qemu/{vmid}/status/reset
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 skiplock bool?
POST /nodes/{node}/qemu/{vmid}/status/reboot
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 timeout int? min:0
POST /nodes/{node}/qemu/{vmid}/status/suspend
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 skiplock bool?
 statestorage str? needs:todisk <pve-storage-id>
 todisk bool?
POST /nodes/{node}/qemu/{vmid}/status/resume
 !["perm","/vms/{vmid}",["VM.PowerMgmt"]]
 @vm
 nocheck bool?
 skiplock bool?
POST /nodes/{node}/qemu/{vmid}/agent/ping
 !["perm","/vms/{vmid}",["VM.GuestAgent.Audit","VM.GuestAgent.Unrestricted"],"any",1]
 @vm
POST /nodes/{node}/qemu/{vmid}/agent/exec
 !["perm","/vms/{vmid}",["VM.GuestAgent.Unrestricted"]]
 @vm
 command list
 input-data str? maxlen:65536
GET /nodes/{node}/qemu/{vmid}/agent/exec-status
 !["perm","/vms/{vmid}",["VM.GuestAgent.Unrestricted"]]
 @vm
 pid int
GET /nodes/{node}/qemu/{vmid}/agent/file-read
 !["perm","/vms/{vmid}",["VM.GuestAgent.FileRead","VM.GuestAgent.Unrestricted"],"any",1]
 @vm
 count int? min:1 max:16777216
 decode bool?
 file str
 offset int? min:0
GET /nodes/{node}/qemu/{vmid}/agent/get-host-name
 !["perm","/vms/{vmid}",["VM.GuestAgent.Audit","VM.GuestAgent.Unrestricted"],"any",1]
 @vm
GET /nodes/{node}/qemu/{vmid}/agent/get-osinfo
 !["perm","/vms/{vmid}",["VM.GuestAgent.Audit","VM.GuestAgent.Unrestricted"],"any",1]
 @vm
GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces
 !["perm","/vms/{vmid}",["VM.GuestAgent.Audit","VM.GuestAgent.Unrestricted"],"any",1]
 @vm
GET /nodes/{node}/qemu/{vmid}/agent/get-time
 !["perm","/vms/{vmid}",["VM.GuestAgent.Audit","VM.GuestAgent.Unrestricted"],"any",1]
 @vm
GET /nodes/{node}/qemu/{vmid}/firewall/options
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
PUT /nodes/{node}/qemu/{vmid}/firewall/options
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 delete str? <pve-configid-list>
 dhcp bool?
 digest str? maxlen:64
 enable bool?
 ipfilter bool?
 log_level_in str? enum:emerg|alert|crit|err|warning|notice|info|debug|nolog
 log_level_out str? enum:emerg|alert|crit|err|warning|notice|info|debug|nolog
 macfilter bool?
 ndp bool?
 policy_in str? enum:ACCEPT|REJECT|DROP
 policy_out str? enum:ACCEPT|REJECT|DROP
 radv bool?
GET /nodes/{node}/qemu/{vmid}/firewall/rules
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
POST /nodes/{node}/qemu/{vmid}/firewall/rules
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @rule
 @vm
 action str minlen:2 maxlen:20 ~[A-Za-z][A-Za-z0-9\-\_]+
 type str enum:in|out|forward|group
GET /nodes/{node}/qemu/{vmid}/firewall/rules/{pos}
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 pos int? min:0
PUT /nodes/{node}/qemu/{vmid}/firewall/rules/{pos}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @rule
 @vm
 action str? minlen:2 maxlen:20 ~[A-Za-z][A-Za-z0-9\-\_]+
 delete str? <pve-configid-list>
 moveto int? min:0
 type str? enum:in|out|forward|group
DELETE /nodes/{node}/qemu/{vmid}/firewall/rules/{pos}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 digest str? maxlen:64
 pos int? min:0
GET /nodes/{node}/qemu/{vmid}/firewall/ipset
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
POST /nodes/{node}/qemu/{vmid}/firewall/ipset
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 comment str?
 digest str? maxlen:64
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
 rename str? minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
GET /nodes/{node}/qemu/{vmid}/firewall/ipset/{name}
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
POST /nodes/{node}/qemu/{vmid}/firewall/ipset/{name}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 cidr str <IPorCIDRorAlias>
 comment str?
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
 nomatch bool?
DELETE /nodes/{node}/qemu/{vmid}/firewall/ipset/{name}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 force bool?
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
GET /nodes/{node}/qemu/{vmid}/firewall/ipset/{name}/{cidr}
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 cidr str <IPorCIDRorAlias>
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
PUT /nodes/{node}/qemu/{vmid}/firewall/ipset/{name}/{cidr}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 cidr str <IPorCIDRorAlias>
 comment str?
 digest str? maxlen:64
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
 nomatch bool?
DELETE /nodes/{node}/qemu/{vmid}/firewall/ipset/{name}/{cidr}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 cidr str <IPorCIDRorAlias>
 digest str? maxlen:64
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
GET /nodes/{node}/qemu/{vmid}/firewall/aliases
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
POST /nodes/{node}/qemu/{vmid}/firewall/aliases
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 cidr str <IPorCIDR>
 comment str?
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
GET /nodes/{node}/qemu/{vmid}/firewall/aliases/{name}
 !["perm","/vms/{vmid}",["VM.Audit"]]
 @vm
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
PUT /nodes/{node}/qemu/{vmid}/firewall/aliases/{name}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 cidr str <IPorCIDR>
 comment str?
 digest str? maxlen:64
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
 rename str? minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
DELETE /nodes/{node}/qemu/{vmid}/firewall/aliases/{name}
 !["perm","/vms/{vmid}",["VM.Config.Network"]]
 @vm
 digest str? maxlen:64
 name str minlen:2 maxlen:64 ~[A-Za-z][A-Za-z0-9\-\_]+
"##;
