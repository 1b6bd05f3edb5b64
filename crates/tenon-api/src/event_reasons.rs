//! Table: every reason an event of ours can have, when it is published, and what to do about it.
//!
//! An event can only be made from a row of this table, and `docs/reference/events.md` is printed from it: no reason exists
//! that is not explained. Reasons that Karpenter defines keep its names, so that filters and alerts go on working.

/// Whether somebody should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something happened as it should.
    Normal,
    /// Something is in the way.
    Warning,
}

impl Severity {
    /// As it stands in an event.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        }
    }
}

/// Who defined a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Karpenter, or its provider for Proxmox.
    Karpenter,
    /// Tenon.
    Tenon,
}

impl Origin {
    /// As the reference pages print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Karpenter => "Karpenter",
            Origin::Tenon => "Tenon",
        }
    }
}

/// A reason of events. Only this file makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct EventReason {
    name: &'static str,
    objects: &'static str,
    severity: Severity,
    origin: Origin,
    when: &'static str,
    example: &'static str,
    action: &'static str,
}

impl EventReason {
    /// The reason, as it stands in the event.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kinds of objects it is published on.
    pub fn objects(&self) -> &'static str {
        self.objects
    }

    /// Whether somebody should look.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Who defined it.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// When it is published.
    pub fn when(&self) -> &'static str {
        self.when
    }

    /// A message it may have.
    pub fn example(&self) -> &'static str {
        self.example
    }

    /// What to do.
    pub fn action(&self) -> &'static str {
        self.action
    }
}

macro_rules! event_reasons {
    ($($row:ident = $name:literal on $objects:literal, $severity:ident, $origin:ident,
        when $when:literal, example $example:literal, action $action:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $when)]
            pub static $row: EventReason = EventReason {
                name: $name,
                objects: $objects,
                severity: Severity::$severity,
                origin: Origin::$origin,
                when: $when,
                example: $example,
                action: $action,
            };
        )*

        /// Every reason, in the order the reference page lists them.
        pub static EVENT_REASONS: &[&EventReason] = &[$(&$row),*];
    };
}

event_reasons! {
    // Pods.
    NOMINATED = "Nominated" on "Pod", Normal, Karpenter,
        when "A plan places the pod on an existing Node or on a new NodeClaim.",
        example "Created NodeClaim default-x7 for this pod",
        action "Nothing. The scheduler binds the pod once the Node is ready.";
    FAILED_SCHEDULING = "FailedScheduling" on "Pod, NodeClaim", Warning, Karpenter,
        when "No Node can be created for the pod, or a NodeClaim without a VM fits on no host.",
        example "NodePool default: no host has 64 GiB of memory free for instance type m1.8VCPU-64GB; the most is 48 GiB on host pve3; free up memory on a host or add a host",
        action "Follow the message: it names what each NodePool or host lacks. `tenon plan` shows the same for a whole cluster.";
    EVICTED = "Evicted" on "Pod", Normal, Karpenter,
        when "The pod was evicted because its Node is being removed.",
        example "Evicted: Node default-x7 is being removed (empty)",
        action "Nothing. A PodDisruptionBudget limits how many pods are evicted at once.";
    DISRUPTED = "Disrupted" on "Pod", Normal, Karpenter,
        when "The pod was deleted because the terminationGracePeriod of its NodeClaim ends before the pod could be evicted.",
        example "Deleted with a grace period of 30 s: Node default-x7 is being removed (empty), and terminationGracePeriod ends",
        action "Raise terminationGracePeriod on the NodePool if pods need more time.";
    // Pods and NodeClaims.
    INSUFFICIENT_CAPACITY = "InsufficientCapacityError" on "NodeClaim, Pod", Warning, Karpenter,
        when "The VM of a NodeClaim could not be created on its host. The NodeClaim is deleted, and its pods are planned again on other hosts.",
        example "Cannot create a node on host pve1: cannot clone template 9000 on host pve1 to VM 20003: storage local-lvm: No space left on device; free up space on the storage. Its pods are planned again, on other hosts first",
        action "Remove the cause that the message names. The host is tried again after a while.";
    // NodeClaims, from launch to ready.
    LAUNCHED = "Launched" on "NodeClaim", Normal, Karpenter,
        when "The VM of the NodeClaim was created and started.",
        example "Started VM 20003 on host pve1",
        action "Nothing.";
    REGISTERED = "Registered" on "NodeClaim", Normal, Karpenter,
        when "The Node joined and was matched with the NodeClaim's VM.",
        example "Node default-x7 registered: VM 20003 on host pve1",
        action "Nothing.";
    INITIALIZED = "Initialized" on "NodeClaim", Normal, Karpenter,
        when "The Node is Ready, has all requested resources and no start-up taints.",
        example "Node default-x7 initialized",
        action "Nothing.";
    LAUNCH_FAILED = "LaunchFailed" on "NodeClaim", Warning, Karpenter,
        when "A step of the launch failed, or Proxmox failed a later check of the VM. It is retried.",
        example "Cannot launch the VM of NodeClaim default-x7: cannot read the configuration of VM 20003 on host pve1: no reply received; retrying",
        action "If it does not go away, check that the Proxmox API is reachable and that the API token has its privileges.";
    RELAUNCHED = "Relaunched" on "NodeClaim", Normal, Tenon,
        when "The VM ID of the NodeClaim could not be used, and another was chosen.",
        example "Launching VM 20004 on host pve1 instead of VM 20003: the VM ID is in use",
        action "Nothing. If it happens often, use a VM ID range that nothing else uses (PROXMOX_VMID, PROXMOX_VMID_MAX).";
    INCOMPLETE_CLONE = "IncompleteClone" on "NodeClaim, NodePool", Warning, Tenon,
        when "A clone was interrupted and its VM is left locked. An API token can neither unlock nor destroy it.",
        example "VM 20003 on host pve1 is an incomplete clone (lock: clone) and cannot be removed with an API token; on pve1 run: qm config 20003. If it shows lock: clone, run: qm unlock 20003 && qm destroy 20003 --purge --destroy-unreferenced-disks 1",
        action "Run the `qm` commands of the message on that host, as root. Until then the VM ID is not used again.";
    SEED_NOT_DELETED = "SeedNotDeleted" on "NodeClaim, NodePool", Warning, Tenon,
        when "The seed image of a VM could not be deleted from its storage. The VM and the NodeClaim are not held up by it, and its bootstrap token is deleted.",
        example "Cannot delete seed image local:iso/user-data-0b5c.iso: cannot delete volume local:iso/user-data-0b5c.iso on host pve1: Permission check failed (/storage/local, Datastore.Allocate); grant Datastore.Allocate on its storage, and delete the image",
        action "Grant the API token Datastore.Allocate on the storage, and delete the image.";
    IN_PLACE_UPDATE_FAILED = "InPlaceUpdateFailed" on "NodeClaim", Warning, Tenon,
        when "Tags, security groups or the resource pool of a ProxmoxNodeClass were changed, and could not be applied to a running VM. It is retried every minute; the node goes on working.",
        example "Cannot apply tags, security groups and resource pool of ProxmoxNodeClass default to VM 20003: cannot change resource pool k8s: Permission check failed (/pool/k8s, Pool.Allocate); retrying",
        action "Remove the cause that the message names: most often a privilege that the API token lacks.";
    NAME_TAKEN = "NameTaken" on "NodeClaim", Warning, Tenon,
        when "Another VM already has the name of the NodeClaim. The launch waits: two VMs with one name would be one Node to Kubernetes.",
        example "Cannot launch VM 20003: VM 105 on host pve2 is already named default-x7; rename or remove VM 105, or delete NodeClaim default-x7",
        action "Rename or remove the other VM, or delete the NodeClaim.";
    JOIN_DATA_MISSING = "JoinDataMissing" on "NodeClaim", Warning, Tenon,
        when "The cluster CA or the API server address that a new Node joins with cannot be found, or bootstrap tokens may not request certificates.",
        example "Nodes cannot join: the address of the API server is unknown: ConfigMap kube-public/cluster-info does not exist; set --cluster-endpoint",
        action "Follow the message.";
    NOT_PROVEN_OURS = "NotProvenOurs" on "NodeClaim", Warning, Tenon,
        when "The VM with the recorded id has no proof that it belongs to this NodeClaim. It is never changed.",
        example "VM 20003 on host pve1 does not belong to this NodeClaim: its description does not name this NodeClaim as its owner; the VM is not changed. Delete NodeClaim default-x7",
        action "Delete the NodeClaim; its pods are planned again. Look who else uses VM IDs of Tenon's range.";
    LAUNCH_RECORD_UNREADABLE = "LaunchRecordUnreadable" on "NodeClaim", Warning, Tenon,
        when "The annotation tenon.dev/launch of the NodeClaim cannot be read, so nothing is created or deleted for it.",
        example "Annotation tenon.dev/launch of NodeClaim default-x7 is invalid: expected value at line 1 column 1; correct the annotation, or remove the VM yourself and set annotation tenon.dev/skip-vm-deletion=true to delete the NodeClaim without touching any VM",
        action "Restore the annotation, or remove the VM yourself and set the annotation that the message names.";
    NODE_NOT_JOINED = "NodeNotJoined" on "NodeClaim", Warning, Tenon,
        when "The VM runs for a minute or longer, and its Node has not joined. The event says what is known of the cause; it is published once for each cause. The condition Registered has a reason for each cause.",
        example "Node default-x7 has not joined: CertificateSigningRequest node-csr-4f2a is not approved; run: kubectl certificate approve node-csr-4f2a",
        action "Follow the message. The guide Joining lists every cause.";
    NODE_MISMATCH = "NodeMismatch" on "NodeClaim", Warning, Tenon,
        when "A Node has the name of the NodeClaim, but it is another machine (SMBIOS UUID or providerID differ). That Node is never drained, labelled or deleted.",
        example "Node default-x7 has system UUID 5f0c…, but VM 20003 has 9ab1…: another machine joined under this name; rename or remove Node default-x7, or delete NodeClaim default-x7",
        action "Find out which machine joined under that name. Remove its Node, or delete the NodeClaim.";
    CSR_APPROVED = "CSRApproved" on "NodeClaim", Normal, Tenon,
        when "The CSR approver (`--csr-approver`) approved a certificate that the kubelet of the NodeClaim asked for. The condition Approved of the CertificateSigningRequest has the same reason.",
        example "Approved client certificate of Node default-x7 (CSR node-csr-Kq2…)",
        action "Nothing.";
    CSR_DENIED = "CSRDenied" on "NodeClaim", Warning, Tenon,
        when "The CSR approver (`--csr-approver`) denied a certificate that was asked for with the bootstrap token, or by the Node, of the NodeClaim. The condition Denied of the CertificateSigningRequest has the same reason.",
        example "Denied client certificate for user system:bootstrap:k3x9qd (CSR node-csr-Kq2…): the common name is system:node:web-1, only system:node:default-x7 is allowed; set hostname-override of the kubelet to default-x7 in the first-boot data; if the VM did not ask, somebody else has its token or certificate: delete NodeClaim default-x7 to replace the VM",
        action "If the VM itself asked, correct what the message names: the hostname in first-boot data, or the configuration of the kubelet. If not, somebody else has the bootstrap token or the credentials of the Node: delete the NodeClaim, and find out who can read first-boot data.";
    CSR_UNDECIDED = "CSRUndecided" on "NodeClaim", Warning, Tenon,
        when "The CSR approver (`--csr-approver`) cannot decide about a certificate, mostly because the guest agent does not say which addresses the VM has, or because the controller lacks the privileges in examples/csr-approver-rbac.yaml. It tries again until the request is 15 minutes old.",
        example "Cannot decide about CSR csr-7x2bd of Node default-x7 yet: the addresses of its VM are not known: cannot run guest agent command network-get-interfaces in VM 20003 on host pve1: QEMU guest agent is not running; install and enable the guest agent in the template, or give the VM fixed addresses; retrying",
        action "Follow the message: install and enable the guest agent in the template, give the VM fixed addresses, or apply the privileges. The kubelet works without a serving certificate, but `kubectl logs` and `kubectl exec` do not.";
    MULTIPLE_NODES_FOUND = "MultipleNodesFound" on "NodeClaim", Warning, Karpenter,
        when "Two Nodes have the providerID of the NodeClaim.",
        example "Nodes default-x7 and web-1 both have providerID proxmox://lab/20003; delete one of them",
        action "Delete the Node that is not the NodeClaim's VM.";
    UNREGISTERED_TAINT_MISSING = "UnregisteredTaintMissing" on "NodeClaim", Warning, Karpenter,
        when "The Node joined without the taint karpenter.sh/unregistered:NoExecute, so pods may have been scheduled too early.",
        example "Node default-x7 joined without taint karpenter.sh/unregistered:NoExecute; add the taint to registerWithTaints of its kubelet",
        action "Add the taint to the kubelet configuration in your first-boot data.";
    REGISTRATION_FAILED = "RegistrationFailed" on "NodeClaim", Warning, Tenon,
        when "The VM runs, but no Node registered within 15 minutes (spec.timeouts.registration of its ProxmoxNodeClass). The NodeClaim is deleted and its pods are planned again.",
        example "Node default-x7 did not register within 15 min of the start of its VM; read cloud-init and kubelet on the VM's console, and check that the VM can reach the API server (--cluster-endpoint)",
        action "Read the console of the VM (cloud-init, kubelet); check network, API server address and time.";
    FAILED_CONSISTENCY_CHECK = "FailedConsistencyCheck" on "NodeClaim", Warning, Karpenter,
        when "The Node has less than 90 % of a requested resource of its instance type. Checked every 10 minutes.",
        example "Node default-x7 has 4 of resource cpu, expected 8 (50 %); check the size and the devices of the VM in Proxmox",
        action "Compare the VM with its instance type. Delete the NodeClaim to replace the Node.";
    // NodeClaims whose VM the Go provider created.
    ADOPTED = "Adopted" on "NodeClaim", Normal, Tenon,
        when "The VM of the NodeClaim was created by the Go provider, and bears every mark of that. Tenon manages it from now on.",
        example "Adopted VM 20003 on host pve1",
        action "Nothing.";
    NOT_ADOPTED = "NotAdopted" on "NodeClaim", Warning, Tenon,
        when "The VM of the NodeClaim was not created by Tenon, and misses a mark of a VM that the Go provider created for it. It is left alone. Published once for each cause; the condition Adopted keeps it.",
        example "Not adopted: VM 20003 on host pve2 has moved: the zone label of the NodeClaim says \"pve1\"; migrate the VM back to that host, or set annotation tenon.dev/skip-vm-deletion=true on the NodeClaim and delete it (its VM stays)",
        action "Follow the message. `tenon adopt --dry-run` lists all NodeClaims with their reasons.";
    REGION_NOT_CONFIGURED = "RegionNotConfigured" on "NodeClaim, ProxmoxTemplate", Warning, Tenon,
        when "The region of a NodeClaim was removed from the cloud config. Its Node and VM are kept, and neither disrupted nor repaired. The VM templates of a ProxmoxTemplate there are kept, too.",
        example "VM 20003 of NodeClaim default-x7 is kept and not touched: region west is not in the cloud config, which has lab; add the region",
        action "Add the region again. To remove its nodes, delete their NodeClaims before you remove the region.";
    // NodeClaims, on their way out.
    NODE_DELETED = "NodeDeleted" on "NodeClaim", Normal, Tenon,
        when "The Node of the NodeClaim is being deleted or no longer exists, so the NodeClaim and its VM are deleted too.",
        example "Deleting NodeClaim default-x7 and its VM: Node default-x7 was deleted",
        action "Nothing, if you deleted the Node.";
    VM_NOT_FOUND = "VMNotFound" on "NodeClaim", Warning, Tenon,
        when "The VM of a NodeClaim no longer exists in Proxmox. The NodeClaim is deleted, at once or when its Node is not Ready any more.",
        example "Deleting NodeClaim default-x7: VM 20003 no longer exists",
        action "Find out who destroyed the VM. Delete NodeClaims or Nodes instead: then pods are evicted first.";
    ACCESS_REVIEW_FAILED = "AccessReviewFailed" on "ProxmoxNodeClass", Warning, Tenon,
        when "The controller cannot ask whether bootstrap tokens may request certificates. Nodes are created all the same.",
        example "Cannot check whether nodes of ProxmoxNodeClass default may join: subjectaccessreviews.authorization.k8s.io is forbidden (Kubernetes API, HTTP 403); grant the controller create on subjectaccessreviews of authorization.k8s.io",
        action "Grant the controller create on subjectaccessreviews.";
    WAITING_ON_NODE_CLAIM_TERMINATION = "WaitingOnNodeClaimTermination" on "ProxmoxNodeClass", Normal, Tenon,
        when "A ProxmoxNodeClass is deleted while NodeClaims use it. It stays until they are gone, because their VMs are released by what it says.",
        example "ProxmoxNodeClass default is being deleted: 3 NodeClaims use it; it is deleted after them",
        action "Delete the NodePools that use the class, or wait.";
    VM_STOPPED = "VMStopped" on "NodeClaim", Warning, Tenon,
        when "The VM of a NodeClaim stopped before its Node joined: somebody stopped it, or the guest switched itself off. The NodeClaim is deleted, and its pods are planned again.",
        example "Deleting NodeClaim default-x7: VM 20003 on host pve1 stopped before Node default-x7 joined; read the task log and the console of the VM",
        action "If nobody stopped the VM, check first-boot data and template: a guest that cannot boot switches itself off.";
    FAILED_GARBAGE_COLLECTION = "FailedGarbageCollection" on "NodeClaim", Warning, Tenon,
        when "Whether the VM of a NodeClaim still exists, or what to do about it, cannot be found out or written.",
        example "Cannot check the VM of NodeClaim default-x7: cannot label the Node with its host: nodes \"default-x7\" is forbidden (Kubernetes API, HTTP 403); retrying",
        action "Read the cause in the message. Other NodeClaims are not affected.";
    EXPIRED = "Expired" on "NodeClaim", Normal, Karpenter,
        when "The NodeClaim is older than its expireAfter.",
        example "Deleting NodeClaim default-x7: older than expireAfter 720h",
        action "Nothing. Set expireAfter: Never on the NodePool to keep Nodes.";
    DISRUPTION_TERMINATING = "DisruptionTerminating" on "NodeClaim", Normal, Karpenter,
        when "The NodeClaim is deleted: its Node is empty, underutilized, has drifted or moves to another Proxmox host, and every replacement it needs is ready; or its static NodePool has more Nodes than spec.replicas.",
        example "Deleting NodeClaim default-x7: Node default-x7 is empty",
        action "Nothing.";
    DISRUPTION_BLOCKED = "DisruptionBlocked" on "NodeClaim", Normal, Karpenter,
        when "A Node is not disrupted because of a disruption budget, a PodDisruptionBudget, a do-not-disrupt annotation or an invalid consolidateAfter; a drifted Node also if its pods would be unschedulable; or a disruption was stopped because its replacement failed.",
        example "Cannot disrupt NodeClaim default-x7: NodePool default has no budget left: 1 node is being disrupted or not ready, and spec.disruption.budgets allow 1 at once",
        action "Change what the message names if the Node should be removed now.";
    NODE_REPAIR_BLOCKED = "NodeRepairBlocked" on "Node, NodeClaim, NodePool", Warning, Karpenter,
        when "An unhealthy Node is not repaired, because more than 20 % of the Nodes of its NodePool are unhealthy.",
        example "Cannot repair Node default-x7: 3 of 10 nodes of NodePool default are unhealthy, and nodes are repaired only up to 2 (20%); find the common cause",
        action "Find out what the unhealthy Nodes have in common, such as a network, a storage or a Proxmox host that failed.";
    STARTING_STOPPED_VM = "StartingStoppedVm" on "NodeClaim", Normal, Tenon,
        when "The Node is not Ready and its VM is stopped, and --start-stopped-vms is set.",
        example "Starting VM 20003 of NodeClaim default-x7 on host pve1: it is stopped",
        action "Nothing. If the VM shall stay off, set annotation karpenter.sh/do-not-repair=true on the NodeClaim.";
    REBOOT_OBSERVED = "RebootObserved" on "NodeClaim", Normal, Karpenter,
        when "The Node has another boot ID: its VM was rebooted.",
        example "Node default-x7 was rebooted; waiting until it is Ready",
        action "Nothing.";
    REBOOT_FAILED = "RebootFailed" on "NodeClaim", Warning, Karpenter,
        when "The VM could not be rebooted, or its Node did not come back. The NodeClaim is deleted, unless the reboot was never begun.",
        example "Cannot reboot Node default-x7: the Node was not Ready with a new boot ID in time; deleting the NodeClaim",
        action "Nothing. Look at the VM template and the host if it happens again.";
    POOL_DISRUPTION_BLOCKED = "DisruptionBlocked" on "NodePool", Warning, Karpenter,
        when "A disruption budget of the NodePool cannot be read, or its surplus Nodes belong to another controller; none of its Nodes are removed.",
        example "Cannot disrupt nodes of NodePool default: spec.disruption.budgets[0]: nodes: \"some\" is not a number of nodes; use a number such as 5 or a percentage such as 10%",
        action "Correct the field that the message names.";
    UNCONSOLIDATABLE = "Unconsolidatable" on "NodeClaim", Normal, Karpenter,
        when "A Node is not consolidated: consolidateAfter of its NodePool is Never, its consolidationPolicy keeps Nodes in use, its pods fit nowhere else, or a replacement would not be cheaper.",
        example "Cannot consolidate NodeClaim default-x7: consolidateAfter: Never on NodePool default; set a duration such as 5m to remove empty nodes",
        action "Nothing, unless the Node should be removed: then change what the message names.";
    DISRUPTION_LAUNCHING = "DisruptionLaunching" on "NodeClaim", Normal, Karpenter,
        when "The NodeClaim was created to replace others.",
        example "Created NodeClaim default-b2k4x to replace NodeClaim default-x7 (Underutilized)",
        action "Nothing.";
    DISRUPTION_WAITING_READINESS = "DisruptionWaitingReadiness" on "NodeClaim", Normal, Karpenter,
        when "The Nodes that the NodeClaim replaces stay until its own Node is ready.",
        example "Waiting until the Node of NodeClaim default-b2k4x is ready before NodeClaim default-x7 is deleted",
        action "Nothing. If it takes long, see the conditions of the NodeClaim.";
    CONSOLIDATION_REJECTED = "ConsolidationRejected" on "NodeClaim", Normal, Karpenter,
        when "A Node was to be consolidated, and 15 seconds later that was no longer possible.",
        example "Skipped consolidation of NodeClaim default-x7 (churn): pod default/web-1 needs the node",
        action "Nothing. The Node is checked again.";
    CONSOLIDATION_APPROVED = "ConsolidationApproved" on "NodeClaim", Normal, Karpenter,
        when "The NodePool has policy Balanced, and to consolidate the Node saves enough for what it disrupts.",
        example "Approved consolidation of NodeClaim default-x7: it saves 20.0 % of the cost of NodePool default for 5.0 % of its disruption cost (score 4.00, at least 0.50)",
        action "Nothing. The Node is consolidated if that still holds 15 seconds later.";
    POOL_CONSOLIDATION_APPROVED = "ConsolidationApproved" on "NodePool", Normal, Karpenter,
        when "The NodePool has policy Balanced, and to consolidate several Nodes saves enough for what it disrupts.",
        example "Approved consolidation of 3 NodeClaims: it saves 20.0 % of the cost of NodePool default for 5.0 % of its disruption cost (score 4.00, at least 0.50)",
        action "Nothing. The Nodes are consolidated if that still holds 15 seconds later.";
    DRIFT_ROLLOUT_HALTED = "DriftRolloutHalted" on "NodePool", Warning, Tenon,
        when "The first replacement of a drifted Node did not join, so no more Nodes of the NodePool are replaced because of drift.",
        example "Replacement NodeClaim default-b2k4x was deleted before it was ready. No more Nodes of NodePool default are replaced because of drift until spec.template of the NodePool, its ProxmoxNodeClass or the VM template changes",
        action "Correct or revert the NodePool, the ProxmoxNodeClass or the VM template; the roll-out resumes by itself.";
    TERMINATION_GRACE_PERIOD_EXPIRING = "TerminationGracePeriodExpiring" on "NodeClaim", Warning, Karpenter,
        when "The NodeClaim is being deleted and has a terminationGracePeriod; pods that are left at its end are deleted.",
        example "All pods on Node default-x7 are deleted by 2026-01-01T00:10:00Z (terminationGracePeriod)",
        action "Nothing, or move pods that need longer.";
    FAILED_DRAINING = "FailedDraining" on "Node, NodeClaim", Warning, Karpenter,
        when "Pods are still on a Node that is being drained.",
        example "Draining Node default-x7: 1 pod is waiting to be evicted; pod default/db-0 has karpenter.sh/do-not-disrupt: remove the annotation or delete the pod",
        action "Look at the PodDisruptionBudgets and annotations of the pods on the Node. terminationGracePeriod bounds the wait.";
    AWAITING_VOLUME_DETACHMENT = "AwaitingVolumeDetachment" on "Node", Normal, Karpenter,
        when "All pods have left the Node, but a volume is still attached to it.",
        example "PersistentVolume pvc-81c2 is still attached to Node default-x7",
        action "If it does not end, look at the CSI driver's controller.";
    FAILED_TERMINATION = "FailedTermination" on "NodeClaim", Warning, Karpenter,
        when "The VM of a NodeClaim that is being deleted cannot be destroyed.",
        example "Cannot delete the VM of NodeClaim default-x7: cannot destroy VM 20003 on host pve1: can't remove VM 20003 - protection mode enabled; on host pve1 run: qm set 20003 --protection 0; retrying",
        action "Follow the message. The NodeClaim stays until the VM is destroyed.";
    // Drift.
    DRIFTED = "Drifted" on "NodeClaim", Normal, Karpenter,
        when "The Node is no longer what its NodePool, ProxmoxNodeClass or template says.",
        example "NodePoolDrifted: spec.template of NodePool default changed after this NodeClaim was created",
        action "Nothing. The Node is replaced as soon as the disruption budgets of its NodePool allow it.";
    NODE_CLASS_RESOLUTION_ERROR = "NodeClassResolutionError" on "NodeClaim", Warning, Karpenter,
        when "The ProxmoxNodeClass of the NodeClaim does not exist, so drift cannot be determined.",
        example "ProxmoxNodeClass default does not exist; create it",
        action "Create the ProxmoxNodeClass.";
    // NodePools.
    NO_COMPATIBLE_INSTANCE_TYPES = "NoCompatibleInstanceTypes" on "NodePool", Warning, Karpenter,
        when "The requirements of the NodePool exclude every instance type.",
        example "No instance type meets the requirements of NodePool default; relax spec.template.spec.requirements",
        action "Relax the requirements, or add instance types.";
    NODE_CLAIM_NOT_CREATED = "NodeClaimNotCreated" on "NodePool", Warning, Tenon,
        when "A NodeClaim of a static NodePool could not be created.",
        example "Cannot create a NodeClaim for static NodePool edge: nodeclaims.karpenter.sh is forbidden; retrying",
        action "Follow the message; often a missing right of the controller.";
    NODE_LIMIT_REACHED = "NodeLimitReached" on "NodePool", Warning, Tenon,
        when "A static NodePool has fewer Nodes than spec.replicas because of spec.limits.nodes.",
        example "NodePool edge lacks 2 of 5 Nodes, but spec.limits.nodes is 3 and 3 exist or are terminating; raise spec.limits.nodes or lower spec.replicas",
        action "Raise the limit, or lower spec.replicas.";
    NO_ROOM_FOR_NODES = "NoRoomForNodes" on "NodePool", Warning, Tenon,
        when "NodeClaims of a static NodePool fit on no host.",
        example "NodePool edge: no host has room for 2 NodeClaims; no more are created until then. See their events",
        action "Free room on a host, add one, or lower spec.replicas.";
    // Conditions that turned False or Unknown; the message repeats the condition.
    VALIDATION_SUCCEEDED = "ValidationSucceeded" on "NodePool, NodeOverlay", Warning, Karpenter,
        when "The condition of this name turned False.",
        example "ValidationSucceeded is False (NodePoolValidationFailed): spec.template.spec.taints[0]: …",
        action "See the condition in [conditions](conditions.md).";
    NODE_CLASS_READY = "NodeClassReady" on "NodePool", Warning, Karpenter,
        when "The condition of this name turned False or Unknown.",
        example "NodeClassReady is False (NodeClassNotFound): ProxmoxNodeClass default does not exist; create it or correct nodeClassRef",
        action "See the condition in [conditions](conditions.md).";
    INSTANCE_TEMPLATE_READY = "InstanceTemplateReady" on "ProxmoxNodeClass", Warning, Karpenter,
        when "The condition of this name turned False or Unknown.",
        example "InstanceTemplateReady is False (TemplatesNotFound): ProxmoxUnmanagedTemplate ubuntu does not exist; create it",
        action "See the condition in [conditions](conditions.md).";
    INSTANCE_METADATA_OPTIONS_READY = "InstanceMetadataOptionsReady" on "ProxmoxNodeClass", Warning, Karpenter,
        when "The condition of this name turned False.",
        example "InstanceMetadataOptionsReady is False (MetadataOptionsNotFound): Secret kube-system/worker, which spec.metadataOptions.templatesRef names, does not exist; create it",
        action "See the condition in [conditions](conditions.md).";
    IMAGE_DOWNLOADING = "ImageDownloading" on "ProxmoxTemplate", Normal, Tenon,
        when "A host begins to download the image of the ProxmoxTemplate.",
        example "Downloading https://images.example/debian-13.qcow2 to storage local on host pve1",
        action "Nothing. The condition ProxmoxVirtualMachineTemplateReady shows how far it is.";
    IMAGE_DOWNLOADED = "ImageDownloaded" on "ProxmoxTemplate", Normal, Tenon,
        when "A host downloaded the image of the ProxmoxTemplate.",
        example "Downloaded image local:import/debian-13-4711.qcow2 on host pve1",
        action "Nothing.";
    IMAGE_REPLACED = "ImageReplaced" on "ProxmoxTemplate", Normal, Tenon,
        when "The image that Tenon had downloaded before is not what spec.sourceImage asks for now: another checksum, or a certificate that has to be checked. It is downloaded again.",
        example "Image local:import/debian-13-4711.qcow2 on host pve1 is not what spec.sourceImage asks for; downloading the image again",
        action "Nothing.";
    TEMPLATE_CREATED = "TemplateCreated" on "ProxmoxTemplate", Normal, Tenon,
        when "A VM template of the ProxmoxTemplate is ready.",
        example "Created VM template 1000 on host pve1 (Hash: 4711)",
        action "Nothing.";
    TEMPLATE_BUILD_FAILED = "TemplateBuildFailed" on "ProxmoxTemplate", Warning, Tenon,
        when "A step of creating, changing or deleting a VM template failed. Tenon tries again, after 30 seconds at first and 15 minutes at most, and at once when the spec changes.",
        example "cannot create VM 1000 on host pve1 with its disk on storage fast: no space left on device; make room on storage fast",
        action "Follow the message: it names host, storage and what Proxmox said.";
    TEMPLATE_UPDATED = "TemplateUpdated" on "ProxmoxTemplate", Normal, Tenon,
        when "The configuration of a VM template was not what the ProxmoxTemplate says, and was corrected.",
        example "Updated VM template 1000 on host pve1: net0, tags",
        action "Nothing. To keep another configuration, change the ProxmoxTemplate instead of the VM template.";
    TEMPLATE_REPLACED = "TemplateReplaced" on "ProxmoxTemplate", Warning, Tenon,
        when "The VM template does not exist any more, or another VM has its VM ID. Tenon creates another one, and leaves the other VM alone.",
        example "VM 1000 does not exist any more on host pve1; creating VM template 1001 instead",
        action "Nothing, unless the VM template was deleted by mistake.";
    INCOMPLETE_TEMPLATE = "IncompleteTemplate" on "ProxmoxTemplate", Warning, Tenon,
        when "The creation of a VM template was interrupted. The rest is locked, and an API token can neither unlock nor delete it. Tenon creates another one.",
        example "the creation of VM 1000 was interrupted on host pve1; creating VM template 1001 instead. VM 1000 is incomplete and cannot be removed with an API token; on host pve1 run: qm config 1000. If it shows lock: create and no task runs for it, run: qm unlock 1000 && qm destroy 1000 --purge --destroy-unreferenced-disks 1",
        action "Run the commands of the message on the host.";
    TEMPLATE_IN_USE = "TemplateInUse" on "ProxmoxTemplate", Normal, Tenon,
        when "A VM template that is not wanted any more is kept, because linked clones, launches or a ProxmoxNodeClass use it.",
        example "VM 1000 is kept while it is used by VM 20001 of NodeClaim default-x7; delete their NodeClaims, or wait",
        action "Nothing: it is deleted when nothing uses it any more. To have it deleted now, delete what the message names.";
    TEMPLATE_DELETED = "TemplateDeleted" on "ProxmoxTemplate", Normal, Tenon,
        when "A VM template that is not wanted any more was deleted.",
        example "Deleted VM template 1000 on host pve1 and its image, unless another template is made from it",
        action "Nothing.";
    TEMPLATE_ADOPTED = "TemplateAdopted" on "ProxmoxTemplate", Normal, Tenon,
        when "A VM template that the Go provider created for the ProxmoxTemplate is managed by Tenon from now on.",
        example "Adopted VM template 1000 on host pve1",
        action "Nothing.";
    TEMPLATE_LEFT_ALONE = "TemplateLeftAlone" on "ProxmoxTemplate", Warning, Tenon,
        when "A VM that the ProxmoxTemplate names is not proven to be its VM template. Tenon neither changes nor deletes it.",
        example "VM 1000 on host pve1, which status.zones names, is left alone: it is not a template. Delete it yourself if nothing needs it",
        action "Check the VM, and delete it yourself if nothing needs it.";
    TEMPLATE_READY = "ProxmoxVirtualMachineTemplateReady" on "ProxmoxUnmanagedTemplate, ProxmoxTemplate", Warning, Karpenter,
        when "The condition of this name turned False or Unknown.",
        example "ProxmoxVirtualMachineTemplateReady is False (TemplatesNotFound): no VM template named ubuntu in region lab; create one, or correct spec.templateName and spec.tags",
        action "See the condition in [conditions](conditions.md).";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_something_and_no_reason_stands_twice_for_one_kind() {
        let mut seen = std::collections::BTreeSet::new();
        for row in EVENT_REASONS {
            assert!(row.name.chars().all(|letter| letter.is_ascii_alphanumeric()), "{}", row.name);
            assert!(![row.when, row.example, row.action, row.objects].contains(&""), "{}", row.name);
            assert!(row.example.len() <= 1000, "an event's note is at most 1000 long: {}", row.name);
            for object in row.objects.split(", ") {
                assert!(seen.insert((row.name, object)), "{} on {object} twice", row.name);
            }
        }
    }
}
