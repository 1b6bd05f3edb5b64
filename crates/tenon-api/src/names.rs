//! Table: labels, annotations, taints and finalizers, spelled once.

pub use tenon_model::labels::canonical_label;

/// Karpenter's API group.
pub const KARPENTER: &str = "karpenter.sh";
/// The Proxmox provider's API group.
pub const PROXMOX: &str = "karpenter.proxmox.sinextra.dev";

/// On Nodes and NodeClaims: the NodePool they belong to.
pub const LABEL_NODEPOOL: &str = "karpenter.sh/nodepool";
/// On Nodes and NodeClaims: `on-demand`, `spot` or `reserved`.
pub const LABEL_CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// On Nodes that have been matched to their NodeClaim.
pub const LABEL_REGISTERED: &str = "karpenter.sh/registered";
/// On Nodes that can take pods.
pub const LABEL_INITIALIZED: &str = "karpenter.sh/initialized";
/// On Nodes and NodeClaims: the name of the NodeClass.
pub const LABEL_NODECLASS: &str = "karpenter.proxmox.sinextra.dev/proxmoxnodeclass";
/// On Nodes: the part of the instance type's name before the first dot.
pub const LABEL_INSTANCE_FAMILY: &str = "karpenter.proxmox.sinextra.dev/instance-family";
/// On Nodes: the CPU model of the VM.
pub const LABEL_INSTANCE_CPU_TYPE: &str = "karpenter.proxmox.sinextra.dev/instance-cpu-type";
/// On Nodes: the image the VM was made from.
pub const LABEL_INSTANCE_IMAGE_ID: &str = "karpenter.proxmox.sinextra.dev/instance-image-id";
/// On bootstrap token Secrets that are ours.
pub const LABEL_BOOTSTRAP_TOKEN: &str = "karpenter.proxmox.sinextra.dev/bootstrap-token";
/// On Nodes: the Proxmox machine the VM is on now; the zone label stays what it was at registration.
pub const LABEL_HOST: &str = "tenon.dev/host";
/// The Kubernetes zone label, which is the Proxmox machine at registration.
pub const LABEL_ZONE: &str = "topology.kubernetes.io/zone";
/// The Kubernetes region label, which is the Proxmox cluster.
pub const LABEL_REGION: &str = "topology.kubernetes.io/region";
/// The Kubernetes instance-type label.
pub const LABEL_INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The Kubernetes architecture label.
pub const LABEL_ARCH: &str = "kubernetes.io/arch";
/// The Kubernetes operating-system label.
pub const LABEL_OS: &str = "kubernetes.io/os";
/// The Kubernetes host-name label.
pub const LABEL_HOSTNAME: &str = "kubernetes.io/hostname";

/// On Pods, Nodes and NodeClaims: leave it alone.
pub const ANNOTATION_DO_NOT_DISRUPT: &str = tenon_model::labels::DO_NOT_DISRUPT;
/// On Nodes and NodeClaims: do not repair it.
pub const ANNOTATION_DO_NOT_REPAIR: &str = tenon_model::labels::DO_NOT_REPAIR;
/// On Pods: what it costs to move them, as a whole number.
pub const ANNOTATION_DISRUPTION_COST: &str = "karpenter.sh/disruption-cost";
/// On Pods: Kubernetes' own word for the same, read where ours is missing.
pub const ANNOTATION_POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// On Pods: the deletion cost that Tenon wrote last. One that is equal to it is no wish of the user.
pub const ANNOTATION_MANAGED_DELETION_COST: &str = "tenon.dev/pod-deletion-cost";
/// On NodeClaims: when patience with their pods ends.
pub const ANNOTATION_TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// On NodeClaims whose VM is started again: the boot ID of the Node before.
pub const ANNOTATION_REBOOT_PRE_BOOT_ID: &str = "karpenter.sh/reboot-pre-boot-id";
/// On NodeClaims whose VM is started again: how long pods have to leave before.
pub const ANNOTATION_REBOOT_GRACE_PERIOD: &str = "karpenter.sh/reboot-termination-grace-period";
/// On NodeClaims: `true` if a NodeOverlay changed the price of one of its instance types.
pub const ANNOTATION_PRICE_OVERLAY: &str = "karpenter.sh/price-overlay-applied";
/// On NodeClaims: `true` if a NodeOverlay changed what one of its instance types has.
pub const ANNOTATION_CAPACITY_OVERLAY: &str = "karpenter.sh/capacity-overlay-applied";
/// On NodeClaims: where the launch of its VM stands. Never copied to the Node.
pub const ANNOTATION_LAUNCH: &str = "tenon.dev/launch";
/// On NodeClaims that are disrupted: the command that disrupts them, as it was decided. Never copied to the Node.
pub const ANNOTATION_DISRUPTION: &str = "tenon.dev/disruption";
/// On NodeClaims that come for others: the id of the command that created them.
pub const ANNOTATION_REPLACEMENT_FOR: &str = "tenon.dev/replacement-for";
/// On NodeClaims that came for others that stayed after all: the id of the command that was taken back.
pub const ANNOTATION_SURPLUS: &str = "tenon.dev/surplus-replacement";
/// On NodePools: what a roll-out that was halted depended on. It goes on once that is different.
pub const ANNOTATION_ROLLOUT_HALTED: &str = "tenon.dev/drift-rollout-halted";
/// On NodeClaims: the id of its bootstrap token.
pub const ANNOTATION_BOOTSTRAP_TOKEN: &str = "karpenter.proxmox.sinextra.dev/proxmoxcloudinit-token";
/// On NodeClaims: that the seed was taken away again.
pub const ANNOTATION_CLOUDINIT_STATUS: &str = "karpenter.proxmox.sinextra.dev/proxmoxcloudinit-status";

/// On NodePools and NodeClaims: what the pool's template is, or was when the claim was made, as one number …
pub const ANNOTATION_NODEPOOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// … and how that number was made.
pub const ANNOTATION_NODEPOOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// On ProxmoxNodeClasses and NodeClaims: the same for the fields of a class that a VM gets only once …
pub const ANNOTATION_NODECLASS_HASH: &str = "karpenter.proxmox.sinextra.dev/proxmoxnodeclass-hash";
/// … and how that number was made.
pub const ANNOTATION_NODECLASS_HASH_VERSION: &str = "karpenter.proxmox.sinextra.dev/proxmoxnodeclass-hash-version";
/// On NodeClaims: the resource pool that its VM was put into.
pub const ANNOTATION_RESOURCE_POOL: &str = "karpenter.proxmox.sinextra.dev/proxmoxnodeclass-pool";
/// On NodeClaims: the same for the fields of its class that a VM which runs can still be given.
pub const ANNOTATION_IN_PLACE_HASH: &str = "karpenter.proxmox.sinextra.dev/proxmoxnodeinplaceupdate-hash";
/// On ProxmoxTemplates: the number that stands behind `Hash:` in the description of their VMs …
pub const ANNOTATION_TEMPLATE_HASH: &str = "karpenter.proxmox.sinextra.dev/proxmoxtemplate-hash";
/// … and how that number was made.
pub const ANNOTATION_TEMPLATE_HASH_VERSION: &str = "karpenter.proxmox.sinextra.dev/proxmoxtemplate-hash-version";
/// On ProxmoxTemplates: our own hash of what that number was made from, whoever made the number.
pub const ANNOTATION_TEMPLATE_SEEN: &str = "tenon.dev/template-seen";
/// On ProxmoxTemplates: our hash of the fields that all their VMs were given without being made anew.
pub const ANNOTATION_TEMPLATE_IN_PLACE_HASH: &str = "karpenter.proxmox.sinextra.dev/proxmoxtemplateinplaceupdate-hash";
/// On ProxmoxTemplates: every VM template that was begun for them and is not gone yet.
pub const ANNOTATION_TEMPLATE_BUILDS: &str = "tenon.dev/template-builds";

/// On Secrets in the cluster of the controller that classes of another cluster may name.
pub const LABEL_NODE_DATA: &str = "tenon.dev/node-data";
/// On NodeClaims that are being deleted: delete the NodeClaim without touching any VM.
pub const ANNOTATION_SKIP_VM_DELETION: &str = "tenon.dev/skip-vm-deletion";
/// On bootstrap token Secrets: the uid of the NodeClaim whose VM joins with it.
pub const ANNOTATION_CLAIM_UID: &str = "tenon.dev/claim-uid";

/// On ProxmoxNodeClasses: they go only when no NodeClaim uses them.
pub const CLASS_FINALIZER: &str = "karpenter.proxmox.sinextra.dev/termination";
/// On ProxmoxTemplates: they go only when their VM templates and images are gone.
pub const TEMPLATE_FINALIZER: &str = "karpenter.proxmox.sinextra.dev/termination";
/// On Nodes and NodeClaims: they go only when their VM is gone.
pub const FINALIZER: &str = "karpenter.sh/termination";

/// On Nodes from their first second until they are matched to a NodeClaim.
pub const TAINT_UNREGISTERED: &str = "karpenter.sh/unregistered";
/// On Nodes whose kubelet expects a cloud controller manager, until that has initialized them.
pub const TAINT_UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// On Nodes that are being drained.
pub const TAINT_DISRUPTED: &str = "karpenter.sh/disrupted";

/// On Nodes whose VM is started again, until it was.
pub const TAINT_REBOOTING: &str = "karpenter.sh/rebooting";

/// On Nodes that load balancers outside the cluster should forget.
pub const LABEL_EXCLUDE_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// On Nodes whose taints are nobody's business but their owner's.
pub const LABEL_DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";

/// The group a bootstrap token belongs to.
pub const BOOTSTRAP_GROUP: &str = "system:bootstrappers:karpenter:proxmox";
