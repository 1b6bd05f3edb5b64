//! Are messages in the compact format read as their JSON is, and broken ones refused?

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::kube_objects::WirePod;

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
    let status = [bytes(1, "Running"), bytes(2, condition), bytes(3, ""), bytes(9, "Burstable")].concat();
    [bytes(1, meta.concat()), bytes(2, spec.concat()), bytes(3, status)].concat()
}

fn json_of(message: &[u8]) -> Json {
    serde_json::from_slice(&pod_list_to_json(message).unwrap()).unwrap()
}

#[test]
fn a_list_has_the_fields_that_are_read_as_json_has_them() {
    let list = [bytes(1, [bytes(2, "77"), bytes(3, "next")].concat()), bytes(2, pod()), bytes(2, pod())].concat();
    let json = json_of(&wrapped("PodList", &list));
    let pod = json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "app": "web", "note": "" },
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
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }], "qosClass": "Burstable" },
    });
    assert_eq!(json, json!({ "metadata": { "resourceVersion": "77", "continue": "next" }, "items": [pod, pod] }));
    serde_json::from_value::<WirePod>(pod).unwrap();
}

#[test]
fn a_list_without_pods_is_an_empty_list() {
    let json = json_of(&wrapped("PodList", &bytes(1, bytes(2, "5"))));
    assert_eq!(json, json!({ "metadata": { "resourceVersion": "5" }, "items": [] }));
}

#[test]
fn texts_are_quoted_as_json_wants_it() {
    let meta = [bytes(1, "a\"b\\c\nd\u{e9}"), entry(11, "k\t", "v\"")].concat();
    let json = json_of(&wrapped("PodList", &bytes(2, bytes(1, meta))));
    assert_eq!(json["items"][0]["metadata"], json!({ "name": "a\"b\\c\nd\u{e9}", "labels": { "k\t": "v\"" } }));
}

#[test]
fn what_a_server_refuses_is_readable() {
    let status = [bytes(2, "Failure"), bytes(3, "too old"), bytes(4, "Expired"), number(6, 410)].concat();
    let expected = json!({ "status": "Failure", "message": "too old", "reason": "Expired", "code": 410 });
    assert_eq!(json_of(&wrapped("Status", &status)), expected);
}

#[test]
fn anything_else_is_refused() {
    assert_eq!(pod_list_to_json(b"{}"), Err(ProtobufFault::NotKubernetes));
    assert_eq!(pod_list_to_json(&wrapped("NodeList", &[])), Err(ProtobufFault::OtherKind));
    let name = |name: &[u8]| wrapped("PodList", &bytes(2, bytes(1, bytes(1, name))));
    assert_eq!(pod_list_to_json(&name(&[0xff])), Err(ProtobufFault::NoText(1)));
    assert_eq!(pod_list_to_json(&wrapped("PodList", &[0x0b])), Err(ProtobufFault::UnknownType(1)));
}

#[test]
fn a_message_that_was_cut_off_is_refused_or_whole_in_itself() {
    let whole = wrapped("PodList", &bytes(2, pod()));
    for length in 0..whole.len() {
        // The last two fields say nothing that is read.
        let is_whole = length >= whole.len() - 4 && pod_list_to_json(&whole[..length]).is_ok();
        assert!(is_whole || pod_list_to_json(&whole[..length]).is_err(), "{length}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_nothing_panics(object in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = pod_list_to_json(&wrapped("PodList", &object));
        let _ = pod_list_to_json(&[MAGIC, object.as_slice()].concat());
    }
}
