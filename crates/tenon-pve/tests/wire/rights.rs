//! Is the table of privileges true: does each request work with exactly what its rows say, and fail without any one of it?

use std::collections::BTreeSet;

use serde_json::Value;
use tenon_pve::pve_rights::{AclPlace, Demand, Flow, PVE_CALLS, PveCall, Without};
use tenon_sim::{ContainerSpec, Estate, EstateConfig, StorageSpec, TemplateSpec, VmSpec};
use tower::ServiceExt as _;

use crate::site::CALLS;

const ADMIN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");
/// A VM of a node, which runs.
const NODE: u32 = 20_001;
const NEW: u32 = 20_002;
/// A VM template that nodes are cloned from.
const SOURCE: u32 = 9000;
/// A VM template that Tenon made, and the one it makes.
const MADE: u32 = 1000;
const NEW_TEMPLATE: u32 = 1001;
const STRANGER: u32 = 300;
const CONTAINER: u32 = 700;
const GIB: u64 = 1 << 30;

/// The access control path of a place.
fn path(place: AclPlace) -> &'static str {
    match place {
        AclPlace::NodePool => "/pool/k8s",
        AclPlace::NodeTemplates => "/vms/9000",
        AclPlace::Disks => "/storage/disks",
        AclPlace::Seeds => "/storage/seeds",
        AclPlace::Bridges => "/sdn/zones/localnetwork",
        AclPlace::Hosts => "/nodes",
        AclPlace::TemplatePool => "/pool/templates",
        AclPlace::Images => "/storage/images",
        AclPlace::PciMappings => "/mapping/pci",
        AclPlace::Guests => "/vms",
        AclPlace::Cluster => "/",
    }
}

/// A place and a privilege there.
type Held = (AclPlace, &'static str);

/// The requests that are made together: rows of one flow whose privileges are needed at once.
struct Request {
    call: &'static PveCall,
    needs: BTreeSet<Held>,
}

/// Each read stands alone, because its rows are about other things; the rows of a write are one request, for each kind of key.
fn requests() -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for (number, call) in PVE_CALLS.iter().enumerate().filter(|(_, call)| call.flow != Flow::Never) {
        // Who logs in has no token yet.
        if call.path == "/access/ticket" {
            continue;
        }
        let same = |other: &PveCall| (other.flow, other.method, other.path) == (call.flow, call.method, call.path);
        let is_further = PVE_CALLS.iter().take(number).any(|other| same(other) && other.keys == call.keys);
        let rows: Vec<&PveCall> = match call.method {
            "GET" => vec![call],
            _ if is_further => continue,
            _ => PVE_CALLS.iter().filter(|o| same(o) && (o.keys == call.keys || o.keys.is_empty())).collect(),
        };
        let mut needs: BTreeSet<Held> = rows.iter().flat_map(|row| row.needs.iter().copied()).collect();
        // Most devices are given to a VM template that is created.
        if call.flow == Flow::PciDevices && call.method == "POST" {
            needs.insert((AclPlace::TemplatePool, "VM.Allocate"));
        }
        requests.push(Request { call, needs });
    }
    requests
}

/// An estate with one thing of each kind, each at a place of its own.
fn estate() -> Estate {
    let storages = [("disks", "images"), ("seeds", "iso"), ("images", "import")];
    let config = EstateConfig {
        storages: storages.map(|(id, content)| StorageSpec::new(id, &[content], 64 * GIB)).into(),
        containers: vec![ContainerSpec::new(CONTAINER, "pve1", "name=eth0,bridge=vmbr0")],
        pools: vec!["k8s".to_owned(), "templates".to_owned()],
        ..EstateConfig::default()
    };
    let estate = Estate::new(config);
    let spec = |vmid| TemplateSpec { vmid, storage: "disks".to_owned(), ..TemplateSpec::default() };
    estate.add_template(&spec(SOURCE)).unwrap();
    estate.add_template(&spec(MADE)).unwrap();
    for vmid in [NODE, STRANGER] {
        estate
            .add_vm(&VmSpec { base: TemplateSpec { cloudinit_drive: true, ..spec(vmid) }, running: vmid == NODE })
            .unwrap();
    }
    estate.put_iso("pve1", "seeds:iso/a.iso", bytes::Bytes::from_static(b"seed")).unwrap();
    estate
}

const FORM: &str = "application/x-www-form-urlencoded";

/// An image that is uploaded.
const UPLOAD: &str = "--b\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--b\r\nContent-Disposition: form-data; \
    name=\"filename\"; filename=\"b.iso\"\r\nContent-Type: application/octet-stream\r\n\r\nseed\r\n--b--\r\n";

/// What a token was answered: the status, and the text.
async fn ask(
    estate: &Estate,
    token: (&str, &str),
    (method, path): (&str, &str),
    params: &[(&str, &str)],
) -> (u16, String) {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
    let (query, body, kind) = match method {
        _ if path.ends_with("/upload") => (String::new(), UPLOAD.to_owned(), "multipart/form-data; boundary=b"),
        "GET" | "DELETE" => (form, String::new(), FORM),
        _ => (String::new(), form, FORM),
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("https://pve.example/api2/json{path}?{query}"))
        .header("authorization", format!("PVEAPIToken={}={}", token.0, token.1))
        .header("content-type", kind)
        .body(axum::body::Body::from(body))
        .unwrap();
    let reply = estate.service().oneshot(request).await.unwrap();
    let status = reply.status().as_u16();
    let bytes = axum::body::to_bytes(reply.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

/// What a token that holds exactly this is answered, on an estate of its own.
async fn answer(request: &Request, held: &BTreeSet<Held>) -> (u16, String) {
    let estate = estate();
    let admin = async |method, path: &str, params: &[(&str, &str)]| {
        let (status, text) = ask(&estate, ADMIN, (method, path), params).await;
        assert_eq!(status, 200, "{method} {path}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()["data"].take()
    };
    for (pool, vm) in [("k8s", NODE), ("templates", MADE)] {
        admin("PUT", "/pools", &[("poolid", pool), ("vms", &vm.to_string())]).await;
    }
    admin("POST", "/access/users", &[("userid", "few@pve")]).await;
    for (number, (place, privilege)) in held.iter().enumerate() {
        let role = format!("Role{number}");
        admin("POST", "/access/roles", &[("roleid", &role), ("privs", privilege)]).await;
        admin("PUT", "/access/acl", &[("path", path(*place)), ("roles", &role), ("users", "few@pve")]).await;
    }
    let token = admin("POST", "/access/users/few@pve/token/few", &[("privsep", "0")]).await;
    let token = ("few@pve!few", token["value"].as_str().unwrap().to_owned());
    let (path, params) = (filled(request), params(request.call));
    let params: Vec<(&str, &str)> = params.iter().map(|(name, value)| (*name, value.as_str())).collect();
    ask(&estate, (token.0, &token.1), (request.call.method, &path), &params).await
}

/// Whose VM the request is about.
fn subject(request: &Request) -> u32 {
    let holds = |place: AclPlace| request.needs.iter().any(|(held, _)| *held == place);
    match request.call.path {
        path if path.contains("/lxc/") => CONTAINER,
        path if path.ends_with("/clone") => SOURCE,
        _ if holds(AclPlace::NodePool) => NODE,
        _ if holds(AclPlace::TemplatePool) => MADE,
        _ if holds(AclPlace::NodeTemplates) => SOURCE,
        _ => STRANGER,
    }
}

/// The path of a request with its variable parts.
fn filled(request: &Request) -> String {
    let holds = |place: AclPlace| request.needs.iter().any(|(held, _)| *held == place);
    let storage = if holds(AclPlace::Images) { "images" } else { "seeds" };
    let volume = if holds(AclPlace::Images) { "images:import%2Fa.qcow2" } else { "seeds:iso%2Fa.iso" };
    let parts = [
        ("{node}", "pve1".to_owned()),
        ("{vmid}", subject(request).to_string()),
        ("{storage}", storage.to_owned()),
        ("{volume}", volume.to_owned()),
        ("{pos}", "0".to_owned()),
        ("{upid}", "UPID:pve1:00000001:00000001:00000001:qmclone:9000:few@pve!few:".to_owned()),
    ];
    parts.iter().fold(request.call.path.to_owned(), |path, (name, value)| path.replace(name, value))
}

/// Parameters that Proxmox takes.
fn params(call: &PveCall) -> Vec<(&'static str, String)> {
    let fixed = |pairs: &[(&'static str, &str)]| pairs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    let mut params: Vec<(&'static str, String)> = match (call.method, call.path.rsplit('/').next().unwrap()) {
        ("POST", "clone") => fixed(&[("newid", &NEW.to_string()), ("pool", "k8s"), ("name", "n")]),
        ("POST", "qemu") => fixed(&[("vmid", &NEW_TEMPLATE.to_string()), ("pool", "templates")]),
        ("PUT", "resize") => fixed(&[("disk", "scsi0"), ("size", "+1G")]),
        ("PUT", "pools") if call.flow == Flow::TemplatePools => {
            fixed(&[("poolid", "templates"), ("vms", &MADE.to_string()), ("delete", "1")])
        }
        ("PUT", "pools") => fixed(&[("poolid", "k8s"), ("vms", &NODE.to_string()), ("delete", "1")]),
        ("POST", "rules") => fixed(&[("type", "group"), ("action", "nodes"), ("enable", "1")]),
        ("GET", "file-read") => fixed(&[("file", "/var/log/cloud-init-output.log")]),
        ("POST", "download-url") => {
            fixed(&[("content", "import"), ("url", "http://127.0.0.1:1/x.qcow2"), ("filename", "x.qcow2")])
        }
        ("GET", "network") => fixed(&[("type", "any_bridge")]),
        ("PUT", "{pos}") => fixed(&[("enable", "1")]),
        _ => Vec::new(),
    };
    params.extend(call.keys.iter().map(|key| value_of(call, key)));
    params
}

/// A value of a configuration key that needs the privileges of its row.
fn value_of(call: &PveCall, key: &'static str) -> (&'static str, String) {
    let (key, value) = match key {
        "numaN" => ("numa0", "cpus=0,memory=512"),
        "netN" => ("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0"),
        "ipconfigN" => ("ipconfig0", "ip=dhcp"),
        "ideN" => ("ide2", "seeds:iso/a.iso,media=cdrom"),
        "serialN" => ("serial0", "socket"),
        "scsiN" => ("scsi0", "disks:0,import-from=images:import/a.qcow2"),
        "efidiskN" => ("efidisk0", "disks:0,efitype=4m"),
        "tpmstateN" => ("tpmstate0", "disks:4,version=v2.0"),
        "hostpciN" => ("hostpci0", "mapping=gpu"),
        "smbios1" => ("smbios1", "uuid=9e01f0b4-0000-4000-8000-000000000001"),
        "nameserver" => ("nameserver", "192.0.2.53"),
        "cpu" => ("cpu", "host"),
        "machine" => ("machine", "q35"),
        "scsihw" => ("scsihw", "virtio-scsi-single"),
        "vga" => ("vga", "serial0"),
        "agent" => ("agent", "1"),
        "bios" => ("bios", "seabios"),
        "boot" => ("boot", "order=scsi0"),
        "ostype" => ("ostype", "l26"),
        "balloon" => ("balloon", "0"),
        "memory" => ("memory", "512"),
        "tags" | "name" | "description" => (key, "a"),
        "cores" | "sockets" | "numa" | "acpi" | "tablet" | "onboot" | "protection" => (key, "1"),
        _ => panic!("{key} of {call:?} has no value here"),
    };
    (key, value.to_owned())
}

/// What a listing shows to whoever may see it.
fn shown(call: &PveCall) -> &'static str {
    match call.needs.first() {
        Some((AclPlace::NodePool, "Pool.Audit")) => "/pool/k8s",
        Some((AclPlace::TemplatePool, "Pool.Audit")) => "/pool/templates",
        Some((AclPlace::NodePool, _)) => "qemu/20001",
        Some((AclPlace::NodeTemplates, _)) => "qemu/9000",
        Some((AclPlace::Disks, _)) => "storage/pve1/disks",
        Some((AclPlace::Seeds, _)) => "storage/pve1/seeds",
        Some((AclPlace::Images, _)) => "storage/pve1/images",
        Some((AclPlace::Hosts, _)) => "maxcpu",
        Some((AclPlace::Bridges, _)) => "vmbr0",
        Some((AclPlace::Guests, _)) => "qemu/300",
        _ => "",
    }
}

/// Whether a request came through, and showed what it is for.
fn works(call: &PveCall, (status, text): &(u16, String)) -> bool {
    *status != 403
        && !text.contains("Permission check failed")
        && (call.without == Without::Refused || text.contains(shown(call)))
}

#[test]
fn every_request_of_the_client_is_in_the_table() {
    for case in CALLS {
        let sample = case.path.replace("**", "x:iso/y").replace('*', "x");
        let is_listed = match case.path.strip_suffix("/agent/*") {
            Some(_) => PVE_CALLS.iter().any(|call| call.path.contains("/agent/get-")),
            None => PVE_CALLS.iter().any(|call| call.is(case.method, &sample)),
        };
        assert!(is_listed, "{} {} of `{}` is not in pve_rights/table.rs", case.method, case.path, case.name);
    }
    let is_made = |call: &PveCall| {
        let matches = |path: &str| call.is(call.method, &path.replace("**", "x:iso/y").replace('*', "x"));
        CALLS.iter().any(|case| case.method == call.method && (matches(case.path) || case.path.ends_with("/agent/*")))
    };
    for call in PVE_CALLS.iter().filter(|call| call.path != "/access/ticket") {
        assert!(is_made(call), "the client has no call for {} {}", call.method, call.path);
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_works_with_exactly_the_privileges_of_its_rows() {
    let requests = requests();
    assert!(requests.len() > 50, "{}", requests.len());
    for request in &requests {
        let said = answer(request, &request.needs).await;
        assert!(works(request.call, &said), "{:?} with {:?}: {said:?}", request.call, request.needs);
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_fails_without_any_one_of_its_privileges() {
    let mut wrong = Vec::new();
    for request in requests() {
        for one in &request.needs {
            let fewer: BTreeSet<Held> = request.needs.iter().copied().filter(|other| other != one).collect();
            let said = answer(&request, &fewer).await;
            let PveCall { flow, method, path, .. } = request.call;
            if works(request.call, &said) {
                wrong.push(format!("{flow:?}: {method} {path} does not need {} on {:?}", one.1, one.0));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_privilege_that_is_asked_for_belongs_to_a_request() {
    for flow in Flow::MADE {
        assert!(flow.calls().next().is_some() && flow.demand() != Demand::Never, "{flow:?}");
        for (place, privileges) in flow.privileges() {
            for privilege in privileges {
                assert!(flow.calls().any(|call| call.needs.contains(&(place, privilege))), "{flow:?} {privilege}");
            }
        }
    }
}
