//! Each row of the table of errors, brought about and compared with what the client makes of it.
//!
//! A row without a case fails, and so does a case without a row.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;
use tenon_pve::Advice::{AskOperator, ChooseAnother, FreeSpace, LookFirst, PlanAgain, SendAgain, Wait};
use tenon_pve::{Advice, Client, Endpoint, Error, Token, TransportError, TransportService, Upid};

use crate::recorded::meaning_of;
use crate::recordings::{Canned, reply};
use Answer::{Broken, Closed, Field, Running, Says, SaysBody, Silent, Task, Withheld};

const TABLE: &str = include_str!("../../../../docs/dev/pve-errors.md");

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Answer {
    /// No connection.
    Closed,
    /// A layer of our own keeps it back.
    Withheld,
    /// The connection breaks.
    Broken,
    /// No answer comes.
    Silent,
    /// The task the call began does not end.
    Running,
    /// A status and a reason phrase, with an empty body.
    Says(u16, &'static str),
    /// The same with a body.
    SaysBody(u16, &'static str, &'static str),
    /// A parameter with Proxmox's words for it.
    Field(&'static str, &'static str),
    /// The exit status of a task.
    Task(&'static str),
}

impl Answer {
    /// As it stands in the table.
    fn told(self) -> String {
        match self {
            Closed => "no connection".to_owned(),
            Withheld => "nothing: it was not asked".to_owned(),
            Broken => "the connection breaks".to_owned(),
            Silent => "nothing".to_owned(),
            Running => "the task runs on".to_owned(),
            Says(status, words) | SaysBody(status, words, _) => format!("`{status} {words}`"),
            Field(name, words) => format!("`400 {name}: {}`", words.split_whitespace().collect::<Vec<_>>().join(" ")),
            Task(words) => format!("task: `{words}`"),
        }
    }

    /// The error a write ends in that is answered so.
    async fn bring_about(self) -> Error {
        let said = |status, words: &str, body: String| Canned::new([Some(reply(status, words, body))]);
        let host = "pve1".parse().unwrap();
        let start = async |client: Client| client.start_vm(&host, "7".repeat(3).parse().unwrap()).await.unwrap_err();
        match self {
            Says(status, words) => start(said(status, words, String::new()).client()).await,
            SaysBody(status, words, body) => start(said(status, words, body.to_owned()).client()).await,
            Field(name, words) => {
                let body = json!({ "data": null, "errors": { name: words } }).to_string();
                start(said(400, "Parameter verification failed.", body).client()).await
            }
            Task(end) => end_of_task(json!({ "status": "stopped", "exitstatus": end })).await,
            Running => end_of_task(json!({ "status": "running" })).await,
            Broken => start(Canned::new([None]).client()).await,
            Closed => start(client(|| Err(TransportError::Connect("refused".into())))).await,
            Withheld => start(client(|| Err(TransportError::Withheld("not the leader".into())))).await,
            Silent => start(client(|| Err(TransportError::TimedOut(30)))).await,
        }
    }
}

async fn end_of_task(status: serde_json::Value) -> Error {
    let upid: Upid = "UPID:pve1:00002874:00091F65:6AF96A3F:qmclone:1001:root@pam!test:".parse().unwrap();
    let canned = Canned::new([Some(reply(200, "OK", json!({ "data": status }).to_string()))]);
    canned.client().await_task(&upid, Duration::from_secs(5)).await.unwrap_err()
}

/// A client whose transport answers so.
fn client(answer: fn() -> Result<Response<Bytes>, TransportError>) -> Client {
    let layer = tower::layer::layer_fn(move |_: TransportService| {
        tower::service_fn(move |_: Request<Bytes>| async move { answer() })
    });
    let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
    let transport = Canned::new([None]).transport().wrapped(&layer);
    Client::new(vec![endpoint], transport, Token::new("a@pve!b", "secret").unwrap())
}

/// Every situation, what Proxmox says in it, what that means, and what to do.
const CASES: &[(&str, Answer, &str, Advice)] = &[
    ("no endpoint takes a connection", Closed, "NotSent", SendAgain),
    ("Tenon's lease expired, or too many requests are in flight", Withheld, "NotSent", SendAgain),
    ("the connection breaks after a write was sent", Broken, "MaybeDone Lost", LookFirst),
    ("no reply within 30 s", Silent, "MaybeDone Lost", LookFirst),
    ("the host is offline", Says(595, "No route to host"), "MaybeDone HostDown", LookFirst),
    ("the reply of the host is lost in the Proxmox proxy", Says(596, "Broken pipe"), "MaybeDone HostDown", LookFirst),
    (
        "a gateway in front of Proxmox gives up",
        SaysBody(504, "Gateway Time-out", "<html>"),
        "MaybeDone HostDown",
        LookFirst,
    ),
    ("a success in an unknown format", SaysBody(200, "OK", "<html>"), "MaybeDone Unreadable", LookFirst),
    ("the worker of a task is killed", Task("unexpected status"), "MaybeDone WorkerDied", LookFirst),
    ("a task runs longer than its time limit", Running, "MaybeDone StillRunning", LookFirst),
    (
        "the VM was deleted or is on another host",
        Says(500, "Configuration file 'nodes/pve1/qemu-server/7.conf' does not exist"),
        "Refused NotFound",
        PlanAgain,
    ),
    (
        "the template of a clone was deleted or is on another host",
        Says(500, "unable to find configuration file for VM 7 on node 'pve1'"),
        "Refused NotFound",
        PlanAgain,
    ),
    (
        "a deleted VM is started",
        Task("Configuration file 'nodes/pve1/qemu-server/7.conf' does not exist"),
        "Refused NotFound",
        PlanAgain,
    ),
    (
        "an ISO image or disk does not exist",
        Says(500, "volume 'local:iso/x.iso' does not exist"),
        "Refused NotFound",
        PlanAgain,
    ),
    (
        "a file that does not exist is read",
        Says(500, "volume_size_info on 'local:iso/x.iso' failed - no format"),
        "Refused NotFound",
        PlanAgain,
    ),
    ("a storage does not exist", Says(500, "storage 's' does not exist"), "Refused NotFound", PlanAgain),
    (
        "a storage is not available on this host",
        Says(500, "storage 's' is not available on node 'pve2'"),
        "Refused NotFound",
        PlanAgain,
    ),
    ("a bridge does not exist on this host", Task("bridge 'vmbr9' does not exist"), "Refused NotFound", PlanAgain),
    (
        "an unknown host name",
        Says(500, "hostname lookup 'x' failed - failed to get address info for: x: Name or service not known"),
        "Refused NotFound",
        PlanAgain,
    ),
    ("an unknown target host", Says(500, "no such cluster node 'pv9'"), "Refused NotFound", PlanAgain),
    (
        "a resource pool does not exist, in a clone or create",
        Says(403, "Permission check failed (pool 'nope' does not exist)"),
        "Refused NotFound",
        PlanAgain,
    ),
    ("a resource pool does not exist", Says(500, "pool 'nope' does not exist"), "Refused NotFound", PlanAgain),
    (
        "a VM that is not in the resource pool is removed from it",
        Says(500, "update pools failed: VM 7 is not a pool member"),
        "Refused NotFound",
        PlanAgain,
    ),
    ("an unknown task, or a task of another host", Field("upid", "no such task"), "Refused NotFound", PlanAgain),
    ("a network interface does not exist", Field("iface", "interface does not exist"), "Refused NotFound", PlanAgain),
    (
        "the VM ID is in use before the clone",
        Says(500, "unable to create VM 7: config file already exists"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "the VM ID is taken by another client during the clone",
        Task("unable to create VM 7: config file already exists"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "the VM ID is in use on another host",
        Task("close (rename) atomic file '/etc/pve/nodes/pv1/qemu-server/7.conf' failed: File exists"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "the VM ID is in use before the create",
        Says(500, "unable to create VM 7 - VM 7 already exists on node 'pve1'"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "the VM ID is in use, asked beforehand",
        Field("vmid", "VM 7 already exists"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "a disk of an earlier VM with this ID still exists",
        Task("clone failed: disk image '/var/lib/vz/images/7/vm-7-cloudinit.qcow2' already exists"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "a file to download exists already",
        Task("refusing to override existing file '/var/lib/vz/import/x.qcow2'"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    (
        "a VM is added to a resource pool that it is already in",
        Says(500, "update pools failed: VM 7 is already a pool member"),
        "Refused AlreadyExists",
        ChooseAnother,
    ),
    ("the VM is locked by an operation", Says(500, "VM is locked (clone)"), "Refused Locked(clone)", Wait),
    (
        "the VM is locked by an operation, found by a task",
        Task("VM is locked (backup)"),
        "Refused Locked(backup)",
        Wait,
    ),
    (
        "another client changes the VM, or its last QEMU process is being cleaned up",
        Says(500, "can't lock file '/var/lock/qemu-server/lock-7.conf' - got timeout"),
        "Refused Locked(file)",
        Wait,
    ),
    (
        "the same, found by a task",
        Task("can't lock file '/var/lock/qemu-server/lock-7.conf' - got timeout"),
        "Refused Locked(file)",
        Wait,
    ),
    (
        "the storage is busy with other clients",
        Task("clone failed: cfs-lock 'storage-s' error: got lock request timeout"),
        "Refused Locked(file)",
        Wait,
    ),
    (
        "the configuration was changed since it was read",
        Says(500, "checksum mismatch (file change by other user?)"),
        "Refused Changed",
        LookFirst,
    ),
    (
        "the firewall rules were changed since they were read",
        Says(500, "detected modified configuration - file changed by other user? Try again."),
        "Refused Changed",
        LookFirst,
    ),
    (
        "a storage of files is full",
        Task("clone failed: write error: No space left on device"),
        "Refused NoSpace",
        FreeSpace,
    ),
    (
        "a volume group is full",
        Task(
            "unable to create VM 7 - lvcreate 'pve/vm-7-disk-0' error: Volume group \"pve\" has insufficient free space (10 extents): 100 required.",
        ),
        "Refused NoSpace",
        FreeSpace,
    ),
    (
        "a ZFS pool is full",
        Task("clone failed: zfs error: cannot create 'tank/vm-7-disk-0': out of space"),
        "Refused NoSpace",
        FreeSpace,
    ),
    (
        "a privilege is missing",
        Says(403, "Permission check failed (/vms/7, VM.Clone)"),
        "Refused Denied(/vms/7, VM.Clone)",
        AskOperator,
    ),
    (
        "one of several privileges is required",
        Says(403, "Permission check failed (/vms/7, VM.Config.Cloudinit|VM.Config.Network)"),
        "Refused Denied(/vms/7, VM.Config.Cloudinit|VM.Config.Network)",
        AskOperator,
    ),
    (
        "a privilege is missing, and Proxmox does not name it",
        Says(403, "Permission check failed"),
        "Refused Denied(?, )",
        AskOperator,
    ),
    (
        "a privilege is missing, found by a task",
        Task("unable to create VM 7 - 403 Permission check failed (/vms/7, VM.Config.Options)"),
        "Refused Denied(/vms/7, VM.Config.Options)",
        AskOperator,
    ),
    (
        "a privilege is missing, inside another error",
        Says(500, "update pools failed: 403 Permission check failed (/vms/7, Permissions.Modify|VM.Allocate)"),
        "Refused Denied(/vms/7, Permissions.Modify|VM.Allocate)",
        AskOperator,
    ),
    (
        "a VM that the token may not see, whether it exists or not",
        Says(403, "Permission check failed (/vms/7, VM.Audit)"),
        "Refused Denied(/vms/7, VM.Audit)",
        AskOperator,
    ),
    ("no credentials", Says(401, "No ticket"), "Refused Unauthorized", AskOperator),
    (
        "the token is wrong, expired or revoked",
        Says(401, "Authentication failed!"),
        "Refused Unauthorized",
        AskOperator,
    ),
    (
        "the password is wrong",
        SaysBody(401, "authentication failure", r#"{"data":null,"message":"authentication failure\n"}"#),
        "Refused Unauthorized",
        AskOperator,
    ),
    (
        "a write with a ticket whose CSRF token is wrong",
        Says(401, "Permission denied - invalid csrf token"),
        "Refused Unauthorized",
        AskOperator,
    ),
    (
        "an option that only root may set",
        Says(500, "only root can set 'affinity' config"),
        "Refused RootOnly(affinity)",
        AskOperator,
    ),
    (
        "a device without a mapping",
        Says(500, "only root can set 'hostpci0' config for non-mapped devices"),
        "Refused RootOnly(hostpci0)",
        AskOperator,
    ),
    (
        "a parameter that only root may use",
        Field("skiplock", "Only root may use this option."),
        "Refused RootOnly(skiplock)",
        AskOperator,
    ),
    (
        "a file of the host, named by its path",
        Says(500, "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651."),
        "Refused RootOnly(pass arbitrary filesystem paths)",
        AskOperator,
    ),
    (
        "a parameter is refused",
        Field("cores", "value must have a minimum value of 1"),
        "Refused BadParameter(cores)",
        AskOperator,
    ),
    (
        "a parameter inside a property string is refused",
        Field("net0", "invalid format - format error\nnet0.queues: value must have a maximum value of 64\n"),
        "Refused BadParameter(net0)",
        AskOperator,
    ),
    (
        "a boot device does not exist",
        Says(500, "invalid bootorder: device 'net9' does not exist'"),
        "Refused BadParameter(boot)",
        AskOperator,
    ),
    (
        "a storage named for a linked clone",
        Says(500, "parameter 'storage' not allowed for linked clones"),
        "Refused BadParameter(storage)",
        AskOperator,
    ),
    ("invalid SSH keys", Says(500, "SSH public key validation error"), "Refused BadParameter(sshkeys)", AskOperator),
    ("no quorum, found at once", Says(500, "cluster not ready - no quorum?"), "Refused NoQuorum", Wait),
    (
        "no quorum, found by a write",
        Says(500, "unable to open file '/etc/pve/nodes/pv1/qemu-server/7.conf.tmp.162' - Permission denied"),
        "Refused NoQuorum",
        Wait,
    ),
    ("no quorum, found by a lock", Says(500, "cfs-lock 'firewall-vm-7' error: no quorum!"), "Refused NoQuorum", Wait),
    (
        "no quorum, found by a task",
        Task("unable to open file '/etc/pve/nodes/pv1/qemu-server/7.conf.tmp.488' - Permission denied"),
        "Refused NoQuorum",
        LookFirst,
    ),
    (
        "the VM has protection set",
        Says(500, "can't remove VM 7 - protection mode enabled"),
        "Refused Protected",
        AskOperator,
    ),
    ("a running VM is destroyed", Says(500, "VM 7 is running - destroy failed"), "Refused WrongState", PlanAgain),
    ("a running VM is started", Task("VM 7 already running"), "Refused WrongState", PlanAgain),
    ("a stopped VM is reset", Says(500, "VM 7 not running"), "Refused WrongState", PlanAgain),
    ("the guest agent does not answer", Says(500, "QEMU guest agent is not running"), "Refused WrongState", PlanAgain),
    ("a template is started", Task("you can't start a vm if it's a template"), "Refused WrongState", PlanAgain),
    (
        "a template is converted to a template",
        Says(500, "you can't convert a template to a template"),
        "Refused WrongState",
        PlanAgain,
    ),
    (
        "a template with linked clones is destroyed",
        Task("base volume 'local:7/base-7-disk-0.qcow2' is still in use by linked cloned"),
        "Refused WrongState",
        PlanAgain,
    ),
    (
        "a resource pool that is not empty is deleted",
        Says(500, "delete pool failed: pool 'p1' is not empty (contains pool 'p1/sub')"),
        "Refused WrongState",
        PlanAgain,
    ),
    ("QEMU does not start", Task("start failed: QEMU exited with code 1"), "Refused TaskFailed", LookFirst),
    (
        "a guest does not react to a shutdown",
        Task("VM quit/powerdown failed - got timeout"),
        "Refused TaskFailed",
        LookFirst,
    ),
    ("a disk is shrunk", Task("shrinking disks is not supported"), "Refused TaskFailed", LookFirst),
    (
        "more processors than the host has",
        Task("MAX 2 vcpus allowed per VM on this node"),
        "Refused TaskFailed",
        LookFirst,
    ),
    ("a download from a wrong URL", Task("download failed: exit code 8"), "Refused TaskFailed", LookFirst),
    (
        "a download with a wrong checksum",
        Task("checksum mismatch: got 'a' != expect 'b'"),
        "Refused TaskFailed",
        LookFirst,
    ),
    (
        "a clone that was stopped",
        Task("clone failed: copy failed: command '/usr/bin/qemu-img convert' failed: interrupted by signal"),
        "Refused TaskFailed",
        LookFirst,
    ),
    ("an unknown API path or method", Says(501, "Method 'GET /x' not implemented"), "Refused Other", LookFirst),
    (
        "a linked clone that the storage does not support",
        Says(500, "Linked clone feature is not supported for 'local:7/vm-7-disk-0.qcow2' (scsi0)"),
        "Refused NoLinkedClones",
        PlanAgain,
    ),
    ("a request that is too large", Says(501, "for data too large"), "Refused Other", LookFirst),
];

/// Rows of the table by their situation: what stands under the other headings.
pub(crate) fn rows() -> BTreeMap<String, Vec<String>> {
    let rows = TABLE.lines().skip_while(|line| !line.starts_with("|---")).skip(1).filter(|line| line.starts_with("| "));
    let cells = |row: &str| -> Vec<String> {
        let row = row.replace("\\|", "\u{1}");
        row.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
    };
    let mut table = BTreeMap::new();
    for mut row in rows.map(cells) {
        assert_eq!(row.len(), 5, "{row:?}");
        let situation = row.remove(0);
        assert!(row.iter().all(|cell| !cell.is_empty()), "{situation}: something is left out");
        assert!(table.insert(situation.clone(), row).is_none(), "{situation} is there twice");
    }
    table
}

#[tokio::test(start_paused = true)]
async fn every_row_of_the_table_is_true_and_every_case_has_a_row() {
    let mut rows = rows();
    for (situation, answer, meaning, advice) in CASES {
        let row = rows.remove(*situation).unwrap_or_else(|| panic!("there is no row for: {situation}"));
        let error = answer.bring_about().await;
        assert_eq!(
            (meaning_of(error.cause()).as_str(), error.advice()),
            (*meaning, *advice),
            "{situation}: {}",
            error.full_message()
        );
        assert_eq!(row[..3], [answer.told(), format!("`{meaning}`"), format!("`{advice:?}`")], "{situation}");
    }
    assert!(rows.is_empty(), "there is no case for: {:?}", rows.keys());
}
