//! Every recorded reply, read by the client as if it came over the wire.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;
use serde_json::Value;
use tenon_model::{HostName, VmId};
use tenon_pve::{Cause, Client, Endpoint, Error, Properties, RefusalKind, Token, Transport};

/// One exchange with a real Proxmox.
struct Recording {
    id: String,
    method: String,
    path: String,
    status: u16,
    reply: Response<Bytes>,
}

fn recordings() -> Vec<Recording> {
    let lines = include_str!("recordings/exchanges.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).filter_map(|row: Value| read(&row)).collect()
}

/// `None` for rows that only describe something seen.
fn read(row: &Value) -> Option<Recording> {
    let (request, response) = (row["request"].as_object()?, row["response"].as_object()?);
    let status = u16::try_from(response["status"].as_u64()?).ok()?;
    let body = match &response["body"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut reply = Response::builder().status(status).body(Bytes::from(body)).ok()?;
    let phrase = ReasonPhrase::try_from(response["reason"].as_str()?.as_bytes()).ok()?;
    reply.extensions_mut().insert(phrase);
    let text = |key: &str| request[key].as_str().map(str::to_owned);
    Some(Recording { id: row["id"].as_str()?.to_owned(), method: text("method")?, path: text("path")?, status, reply })
}

/// A client whose every request is answered with this reply.
fn client(reply: &Response<Bytes>) -> Client {
    let reply = reply.clone().map(Full::new);
    let service = tower::service_fn(move |_: Request<Full<Bytes>>| {
        let reply = reply.clone();
        async move { Ok::<_, Infallible>(reply) }
    });
    let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
    Client::new(vec![endpoint], Transport::over(service, |_| false), Token::new("a@pve!b", "c").unwrap())
}

/// What the client makes of a recorded reply, if it makes that call at all.
async fn replay(recording: &Recording) -> Option<Result<(), Error>> {
    let client = client(&recording.reply);
    let (host, vmid): (HostName, VmId) = ("pve1".parse().unwrap(), "100".parse().unwrap());
    let path = recording.path.split('?').next()?;
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match (recording.method.as_str(), parts.as_slice()) {
        ("GET", ["version"]) => client.version().await.map(drop),
        ("GET", ["cluster", "resources"]) => client.resources().await.map(drop),
        ("GET", ["cluster", "status"]) => client.is_quorate().await.map(drop),
        ("GET", ["nodes", _, "status"]) => client.host_status(&host).await.map(drop),
        ("GET", ["nodes", _, "storage"]) => client.storages(&host).await.map(drop),
        ("GET", ["nodes", _, "storage", _, "content"]) => client.volumes(&host, "s", "iso").await.map(drop),
        ("GET", ["nodes", _, "qemu", _, "config"]) => client.vm_config(&host, vmid).await.map(drop),
        ("GET", ["nodes", _, "qemu", _, "pending"]) => client.pending_keys(&host, vmid).await.map(drop),
        ("GET", ["nodes", _, "qemu", _, "status", "current"]) => client.vm_status(&host, vmid).await.map(drop),
        ("GET", ["nodes", _, "tasks", upid, "status"]) => {
            // A few rows ask for a task that has no name; the client cannot.
            client.task_progress(&upid.replace("%3A", ":").parse().ok()?).await.map(drop)
        }
        ("PUT", ["nodes", _, "qemu", _, "config"]) => client.configure_vm(&host, vmid, &[]).await,
        ("PUT", ["nodes", _, "qemu", _, "resize"]) => client.resize_disk(&host, vmid, "scsi0", "1G").await.map(drop),
        ("POST", ["nodes", _, "qemu", _, "status", "start"]) => client.start_vm(&host, vmid).await.map(drop),
        ("POST", ["nodes", _, "storage", _, "upload"]) => {
            client.upload_iso(&host, "s", "x.iso", &Bytes::new()).await.map(drop)
        }
        ("DELETE", ["nodes", _, "storage", _, "content", ..]) => {
            client.delete_volume(&host, "s:iso/x.iso").await.map(drop)
        }
        _ => return None,
    })
}

#[tokio::test]
async fn every_recorded_success_is_understood_and_every_refusal_has_its_words() {
    let (mut successes, mut refusals) = (0, 0);
    for recording in recordings() {
        let is_success = recording.status == 200 && recording.reply.body().starts_with(b"{");
        match replay(&recording).await {
            None => {}
            // A delete that was done in time, which answers with nothing: asked for with a parameter we never send.
            Some(Err(_)) if recording.id == "iso-delete-delay" => {}
            Some(outcome) if is_success => {
                successes += 1;
                outcome.unwrap_or_else(|error| panic!("{}: {error}: {:?}", recording.id, error.cause()));
            }
            Some(outcome) => {
                refusals += 1;
                assert!(outcome.is_err(), "{} should have failed", recording.id);
            }
        }
    }
    assert!(successes > 200 && refusals > 130, "{successes} successes, {refusals} refusals");
}

/// Refusals by kind, over all recorded calls: a status or text that changes its meaning changes a number here.
#[tokio::test]
async fn recorded_refusals_have_a_kind() {
    let mut kinds = BTreeMap::<&str, Vec<String>>::new();
    for recording in recordings().into_iter().filter(|recording| recording.status != 200) {
        let host: HostName = "pve1".parse().unwrap();
        let error = client(&recording.reply).host_status(&host).await.unwrap_err();
        let kind = match error.cause() {
            Cause::MaybeDone(_) => "maybe done",
            Cause::NotSent(_) => "not sent",
            Cause::Refused(refusal) => kind_name(&refusal.kind),
        };
        kinds.entry(kind).or_default().push(recording.id);
    }
    let counts: BTreeMap<&str, usize> = kinds.iter().map(|(kind, ids)| (*kind, ids.len())).collect();
    let expected = [
        ("already exists", 14),
        ("bad parameter", 71),
        ("changed", 6),
        ("denied", 103),
        ("locked", 7),
        ("maybe done", 2),
        ("no quorum", 4),
        ("not found", 24),
        ("other", 39),
        ("protected", 2),
        ("root only", 11),
        ("unauthorized", 12),
        ("wrong state", 10),
    ];
    assert_eq!(counts, BTreeMap::from(expected), "other: {:?}", kinds.get("other"));
}

fn kind_name(kind: &RefusalKind) -> &'static str {
    match kind {
        RefusalKind::NotFound => "not found",
        RefusalKind::AlreadyExists => "already exists",
        RefusalKind::Locked(_) => "locked",
        RefusalKind::Changed => "changed",
        RefusalKind::NoSpace => "no space",
        RefusalKind::Denied { .. } => "denied",
        RefusalKind::Unauthorized => "unauthorized",
        RefusalKind::RootOnly(_) => "root only",
        RefusalKind::BadParameter => "bad parameter",
        RefusalKind::NoQuorum => "no quorum",
        RefusalKind::Protected => "protected",
        RefusalKind::WrongState => "wrong state",
        RefusalKind::TaskFailed => "task failed",
        RefusalKind::Other => "other",
    }
}

#[tokio::test]
async fn property_strings_of_recorded_configurations_survive_unchanged() {
    let mut seen = 0;
    for recording in
        recordings().iter().filter(|recording| recording.status == 200 && recording.path.ends_with("/config"))
    {
        let host: HostName = "pve1".parse().unwrap();
        let Ok(config) = client(&recording.reply).vm_config(&host, "100".parse().unwrap()).await else { continue };
        let is_property_string =
            |key: &str| ["net", "scsi", "ide", "smbios", "ipconfig", "virtio"].iter().any(|kind| key.starts_with(kind));
        for (key, text) in
            config.iter().filter(|(key, text)| is_property_string(key) && text.contains('=') && *key != "scsihw")
        {
            seen += 1;
            let properties: Properties = text.parse().unwrap_or_else(|error| panic!("{} {key}: {error}", recording.id));
            assert_eq!(properties.to_string(), text, "{} {key}", recording.id);
        }
    }
    assert!(seen > 5, "{seen}");
}
