//! Are messages in the compact format read as their JSON is, and broken ones refused?

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::kube_objects::Pod;

/// A field with a number.
fn number(field: u8, value: u64) -> Vec<u8> {
    [vec![field << 3], varint(value)].concat()
}

/// A field with a text or a message.
fn bytes(field: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [varint(u64::from(field) << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn entry(field: u32, key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    bytes(field, [bytes(1, key), bytes(2, value)].concat())
}

fn wrapped(kind: &str, object: &[u8]) -> Vec<u8> {
    let types = [bytes(1, "v1"), bytes(2, kind)].concat();
    [MAGIC.to_vec(), bytes(1, types), bytes(2, object), bytes(3, ""), bytes(4, "")].concat()
}

fn pod() -> Vec<u8> {
    let owner = [bytes(1, "ReplicaSet"), bytes(3, "web"), bytes(4, "u-2"), bytes(5, "apps/v1"), number(6, 1)].concat();
    let created = [number(1, 1_767_225_600), number(2, 5)].concat();
    let meta = [
        bytes(1, "web-1"),
        bytes(2, "web-"),
        bytes(3, "shop"),
        bytes(4, ""),
        bytes(5, "u-1"),
        number(7, 0),
        bytes(8, created),
        entry(11, "app", "web"),
        entry(11, "note", ""),
        entry(12, "karpenter.sh/do-not-disrupt", "true"),
        entry(12, "other", "x"),
        bytes(13, owner),
        bytes(17, "who set which field"),
    ];
    let amounts = |field| [entry(field, "cpu", bytes(1, "1")), entry(field, "memory", bytes(1, "1Gi"))].concat();
    let ports = [bytes(1, "http"), number(2, 0), number(3, 80), bytes(4, "TCP"), bytes(5, "")].concat();
    let container =
        [bytes(1, "app"), bytes(2, "image"), bytes(6, ports), bytes(8, amounts(2)), bytes(7, "env")].concat();
    let claim = [bytes(1, "data"), bytes(2, bytes(10, [bytes(1, "data-0"), number(2, 0)].concat()))].concat();
    let files = [bytes(1, "files"), bytes(2, bytes(19, "config"))].concat();
    let spec = [
        bytes(1, claim),
        bytes(1, files),
        bytes(2, container),
        number(4, 0),
        bytes(10, "n1"),
        number(11, 0),
        // Larger field numbers take two bytes; negative numbers ten.
        [varint(25 << 3), varint((-5_i64).cast_unsigned())].concat(),
    ];
    let condition =
        [bytes(1, "Ready"), bytes(2, "True"), bytes(4, number(1, 1)), bytes(5, ""), bytes(6, "\"quoted\"")].concat();
    let status = [
        bytes(1, "Running"),
        bytes(2, condition),
        bytes(3, ""),
        bytes(7, number(1, 1_767_225_607)),
        bytes(9, "Burstable"),
    ];
    [bytes(1, meta.concat()), bytes(2, spec.concat()), bytes(3, status.concat())].concat()
}

/// The same as JSON.
fn pod_json() -> Json {
    json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "app": "web", "note": "" }, "annotations": { "karpenter.sh/do-not-disrupt": "true", "other": "x" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2", "controller": true }],
        },
        "spec": {
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data-0" } }, { "name": "files" }],
            "containers": [{
                "name": "app", "ports": [{ "name": "http", "containerPort": 80, "protocol": "TCP" }],
                "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
            }],
            "terminationGracePeriodSeconds": 0, "nodeName": "n1", "priority": -5,
        },
        "status": {
            "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }], "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:07Z",
        },
    })
}

fn list(message: &[u8]) -> Result<PodList, ProtobufFault> {
    PodReader::default().list(message)
}

fn page(message: &[u8]) -> PodPage {
    let PodList::Page(page) = list(message).unwrap() else { panic!("a refusal") };
    page
}

fn event(kind: &str, about: &str, object: &[u8]) -> Vec<u8> {
    let message = [bytes(1, kind), bytes(2, bytes(1, wrapped(about, object)))].concat();
    [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
}

#[test]
fn a_pod_says_what_it_says_in_json() {
    let pods = [bytes(1, [bytes(2, "77"), bytes(3, "next")].concat()), bytes(2, pod()), bytes(2, pod())].concat();
    let read = page(&wrapped("PodList", &pods));
    let expected: Pod = serde_json::from_value(pod_json()).unwrap();
    assert_eq!((read.version.as_str(), read.next.as_str()), ("77", "next"));
    assert_eq!(read.pods, [expected.clone(), expected]);
    assert_eq!(read.pods[0].annotations().len(), 1, "most annotations are not asked for");
}

#[test]
fn what_pods_have_in_common_is_in_one_place() {
    let other = [bytes(1, [bytes(1, "web-2"), bytes(3, "shop"), bytes(5, "u-3")].concat()), pod()].concat();
    let read = page(&wrapped("PodList", &[bytes(2, pod()), bytes(2, other)].concat()));
    let places = |pod: &Pod| {
        let part = |part: Option<usize>| part.unwrap();
        [
            part(pod.spec.as_ref().map(|spec| std::sync::Arc::as_ptr(spec).addr())),
            part(pod.status.as_ref().map(|status| std::sync::Arc::as_ptr(status).addr())),
            std::sync::Arc::as_ptr(&pod.metadata.labels).addr(),
        ]
    };
    assert_eq!(places(&read.pods[0]), places(&read.pods[1]));
}

#[test]
fn a_list_without_pods_is_an_empty_list() {
    let read = page(&wrapped("PodList", &bytes(1, bytes(2, "5"))));
    assert_eq!(read, PodPage { version: "5".to_owned(), ..PodPage::default() });
}

#[test]
fn texts_are_quoted_as_json_wants_it() {
    let meta = [bytes(1, "a\"b\\c\nd\u{e9}"), entry(11, "k\t", "v\"")].concat();
    let read = page(&wrapped("PodList", &bytes(2, bytes(1, meta))));
    assert_eq!(read.pods[0].name(), "a\"b\\c\nd\u{e9}");
    assert_eq!(read.pods[0].labels()["k\t"], "v\"");
}

#[test]
fn what_a_server_refuses_is_readable() {
    let status = [bytes(2, "Failure"), bytes(3, "too old"), bytes(4, "Expired"), number(6, 410)].concat();
    let expected = json!({ "status": "Failure", "message": "too old", "reason": "Expired", "code": 410 });
    let PodList::Refusal(json) = list(&wrapped("Status", &status)).unwrap() else { panic!("a page") };
    assert_eq!(serde_json::from_slice::<Json>(&json).unwrap(), expected);
    let mut events = PodEvents::default();
    events.receive(&event("ERROR", "Status", &status));
    assert_eq!(events.next(&mut PodReader::default()), Ok(Some(PodEvent::Refusal(json))));
}

#[test]
fn pods_are_told_one_by_one_until_all_are_told() {
    let end = bytes(1, [bytes(6, "9"), entry(12, "k8s.io/initial-events-end", "true")].concat());
    let sent = [
        event("ADDED", "Pod", &pod()),
        event("BOOKMARK", "Pod", &bytes(1, bytes(6, "8"))),
        event("BOOKMARK", "Pod", &end),
    ];
    let told: Vec<PodEvent> = {
        let (mut events, mut reader, mut told) = (PodEvents::default(), PodReader::default(), Vec::new());
        // They come in pieces of any size.
        for piece in sent.concat().chunks(7) {
            events.receive(piece);
            while let Some(event) = events.next(&mut reader).unwrap() {
                told.push(event);
            }
        }
        told
    };
    let expected = Box::new(serde_json::from_value(pod_json()).unwrap());
    assert_eq!(told, [PodEvent::Pod(expected), PodEvent::Bookmark, PodEvent::AllTold { version: "9".to_owned() }]);
}

#[test]
fn anything_else_is_refused() {
    assert_eq!(list(b"{}"), Err(ProtobufFault::NotKubernetes));
    assert_eq!(list(&wrapped("NodeList", &[])), Err(ProtobufFault::OtherKind));
    let name = |name: &[u8]| wrapped("PodList", &bytes(2, bytes(1, bytes(1, name))));
    assert_eq!(list(&name(&[0xff])), Err(ProtobufFault::NoText(1)));
    assert_eq!(list(&wrapped("PodList", &[0x0b])), Err(ProtobufFault::UnknownType(1)));
    let far = wrapped("PodList", &bytes(2, bytes(1, bytes(8, number(1, u64::MAX >> 1)))));
    assert_eq!(list(&far), Err(ProtobufFault::NoTime(8)));
    for (sent, fault) in [
        (event("DELETED", "Pod", &pod()), ProtobufFault::OtherKind),
        (event("ADDED", "Node", &pod()), ProtobufFault::OtherKind),
        (vec![0xff; 4], ProtobufFault::TooLong(0xffff_ffff)),
    ] {
        let mut events = PodEvents::default();
        events.receive(&sent);
        assert_eq!(events.next(&mut PodReader::default()), Err(fault));
    }
}

#[test]
fn a_message_that_was_cut_off_is_refused_or_whole_in_itself() {
    let whole = wrapped("PodList", &bytes(2, pod()));
    for length in 0..whole.len() {
        // The last two fields say nothing that is read.
        let is_whole = length >= whole.len() - 4 && list(&whole[..length]).is_ok();
        assert!(is_whole || list(&whole[..length]).is_err(), "{length}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_nothing_panics(object in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = list(&wrapped("PodList", &object));
        let _ = list(&wrapped("PodList", &bytes(2, bytes(2, &object))));
        let _ = list(&[MAGIC, object.as_slice()].concat());
        let mut events = PodEvents::default();
        events.receive(&object);
        let _ = events.next(&mut PodReader::default());
    }
}
