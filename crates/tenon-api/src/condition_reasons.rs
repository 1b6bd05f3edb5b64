//! Table: every condition Tenon writes, every reason such a condition can have, and what to do about it.
//!
//! A condition can only be set with a row of this table, and `docs/reference/conditions.md` is printed from it: no reason
//! exists that is not explained. Conditions and reasons that Karpenter or its Proxmox provider define keep their names.

use crate::condition::ConditionStatus::{self, False, True, Unknown};
use crate::event_reasons::Origin::{self, Karpenter, Tenon};

/// A condition of one kind of object. Only this file makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct ConditionType {
    object: &'static str,
    name: &'static str,
    is_for_ready: bool,
    meaning: &'static str,
}

impl ConditionType {
    /// The kind of object.
    pub fn object(&self) -> &'static str {
        self.object
    }

    /// Its name. While it is true, this is its reason too.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the object is `Ready` only while this is true.
    pub fn is_for_ready(&self) -> bool {
        self.is_for_ready
    }

    /// What it means that it is true.
    pub fn meaning(&self) -> &'static str {
        self.meaning
    }
}

/// A reason of conditions that are not simply true. Only this file makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct ConditionReason {
    name: &'static str,
    uses: &'static [(&'static str, ConditionStatus)],
    origin: Origin,
    when: &'static str,
    example: &'static str,
    action: &'static str,
}

impl ConditionReason {
    /// The reason, as it stands in the condition.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The conditions it is a reason of, each with the status it then has.
    pub fn uses(&self) -> &'static [(&'static str, ConditionStatus)] {
        self.uses
    }

    /// Who defined it.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// When it is set.
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

macro_rules! condition_types {
    ($($row:ident = $name:literal on $object:literal, for_ready $is_for_ready:literal, $meaning:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "` of a ", $object, ": ", $meaning)]
            pub static $row: ConditionType =
                ConditionType { object: $object, name: $name, is_for_ready: $is_for_ready, meaning: $meaning };
        )*

        /// Every condition, in the order the reference page lists them.
        pub static CONDITION_TYPES: &[&ConditionType] = &[$(&$row),*];
    };
}

macro_rules! condition_reasons {
    ($($row:ident = $name:literal for [$(($type:literal, $status:ident)),*], $origin:ident,
        when $when:literal, example $example:literal, action $action:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $when)]
            pub static $row: ConditionReason = ConditionReason {
                name: $name,
                uses: &[$(($type, $status)),*],
                origin: $origin,
                when: $when,
                example: $example,
                action: $action,
            };
        )*

        /// Every reason, in the order the reference page lists them.
        pub static CONDITION_REASONS: &[&ConditionReason] = &[$(&$row),*];
    };
}

condition_types! {
    READY = "Ready" on "NodeClaim, NodePool, NodeOverlay, ProxmoxNodeClass, ProxmoxUnmanagedTemplate, ProxmoxTemplate", for_ready false, "All conditions that Ready depends on are true.";
    LAUNCHED = "Launched" on "NodeClaim", for_ready true, "The VM was created and started.";
    REGISTERED = "Registered" on "NodeClaim", for_ready true, "The Node joined and was matched with the VM.";
    INITIALIZED = "Initialized" on "NodeClaim", for_ready true, "The Node is Ready, without start-up taints, with all requested resources.";
    ADOPTED = "Adopted" on "NodeClaim", for_ready false, "The VM was created by the Go provider, and Tenon has taken it over. Not set on NodeClaims that Tenon created.";
    CONSOLIDATABLE = "Consolidatable" on "NodeClaim", for_ready false, "No pod was scheduled to or removed from the Node for consolidateAfter of its NodePool.";
    DRIFTED = "Drifted" on "NodeClaim", for_ready false, "The Node is no longer what its NodePool, ProxmoxNodeClass or template says; the reason says which.";
    DISRUPTION_REASON = "DisruptionReason" on "NodeClaim", for_ready false, "The NodeClaim is being disrupted; the reason says why. Removed again if the Node stays after all.";
    REBOOTING = "Rebooting" on "NodeClaim", for_ready false, "The VM is to be rebooted, or was: while True, since when; while False, when that ended. Whoever wants a reboot sets it True with reason RebootRequested.";
    DRAINED = "Drained" on "NodeClaim", for_ready false, "All pods that must leave have left the Node.";
    VOLUMES_DETACHED = "VolumesDetached" on "NodeClaim", for_ready false, "No volume is attached to the Node any more.";
    INSTANCE_TERMINATING = "InstanceTerminating" on "NodeClaim", for_ready false, "The VM is being stopped and destroyed.";
    CONSISTENT_STATE_FOUND = "ConsistentStateFound" on "NodeClaim", for_ready false, "The Node has at least 90 % of every requested resource of its instance type. Checked every 10 minutes.";
    VALIDATION_SUCCEEDED = "ValidationSucceeded" on "NodePool, NodeOverlay", for_ready true, "The spec is valid, and every field that is set is supported. A NodeOverlay: it conflicts with no other, and is applied.";
    NODE_CLASS_READY = "NodeClassReady" on "NodePool", for_ready true, "The ProxmoxNodeClass exists and is Ready.";
    DRIFT_ROLLOUT_HALTED = "DriftRolloutHalted" on "NodePool", for_ready false, "Drifted Nodes of the NodePool are not replaced, because the first replacement did not join. Removed once the NodePool, its ProxmoxNodeClass or the VM template changes.";
    NODE_REGISTRATION_HEALTHY = "NodeRegistrationHealthy" on "NodePool", for_ready false, "Recent Nodes of the NodePool launched and registered.";
    INSTANCE_TEMPLATE_READY = "InstanceTemplateReady" on "ProxmoxNodeClass", for_ready true, "The VM template was found on at least one host that has the storages the class needs.";
    INSTANCE_METADATA_OPTIONS_READY = "InstanceMetadataOptionsReady" on "ProxmoxNodeClass", for_ready true, "First-boot data can be rendered.";
    TEMPLATE_READY = "ProxmoxVirtualMachineTemplateReady" on "ProxmoxUnmanagedTemplate, ProxmoxTemplate", for_ready true, "At least one VM template was found.";
}

condition_reasons! {
    AWAITING_RECONCILIATION = "AwaitingReconciliation" for [("Ready", Unknown), ("Launched", Unknown), ("Registered", Unknown), ("Initialized", Unknown), ("ValidationSucceeded", Unknown), ("NodeClassReady", Unknown), ("InstanceTemplateReady", Unknown), ("InstanceMetadataOptionsReady", Unknown), ("ProxmoxVirtualMachineTemplateReady", Unknown), ("NodeRegistrationHealthy", Unknown)], Karpenter,
        when "The object is new and was not reconciled yet; NodeRegistrationHealthy: no Node was launched since the NodePool or its ProxmoxNodeClass changed.",
        example "object is awaiting reconciliation",
        action "Nothing. If a condition other than NodeRegistrationHealthy stays so, the controller does not run: check its pod and its log.";
    RECONCILING_DEPENDENTS = "ReconcilingDependents" for [("Ready", Unknown)], Karpenter,
        when "A condition that `Ready` depends on is Unknown.",
        example "Registered=Unknown",
        action "See the conditions that the message names.";
    UNHEALTHY_DEPENDENTS = "UnhealthyDependents" for [("Ready", False)], Karpenter,
        when "A condition that `Ready` depends on is False.",
        example "NodeClassReady=False",
        action "See the conditions that the message names.";
    // Launch.
    NOT_PLANNED = "NotPlanned" for [("Launched", Unknown)], Tenon,
        when "No instance type and host were chosen for the NodeClaim yet.",
        example "No instance type and host are chosen for NodeClaim default-x7 yet; its events say why",
        action "Read the events of the NodeClaim (`kubectl describe`): FailedScheduling names what is missing.";
    LAUNCH_FAILED = "LaunchFailed" for [("Launched", Unknown), ("NodeRegistrationHealthy", False)], Karpenter,
        when "A step of the launch failed. It is retried, or the NodeClaim is deleted and its pods are planned again.",
        example "Cannot create a node on host pve1: cannot clone template 9000 on host pve1 to VM 20003: storage local-lvm: No space left on device; free up space on the storage. Its pods are planned again, on other hosts first",
        action "Remove the cause that the message names.";
    CLONE_QUEUED = "CloneQueued" for [("Launched", Unknown)], Tenon,
        when "As many clones as are allowed at once already run on the host or to the storage. The NodeClaim waits for its turn.",
        example "Waiting to clone template 9000: 4 clones to storage ceph already run",
        action "Nothing. If the storage is fast enough for more, raise --max-clones-per-host and --max-clones-per-storage.";
    NAME_TAKEN = "NameTaken" for [("Launched", Unknown), ("NodeRegistrationHealthy", False)], Tenon,
        when "Another VM already has the name of the NodeClaim.",
        example "Cannot launch VM 20003: VM 105 on host pve2 is already named default-x7; rename or remove VM 105, or delete NodeClaim default-x7",
        action "Rename or remove the other VM, or delete the NodeClaim.";
    METADATA_OPTIONS_NOT_FOUND = "MetadataOptionsNotFound" for [("InstanceMetadataOptionsReady", False), ("Launched", Unknown), ("NodeClassReady", False), ("NodeRegistrationHealthy", False)], Karpenter,
        when "A Secret that spec.metadataOptions names does not exist or cannot be read.",
        example "Secret kube-system/worker, which spec.metadataOptions.templatesRef names, does not exist; create it",
        action "Create the Secret, correct the reference, or grant the controller get on Secrets in that namespace. The change is noticed within seconds.";
    METADATA_OPTIONS_INVALID = "MetadataOptionsInvalid" for [("InstanceMetadataOptionsReady", False), ("Launched", Unknown), ("NodeClassReady", False), ("NodeRegistrationHealthy", False)], Tenon,
        when "A template of the Secret that spec.metadataOptions.templatesRef names cannot be rendered, prints a value that does not exist, or renders to text that is not valid YAML. No VM is created.",
        example "Secret kube-system/worker, key user-data, line 12, column 16: there is no value in {{ .Values.machineToken }}; correct it",
        action "Correct the template or the values. Try them with tenon render. The change is noticed within seconds.";
    JOIN_DATA_MISSING = "JoinDataMissing" for [("InstanceMetadataOptionsReady", False), ("NodeClassReady", False), ("NodeRegistrationHealthy", False), ("Launched", Unknown)], Tenon,
        when "The cluster CA or the API server address that a new Node joins with cannot be found. No VM is created.",
        example "Nodes cannot join: the address of the API server is unknown: ConfigMap kube-public/cluster-info does not exist; set --cluster-endpoint",
        action "Follow the message.";
    BOOTSTRAP_BINDINGS_MISSING = "BootstrapBindingsMissing" for [("InstanceMetadataOptionsReady", False), ("NodeClassReady", False), ("NodeRegistrationHealthy", False), ("Launched", Unknown), ("Registered", Unknown)], Tenon,
        when "The group of the bootstrap tokens may not create CertificateSigningRequests, or they are not approved. No VM is created for classes whose first-boot data uses the token.",
        example "Nodes cannot join: bootstrap tokens of group system:bootstrappers:karpenter:proxmox cannot create CertificateSigningRequests; run: kubectl create clusterrolebinding tenon-node-bootstrapper --clusterrole=system:node-bootstrapper --group=system:bootstrappers:karpenter:proxmox",
        action "Run the command of the message, or `kubectl apply -f examples/bootstrap-rbac.yaml`. The change is noticed within seconds.";
    NOT_PROVEN_OURS = "NotProvenOurs" for [("Launched", Unknown), ("InstanceTerminating", False), ("NodeRegistrationHealthy", False)], Tenon,
        when "The VM with the recorded id has no proof that it belongs to this NodeClaim. It is never changed or destroyed.",
        example "VM 20003 on host pve1 does not belong to this NodeClaim: its description does not name this NodeClaim as its owner; the VM is not changed. Delete NodeClaim default-x7",
        action "Delete the NodeClaim. If it is being deleted already and its own VM no longer exists, set annotation tenon.dev/skip-vm-deletion=true on it.";
    LAUNCH_RECORD_UNREADABLE = "LaunchRecordUnreadable" for [("Launched", Unknown)], Tenon,
        when "The annotation tenon.dev/launch of the NodeClaim cannot be read, so nothing is created or deleted for it.",
        example "Annotation tenon.dev/launch of NodeClaim default-x7 is invalid: expected value at line 1 column 1; correct the annotation, or remove the VM yourself and set annotation tenon.dev/skip-vm-deletion=true to delete the NodeClaim without touching any VM",
        action "Restore the annotation, or remove the VM yourself and set annotation tenon.dev/skip-vm-deletion=true.";
    // Registration.
    NODE_NOT_FOUND = "NodeNotFound" for [("Registered", Unknown), ("Adopted", False)], Karpenter,
        when "The VM runs, but its Node has not joined yet. Adopted: without a Node nothing says which machine the VM is.",
        example "The VM runs; Node default-x7 has not joined yet",
        action "Wait for the first boot. After 15 minutes (spec.timeouts.registration of the ProxmoxNodeClass) the NodeClaim is deleted; the VM's console shows cloud-init and kubelet.";
    CERTIFICATE_REQUEST_NOT_FOUND = "CertificateRequestNotFound" for [("Registered", Unknown)], Tenon,
        when "The VM runs for a minute or longer, and its kubelet has not requested a certificate.",
        example "Node default-x7 has not joined 3 minutes after VM 20003 on host pve1 started: its kubelet has not requested a certificate; read cloud-init and kubelet on the VM's console, and check that the VM reaches the API server",
        action "Read the console of the VM (cloud-init, kubelet); check network, API server address and time. With the guest agent, the message shows the last lines of the boot log.";
    CERTIFICATE_REQUEST_PENDING = "CertificateRequestPending" for [("Registered", Unknown)], Tenon,
        when "The kubelet of the VM has requested a certificate, and nobody has approved the request.",
        example "Node default-x7 has not joined: CertificateSigningRequest node-csr-4f2a is not approved; run: kubectl certificate approve node-csr-4f2a",
        action "Follow the message: approve the request, or deny it if it asks for another node name. With `--csr-approver`, Tenon decides, and the message says what it waits for. If requests are never approved, create the bindings in examples/bootstrap-rbac.yaml, and check that kube-controller-manager runs.";
    CERTIFICATE_REQUEST_DENIED = "CertificateRequestDenied" for [("Registered", Unknown)], Tenon,
        when "Somebody denied the certificate request of the kubelet.",
        example "Node default-x7 has not joined: CertificateSigningRequest node-csr-4f2a was denied (NotAllowed: unknown node); find out who denied it, and delete NodeClaim default-x7 to try again",
        action "Find out which approver denied the request, and why. If it was Tenon (`--csr-approver`), the message has cause and next step.";
    CERTIFICATE_REQUEST_FAILED = "CertificateRequestFailed" for [("Registered", Unknown)], Tenon,
        when "The certificate request of the kubelet was approved, but could not be signed, or is not signed yet.",
        example "Node default-x7 has not joined: CertificateSigningRequest node-csr-4f2a was approved, but is not signed; check kube-controller-manager",
        action "Check the log of kube-controller-manager, which signs certificates.";
    NODE_NOT_CREATED = "NodeNotCreated" for [("Registered", Unknown)], Tenon,
        when "The kubelet of the VM received its certificate, but created no Node.",
        example "Node default-x7 has not joined: its kubelet received a certificate (CertificateSigningRequest node-csr-4f2a), but created no Node; read the kubelet's log on VM 20003 on host pve1",
        action "Read the kubelet's log on the VM.";
    NODE_NAME_MISMATCH = "NodeNameMismatch" for [("Registered", Unknown)], Tenon,
        when "The VM joined under another name than that of its NodeClaim.",
        example "VM 20003 on host pve1 joined as Node vm-20003 instead of default-x7; correct the host name or hostname-override in the first-boot data, then delete NodeClaim default-x7 and Node vm-20003",
        action "Correct what sets the host name of the VM. Then delete the NodeClaim and the other Node.";
    GUEST_NOT_RESPONDING = "GuestNotResponding" for [("Registered", Unknown)], Tenon,
        when "The VM runs for two minutes or longer, and its guest agent does not answer.",
        example "Node default-x7 has not joined 5 minutes after VM 20003 on host pve1 started: the guest agent does not answer; look at the VM's console",
        action "Look at the console: the system may hang, or not boot. If the image has no guest agent, set agent to 0 in the template.";
    VM_NOT_RUNNING = "VMNotRunning" for [("Registered", Unknown)], Tenon,
        when "Proxmox shows the VM as running, but QEMU has stopped it: paused, io-error, internal-error and the like.",
        example "VM 20003 on host pve1 does not run (QEMU status io-error), and Node default-x7 has not joined; on host pve1 run: qm status 20003 --verbose. If its storage is full, free space, then run: qm resume 20003",
        action "Look at the status of the VM. With io-error its storage is mostly full.";
    BOOTSTRAP_TOKEN_INVALID = "BootstrapTokenInvalid" for [("Registered", Unknown)], Tenon,
        when "The bootstrap token of the NodeClaim was deleted or has expired before its kubelet used it.",
        example "Node default-x7 has not joined 5 minutes after VM 20003 on host pve1 started: its bootstrap token (Secret kube-system/bootstrap-token-abcdef) was deleted; delete NodeClaim default-x7 to try again",
        action "Find out who deleted the Secret, or check the clocks of the controller and the API server. Then delete the NodeClaim.";
    VM_STOPPED = "VMStopped" for [("Registered", Unknown)], Tenon,
        when "The VM was seen stopped before its Node joined. If it stays so, the NodeClaim is deleted.",
        example "VM 20003 on host pve1 is stopped, and Node default-x7 has not joined",
        action "Read the task log and the console of the VM.";
    VM_NOT_FOUND = "VMNotFound" for [("Registered", Unknown), ("Adopted", False)], Tenon,
        when "The VM was not found before its Node joined; if it stays so, the NodeClaim is deleted. Adopted: the VM that the providerID names does not exist.",
        example "VM 20003 no longer exists, and Node default-x7 has not joined",
        action "Find out who destroyed the VM.";
    NODE_MISMATCH = "NodeMismatch" for [("Registered", Unknown), ("Adopted", False)], Tenon,
        when "A Node has the name of the NodeClaim, but it is another machine (SMBIOS UUID or providerID differ).",
        example "Node default-x7 has system UUID 5f0c…, but VM 20003 has 9ab1…: another machine joined under this name; rename or remove Node default-x7, or delete NodeClaim default-x7",
        action "Find out which machine joined under that name. Remove its Node, or delete the NodeClaim.";
    MULTIPLE_NODES_FOUND = "MultipleNodesFound" for [("Registered", False)], Karpenter,
        when "Two Nodes have the providerID of the NodeClaim.",
        example "Nodes default-x7 and web-1 both have providerID proxmox://lab/20003; delete one of them",
        action "Delete the Node that is not the NodeClaim's VM.";
    REGISTRATION_FAILED = "RegistrationFailed" for [("NodeRegistrationHealthy", False)], Karpenter,
        when "Recent Nodes of the NodePool did not register in time.",
        example "Node default-x7 did not register within 15 min of the start of its VM; read cloud-init and kubelet on the VM's console, and check that the VM can reach the API server (--cluster-endpoint)",
        action "Read the console of a VM (cloud-init, kubelet); check network, API server address and time.";
    // Adoption of VMs that the Go provider created.
    VM_NAME_MISMATCH = "VMNameMismatch" for [("Adopted", False)], Tenon,
        when "The VM that the providerID names has another name than the NodeClaim, so it is not adopted.",
        example "Not adopted: VM 20003 on host pve1 has name \"web\", expected default-x7; rename the VM if it is the Node's",
        action "Rename the VM if it is the Node's. The next look follows within a minute.";
    VM_SERIAL_MISMATCH = "VMSerialMismatch" for [("Adopted", False)], Tenon,
        when "The SMBIOS serial of the VM does not name the NodeClaim and its VM ID: the VM was copied, or created for something else.",
        example "Not adopted: VM 20003 on host pve1 has SMBIOS serial \"\", expected h=default-x7;i=20003: the VM was created for something else; set annotation tenon.dev/skip-vm-deletion=true on the NodeClaim and delete it (its VM stays)",
        action "Find out who created the VM. To replace the Node, drain it, and follow the message.";
    VM_DESCRIPTION_MISMATCH = "VMDescriptionMismatch" for [("Adopted", False)], Tenon,
        when "The description of the VM does not begin as the Go provider writes it.",
        example "Not adopted: the description of VM 20003 on host pve1 begins with \"my notes\", expected \"Karpenter managed instance, class=default\"; restore the first line of the description if the VM is the Node's",
        action "Restore the first line of the description. Notes may follow on lines of their own.";
    VM_UUID_MISMATCH = "VMUUIDMismatch" for [("Adopted", False)], Tenon,
        when "The Node reports another system UUID than the VM has: it runs on another machine.",
        example "Not adopted: VM 20003 on host pve1 has SMBIOS UUID \"9ab1…\", but the Node reports 5f0c…: the Node runs on another machine; set annotation tenon.dev/skip-vm-deletion=true on the NodeClaim and delete it (its VM stays)",
        action "Find out which machine joined under the name of the Node.";
    VM_MOVED = "VMMoved" for [("Adopted", False)], Tenon,
        when "The VM is on another host than the zone label of the NodeClaim says.",
        example "Not adopted: VM 20003 on host pve2 has moved: the zone label of the NodeClaim says \"pve1\"; migrate the VM back to that host, or set annotation tenon.dev/skip-vm-deletion=true on the NodeClaim and delete it (its VM stays)",
        action "Migrate the VM back. Once it is adopted, it may be migrated.";
    VM_LOCKED = "VMLocked" for [("Adopted", False)], Tenon,
        when "Something holds the VM: a backup, a migration, a snapshot.",
        example "Not adopted: VM 20003 on host pve1 is locked (lock: backup); the next try follows when the lock is released",
        action "Nothing, if the lock is released soon. A lock that was left behind is removed with qm unlock.";
    VM_UNREADABLE = "VMUnreadable" for [("Adopted", False)], Tenon,
        when "The API token may not read the VM.",
        example "Not adopted: the API token cannot read VM 20003 on host pve1; grant VM.Audit and VM.Config.Options on the VM",
        action "Grant the privileges of SECURITY.md on the VM or its resource pool.";
    OTHER_OWNER = "OtherOwner" for [("Adopted", False)], Tenon,
        when "The owner line in the description of the VM names another NodeClaim or another cluster, or what has the VM ID is no VM.",
        example "Not adopted: the description of VM 20003 on host pve1 names another owner (line tenon.dev/owner); if the VM was copied or restored from that owner's VM, remove the line",
        action "Find out which cluster the VM belongs to. Never remove the line of a VM that another cluster uses.";
    REGION_NOT_CONFIGURED = "RegionNotConfigured" for [("Adopted", False)], Tenon,
        when "The providerID of the NodeClaim names a region that the cloud config does not have, or is no providerID of Proxmox.",
        example "Not adopted: region west is not in the cloud config, which has lab; add the region",
        action "Add the region to the cloud config, under the name that the Go provider used.";
    // Initialization.
    NODE_NOT_READY = "NodeNotReady" for [("Initialized", Unknown)], Karpenter,
        when "The Node is not Ready.",
        example "Node default-x7 is not Ready",
        action "`kubectl describe node` says why; often the network plug-in is not running yet.";
    STARTUP_TAINTS_EXIST = "StartupTaintsExist" for [("Initialized", Unknown)], Karpenter,
        when "A taint of startupTaints is still on the Node.",
        example "Startup taint node.cilium.io/agent-not-ready:NoExecute is still on Node default-x7",
        action "Check the program that removes the taint.";
    KNOWN_EPHEMERAL_TAINTS_EXIST = "KnownEphemeralTaintsExist" for [("Initialized", Unknown)], Karpenter,
        when "A taint of Kubernetes that should be removed during start-up is still on the Node.",
        example "Taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule is still on Node default-x7: a cloud controller manager must remove it; if there is none, start Tenon with --ccm=none",
        action "Check what removes the taint: for `uninitialized` the cloud controller manager, or Tenon with `--ccm=none`.";
    RESOURCE_NOT_REGISTERED = "ResourceNotRegistered" for [("Initialized", Unknown)], Karpenter,
        when "The Node does not report a resource that the NodeClaim requests.",
        example "Node default-x7 does not report resource nvidia.com/gpu yet",
        action "Check the device plug-in of that resource.";
    CONSISTENCY_CHECK_FAILED = "ConsistencyCheckFailed" for [("ConsistentStateFound", False)], Karpenter,
        when "The Node has less than 90 % of a requested resource of its instance type.",
        example "Node default-x7 has 4 of resource cpu, expected 8 (50 %); check the size and the devices of the VM in Proxmox",
        action "Compare the VM with its instance type. Delete the NodeClaim to replace the Node.";
    // Reboot.
    REBOOT_REQUESTED = "RebootRequested" for [("Rebooting", True)], Karpenter,
        when "The VM is to be rebooted. New pods are kept off the Node, and its pods are evicted.",
        example "rebooting for Ready/NodeStatusUnknown",
        action "Nothing.";
    REBOOT_ISSUED = "RebootIssued" for [("Rebooting", True)], Karpenter,
        when "Proxmox rebooted the VM; its Node is not back yet.",
        example "rebooting for Ready/NodeStatusUnknown",
        action "Nothing. After 20 minutes the NodeClaim is deleted.";
    REBOOT_SUCCEEDED = "RebootSucceeded" for [("Rebooting", False)], Karpenter,
        when "The Node is Ready again, with another boot ID.",
        example "Node default-x7 was rebooted",
        action "Nothing.";
    REBOOT_FAILED = "RebootFailed" for [("Rebooting", False)], Karpenter,
        when "Proxmox did not reboot the VM within 5 minutes, or the Node was not back within 20 minutes, and the NodeClaim is deleted; or the annotation with the grace period is invalid, and nothing was done.",
        example "Cannot reboot Node default-x7: Proxmox did not reboot the VM in time; deleting the NodeClaim",
        action "Nothing, unless the message names an annotation: then correct or remove that.";
    REBOOTING_NODE = "Rebooting" for [("Initialized", Unknown)], Karpenter,
        when "The VM was rebooted; its Node is checked like a new one when it is back.",
        example "Node default-x7 is being rebooted",
        action "Nothing.";
    // Termination.
    HOST_OFFLINE = "HostOffline" for [("InstanceTerminating", True)], Tenon,
        when "The host of the VM is offline. Nothing is done to the VM until the host is back or was removed from the Proxmox cluster.",
        example "Cannot destroy VM 20003 of NodeClaim default-x7: host pve1 is offline; the VM is destroyed when the host is back. If the host is gone for good, remove it from the Proxmox cluster",
        action "Start the host. If it is gone for good, run `pvecm delnode` on another host, and remove its folder in /etc/pve/nodes.";
    DRAINING = "Draining" for [("Drained", Unknown)], Karpenter,
        when "Pods are being evicted from the Node.",
        example "pods are being evicted from Node default-x7",
        action "Nothing. FailedDraining events on the Node name pods that cannot be evicted.";
    AWAITING_VOLUME_DETACHMENT = "AwaitingVolumeDetachment" for [("VolumesDetached", Unknown)], Karpenter,
        when "A volume is still attached to the Node.",
        example "PersistentVolume pvc-81c2 is still attached to Node default-x7",
        action "If it does not end, look at the CSI driver's controller.";
    TERMINATION_GRACE_PERIOD_ELAPSED = "TerminationGracePeriodElapsed" for [("VolumesDetached", False)], Karpenter,
        when "terminationGracePeriod ended before all volumes were detached.",
        example "PersistentVolume pvc-81c2 was still attached to Node default-x7 when terminationGracePeriod ended",
        action "Nothing. Raise terminationGracePeriod if volumes need more time.";
    // Drift.
    NODE_POOL_DRIFTED = "NodePoolDrifted" for [("Drifted", True)], Karpenter,
        when "spec.template of the NodePool changed after the NodeClaim was created.",
        example "spec.template of NodePool default changed after this NodeClaim was created",
        action "Nothing. The Node is replaced as soon as the disruption budgets of its NodePool allow it; add karpenter.sh/do-not-disrupt to keep it.";
    REQUIREMENTS_DRIFTED = "RequirementsDrifted" for [("Drifted", True)], Karpenter,
        when "Labels of the NodeClaim no longer meet the requirements of its NodePool.",
        example "the node does not meet the requirements of NodePool default: label topology.kubernetes.io/zone: required In [pve2], available In [pve1]",
        action "Nothing. The Node is replaced as soon as the disruption budgets of its NodePool allow it; add karpenter.sh/do-not-disrupt to keep it.";
    INSTANCE_TYPE_NOT_FOUND = "InstanceTypeNotFound" for [("Drifted", True)], Karpenter,
        when "The instance type of the NodeClaim is no longer offered in its zone.",
        example "instance type m1.2VCPU-16GB is no longer offered in zone pve1",
        action "Nothing. The Node is replaced as soon as the disruption budgets of its NodePool allow it; add karpenter.sh/do-not-disrupt to keep it.";
    NODE_CLASS_DRIFT = "NodeClassDrift" for [("Drifted", True)], Karpenter,
        when "A field of the ProxmoxNodeClass changed that takes effect only on new VMs.",
        example "ProxmoxNodeClass default changed after this NodeClaim was created",
        action "Nothing. The Node is replaced as soon as the disruption budgets of its NodePool allow it; add karpenter.sh/do-not-disrupt to keep it.";
    IMAGE_DRIFT = "ImageDrift" for [("Drifted", True)], Karpenter,
        when "The VM template on the Node's host has another image.",
        example "the VM was created from image 16, but the template on its host now has image 17",
        action "Nothing. The Node is replaced as soon as the disruption budgets of its NodePool allow it; add karpenter.sh/do-not-disrupt to keep it.";
    // Disruption.
    UNHEALTHY = "Unhealthy" for [("DisruptionReason", True)], Karpenter,
        when "A condition of the Node means that it is broken, and has lasted for too long.",
        example "Node default-x7 is unhealthy",
        action "Nothing. The NodeClaim is deleted as soon as its replacement is ready, if it needs one.";
    EMPTY = "Empty" for [("DisruptionReason", True)], Karpenter,
        when "The Node runs no pods that need it.",
        example "Node default-x7 is empty",
        action "Nothing. The NodeClaim is about to be deleted.";
    UNDERUTILIZED = "Underutilized" for [("DisruptionReason", True)], Karpenter,
        when "The pods of the Node fit on other Nodes, or on a cheaper one.",
        example "Node default-x7 is underutilized",
        action "Nothing. The NodeClaim is deleted as soon as its replacement is ready, if it needs one.";
    DRIFTED_NODE = "Drifted" for [("DisruptionReason", True)], Karpenter,
        when "The Node is no longer what its NodePool, ProxmoxNodeClass or template says.",
        example "Node default-x7 has drifted",
        action "Nothing. The NodeClaim is deleted as soon as its replacement is ready, if it needs one.";
    REPLACEMENT_FAILED = "ReplacementFailed" for [("DriftRolloutHalted", True)], Tenon,
        when "The first NodeClaim that was created to replace a drifted Node of the NodePool was deleted before it was ready, or was not ready in time.",
        example "Replacement NodeClaim default-b2k4x was deleted before it was ready. No more Nodes of NodePool default are replaced because of drift until spec.template of the NodePool, its ProxmoxNodeClass or the VM template changes",
        action "See the events of the NodePool and the log for why the replacement did not join. Correct or revert the NodePool, the ProxmoxNodeClass or the VM template; the roll-out resumes by itself.";
    // NodePools.
    NODE_POOL_VALIDATION_FAILED = "NodePoolValidationFailed" for [("ValidationSucceeded", False)], Karpenter,
        when "A field of the NodePool is invalid.",
        example "spec.template.spec.taints[0].key: invalid label name",
        action "Correct the fields that the message names.";
    FEATURE_GATE_OFF = "FeatureGateOff" for [("ValidationSucceeded", False)], Tenon,
        when "The NodePool has spec.replicas, but the feature gate StaticCapacity is off.",
        example "spec.replicas needs the feature gate StaticCapacity; start the controller with --feature-gates StaticCapacity=true, or create a NodePool without replicas",
        action "Turn the feature gate on, or remove the NodePool.";
    RUNTIME_VALIDATION = "RuntimeValidation" for [("ValidationSucceeded", False)], Karpenter,
        when "A field of the NodeOverlay is invalid. The NodeOverlay is not applied.",
        example "requirement on topology.kubernetes.io/zone: operator In needs at least one value",
        action "Correct the fields that the message names.";
    OVERLAY_CONFLICT = "Conflict" for [("ValidationSucceeded", False)], Karpenter,
        when "Another NodeOverlay of the same weight changes the same price or the same resource. The NodeOverlay is applied to no NodePool.",
        example "conflict with NodeOverlay cheap-night of the same weight 10: both change the price of instance type s1.4VCPU-16GB (pve1, on-demand) in NodePool default; set another spec.weight, or change spec.requirements of one of them",
        action "Set another spec.weight on one of the two NodeOverlays, or change the requirements of one of them.";
    NODE_CLASS_NOT_FOUND = "NodeClassNotFound" for [("NodeClassReady", False)], Karpenter,
        when "The ProxmoxNodeClass of the NodePool does not exist.",
        example "ProxmoxNodeClass default does not exist; create it or correct nodeClassRef",
        action "Create the ProxmoxNodeClass, or correct spec.template.spec.nodeClassRef.";
    NODE_CLASS_TERMINATING = "NodeClassTerminating" for [("NodeClassReady", False)], Karpenter,
        when "The ProxmoxNodeClass of the NodePool is being deleted.",
        example "ProxmoxNodeClass default is being deleted",
        action "Refer to another ProxmoxNodeClass, or create it again once it is deleted.";
    NODE_CLASS_READINESS_UNKNOWN = "NodeClassReadinessUnknown" for [("NodeClassReady", Unknown), ("Launched", Unknown), ("NodeRegistrationHealthy", False)], Karpenter,
        when "Whether the ProxmoxNodeClass is Ready is not known yet.",
        example "ProxmoxNodeClass default is not evaluated yet: region lab: Proxmox API unavailable",
        action "See the conditions of the ProxmoxNodeClass.";
    // ProxmoxNodeClasses and templates.
    TEMPLATES_NOT_FOUND = "TemplatesNotFound" for [("InstanceTemplateReady", False), ("ProxmoxVirtualMachineTemplateReady", False), ("NodeClassReady", False)], Karpenter,
        when "No VM template matches, or none is on a host that has the region and storages the class names. Up to four VMs that come close are named, each with the reason why it is not used.",
        example "no VM template named ubuntu in region lab; create one, or correct spec.templateName and spec.tags; VM 103 (ubuntu) on host pve2 is not a template; run `qm template 103` to convert it",
        action "Follow the message: create the template, correct its name or tags, or add the storage to a host.";
    ADDRESSES_INVALID = "AddressesInvalid" for [("InstanceTemplateReady", False), ("NodeClassReady", False)], Tenon,
        when "A field of spec.addresses of the class cannot be read: an address, a range, or a gateway outside its network.",
        example "spec.addresses.ranges: `10.0.0.10-10.0.0.60` is not an address range: use a network such as 10.0.0.0/24, an address such as 10.0.0.5/24, or a range such as 10.0.0.10-10.0.0.60/24",
        action "Correct the field that the message names.";
    TEMPLATE_VALIDATION = "TemplateValidation" for [("ProxmoxVirtualMachineTemplateReady", False)], Tenon,
        when "The ProxmoxUnmanagedTemplate names neither templateName nor tags, or no VM template can be made from the spec of the ProxmoxTemplate.",
        example "image file name noble.img has no extension that Proxmox imports (.qcow2, .raw or .vmdk); set spec.sourceImage.imageName to a name with the extension of the format of the image",
        action "Follow the message.";
    NODE_TEMPLATE_CLASS_RESOLUTION_ERROR = "NodeTemplateClassResolutionError" for [("ProxmoxVirtualMachineTemplateReady", Unknown), ("ProxmoxVirtualMachineTemplateReady", False)], Karpenter,
        when "Unknown: VM templates of the ProxmoxTemplate are being created, and none is ready yet. False: the ProxmoxTemplate is being deleted, or its annotation tenon.dev/template-builds cannot be read.",
        example "host pve1 downloads the image to storage local (40 %)",
        action "Nothing while templates are being created. If the ProxmoxTemplate is being deleted, the message names what still uses its VM templates.";
    TEMPLATE_BUILD_FAILED = "TemplateBuildFailed" for [("ProxmoxVirtualMachineTemplateReady", False)], Tenon,
        when "No VM template of the ProxmoxTemplate could be created on any host. Tenon tries again, after 30 seconds at first and 15 minutes at most, and at once when the spec changes.",
        example "cannot download https://images.example/debian-13.qcow2 to storage local on host pve1: download failed: exit code 8; the server does not have the file or refuses it; check spec.sourceImage.url",
        action "Follow the message: it names host, storage and what Proxmox said.";
    PROXMOX_ACCESS_DENIED = "ProxmoxAccessDenied" for [("InstanceTemplateReady", False), ("NodeClassReady", False)], Tenon,
        when "Proxmox refuses the API token of every region that the class uses: the token is wrong or expired, or lacks a privilege.",
        example "region lab: cannot list the resources of the cluster: Authentication failed!; check the token and its secret, and whether it has expired",
        action "Correct the token in the cloud config, which is read again within seconds, or grant the privileges of SECURITY.md.";
    REGION_UNREACHABLE = "RegionUnreachable" for [("ProxmoxVirtualMachineTemplateReady", Unknown)], Tenon,
        when "The Proxmox API of a region cannot be reached, so templates there are not known. What was found before stays.",
        example "region lab: cannot list the resources of the cluster: cannot reach any Proxmox endpoint: cannot connect: https://pve1:8006/api2/json: tcp connect error: Connection refused; check the address and the certificate settings in the cloud config, and that pveproxy runs on the host",
        action "Check the Proxmox API and the cloud config.";
}

/// The reason of this name.
pub fn condition_reason(name: &str) -> Option<&'static ConditionReason> {
    CONDITION_REASONS.iter().copied().find(|reason| reason.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::DriftReason;

    #[test]
    fn every_row_says_something_and_belongs_to_a_condition_there_is() {
        for row in CONDITION_REASONS {
            assert!(![row.when, row.example, row.action].contains(&""), "{}", row.name);
            assert!(!row.uses.is_empty(), "{}", row.name);
            for (type_, _) in row.uses {
                let is_known = *type_ == "Ready" || CONDITION_TYPES.iter().any(|known| known.name == *type_);
                assert!(is_known, "{}: there is no condition {type_}", row.name);
            }
            assert_eq!(condition_reason(row.name), Some(*row), "it stands twice");
        }
    }

    #[test]
    fn every_reason_of_drift_has_a_row() {
        use DriftReason::{ImageDrift, InstanceTypeNotFound, NodeClassDrift, NodePoolDrifted, RequirementsDrifted};
        for reason in [NodePoolDrifted, RequirementsDrifted, InstanceTypeNotFound, NodeClassDrift, ImageDrift] {
            assert_eq!(reason.row().uses, [("Drifted", True)]);
        }
    }
}
