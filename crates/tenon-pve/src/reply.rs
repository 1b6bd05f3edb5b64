//! Reads replies: the `data` of a success, the words of a refusal.
//!
//! Proxmox mixes numbers and strings for the same field, says 0 and 1 for booleans, and leaves out what is not set. The
//! readers here take all of it, so that no topic has to.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Response;
use hyper::ext::ReasonPhrase;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::error::{Cause, Doubtful};
use crate::refusal::Refusal;

#[derive(Deserialize)]
struct Success {
    // Not `#[serde(default)]`: an object without `data` is no answer of Proxmox.
    data: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: Option<String>,
    errors: BTreeMap<String, Value>,
}

/// How much of a reply that was not understood is told: enough to see what it is, not enough to fill a log.
const TOLD_OF_UNREADABLE: usize = 200;

/// The `data` of a reply, or what is known instead. Takes any reply whatever without a panic.
pub fn read(reply: &Response<Bytes>) -> Result<Value, Cause> {
    let status = reply.status().as_u16();
    if (200..300).contains(&status) {
        let success: Success = serde_json::from_slice(reply.body()).map_err(|error| unreadable(&error.to_string()))?;
        return Ok(success.data);
    }
    let words = reason(reply);
    // Proxmox's own proxy could not reach the host (595 to 599), or one in front of Proxmox could not reach it; what
    // became of the request there, nobody knows.
    if matches!(status, 502..=504 | 595..=599) {
        return Err(Cause::MaybeDone(Doubtful::HostDown { status, words }));
    }
    let failure: Failure = serde_json::from_slice(reply.body()).unwrap_or_default();
    let words = if words.is_empty() { failure.message.unwrap_or_default() } else { words };
    let fields = failure.errors.into_iter().map(|(name, text)| (name, plain(&text))).collect();
    Err(Cause::Refused(Refusal::new(status, &words, fields)))
}

/// Reads `data` into a type of ours.
pub(crate) fn parse<T: DeserializeOwned>(data: Value) -> Result<T, Cause> {
    T::deserialize(data).map_err(|error| unreadable(&error.to_string()))
}

pub(crate) fn unreadable(what: &str) -> Cause {
    let told: String = what.chars().take(TOLD_OF_UNREADABLE).collect();
    let dots = if told.len() < what.len() { "…" } else { "" };
    Cause::MaybeDone(Doubtful::Unreadable(format!("{told}{dots}")))
}

/// Proxmox puts the error text into the reason phrase, where it survives replies without a body.
fn reason(reply: &Response<Bytes>) -> String {
    let phrase = reply.extensions().get::<ReasonPhrase>().map(ReasonPhrase::as_bytes);
    let standard = reply.status().canonical_reason().unwrap_or_default().as_bytes();
    String::from_utf8_lossy(phrase.unwrap_or(standard)).trim().to_owned()
}

/// The text of a value that is a string, number or boolean on the wire.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    }
}

/// A whole number that may come as a string or as a float, such as `"1024"` or `1.0`.
pub(crate) fn whole<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(input)?;
    let text = plain(&value);
    let from_float =
        || text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.fract() == 0.0 && *number < 1e18);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    let number = text.parse::<u64>().ok().or_else(|| from_float().map(|number| number as u64));
    number.ok_or_else(|| D::Error::custom(format!("`{text}` is not a whole number")))
}

/// The same, where the field may be missing or null.
pub(crate) fn whole_or_none<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    match Option::<Value>::deserialize(input)? {
        None => Ok(None),
        Some(value) => whole(value).map(Some).map_err(D::Error::custom),
    }
}

/// An amount, of which a fraction or a sign is of no use to us: `1.5` cores of a container count as two, `-1` as none.
pub(crate) fn amount<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let text = plain(&Value::deserialize(input)?);
    let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates, which is meant")]
    let amount = text.parse::<u64>().ok().or_else(|| number().map(|number| number.ceil() as u64));
    amount.ok_or_else(|| D::Error::custom(format!("`{text}` is not an amount")))
}

/// The same, where the field may be missing, null or empty.
pub(crate) fn amount_or_none<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    match Option::<Value>::deserialize(input)? {
        None => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(value) => amount(value).map(Some).map_err(D::Error::custom),
    }
}

/// A share from 0 to 1, such as the load of a processor. What is none is not worth refusing a listing for.
pub(crate) fn share_or_none<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    let value = Option::<Value>::deserialize(input)?;
    let share = value.and_then(|value| plain(&value).parse::<f64>().ok()).filter(|share| share.is_finite());
    Ok(share.map(|share| share.clamp(0.0, 1.0)))
}

/// 0, 1, their strings, a real boolean or its word; nothing is no.
pub(crate) fn flag<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(input)?;
    let text = if value.is_null() { String::new() } else { plain(&value) };
    is_true(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not 0 or 1")))
}

/// A boolean as Proxmox writes and takes it, also inside property strings.
pub(crate) fn is_true(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" | "" => Some(false),
        _ => None,
    }
}

/// A text that may come as a number.
pub(crate) fn text_or_none<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Value>::deserialize(input)?.map(|value| plain(&value)))
}

/// A VM id on the wire: a number, or its text.
pub(crate) fn vm_id<'de, D: Deserializer<'de>>(input: D) -> Result<VmId, D::Error> {
    let number = u32::try_from(whole(input)?).unwrap_or(u32::MAX);
    VmId::try_from(number).map_err(D::Error::custom)
}

/// A host name on the wire.
pub(crate) fn host_name<'de, D: Deserializer<'de>>(input: D) -> Result<HostName, D::Error> {
    String::deserialize(input)?.parse().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::RefusalKind;

    fn reply(status: u16, phrase: &'static str, body: &'static str) -> Response<Bytes> {
        let mut reply = Response::builder().status(status).body(Bytes::from_static(body.as_bytes())).unwrap();
        reply.extensions_mut().insert(ReasonPhrase::from_static(phrase.as_bytes()));
        reply
    }

    fn refusal(status: u16, phrase: &'static str, body: &'static str) -> Refusal {
        match read(&reply(status, phrase, body)) {
            Err(Cause::Refused(refusal)) => refusal,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn data_is_what_stands_under_data() {
        assert_eq!(read(&reply(200, "OK", r#"{"data":null}"#)).unwrap(), Value::Null);
        assert_eq!(read(&reply(200, "OK", r#"{"data":"100"}"#)).unwrap(), "100");
        assert!(matches!(read(&reply(200, "OK", "{}")), Err(Cause::MaybeDone(Doubtful::Unreadable(_)))));
        assert!(matches!(read(&reply(200, "OK", "<html>")), Err(Cause::MaybeDone(Doubtful::Unreadable(_)))));
    }

    #[test]
    fn refusals_have_the_kind_their_words_mean() {
        let cases = [
            (500, "Configuration file 'nodes/pve1/qemu-server/7.conf' does not exist", RefusalKind::NotFound),
            (500, "VM is locked (clone)", RefusalKind::Locked(Some("clone".to_owned()))),
            (500, "can't lock file '/var/lock/qemu-server/lock-7.conf' - got timeout", RefusalKind::Locked(None)),
            (500, "unable to create VM 7: config file already exists", RefusalKind::AlreadyExists),
            (500, "checksum mismatch (file change by other user?)", RefusalKind::Changed),
            (500, "only root can set 'affinity' config", RefusalKind::RootOnly("affinity".to_owned())),
            (500, "VM 7 is running - destroy failed", RefusalKind::WrongState),
            (500, "cfs-lock 'firewall-vm-7' error: no quorum!", RefusalKind::NoQuorum),
            (500, "hostname lookup 'x' failed - failed to get address info for: x", RefusalKind::NotFound),
            (401, "Authentication failed!", RefusalKind::Unauthorized),
            (403, "Permission check failed", RefusalKind::Denied { path: None, privileges: vec![] }),
            (501, "Method 'GET /x' not implemented", RefusalKind::Other),
        ];
        for (status, words, kind) in cases {
            assert_eq!(refusal(status, words, "").kind, kind, "{words}");
        }
        let denied = refusal(403, "Permission check failed (/vms/7, VM.Clone|VM.Audit)", "").kind;
        let privileges = vec!["VM.Clone".to_owned(), "VM.Audit".to_owned()];
        assert_eq!(denied, RefusalKind::Denied { path: Some("/vms/7".to_owned()), privileges });
    }

    #[test]
    fn every_refused_parameter_is_named() {
        let body = r#"{"data":null,"message":"Parameter verification failed.\n","errors":{"newid":"property is missing and it is not optional"}}"#;
        let refusal = refusal(400, "Parameter verification failed.", body);
        assert_eq!(refusal.kind, RefusalKind::BadParameter("newid".to_owned()));
        assert_eq!(
            refusal.to_string(),
            "Parameter verification failed. newid: property is missing and it is not optional"
        );
    }

    #[test]
    fn a_host_out_of_reach_leaves_the_outcome_open() {
        assert!(matches!(read(&reply(595, "No route to host", "")), Err(Cause::MaybeDone(Doubtful::HostDown { .. }))));
    }

    #[test]
    fn a_gateway_in_front_of_proxmox_that_lost_the_answer_leaves_it_open_too() {
        for (status, phrase) in [(502, "Bad Gateway"), (503, "Service Unavailable"), (504, "Gateway Time-out")] {
            assert!(matches!(read(&reply(status, phrase, "<html>")), Err(Cause::MaybeDone(_))), "{status}");
        }
    }

    #[test]
    fn numbers_come_as_strings_and_floats_too() {
        #[derive(Debug, Deserialize)]
        struct Row {
            #[serde(deserialize_with = "whole")]
            n: u64,
            #[serde(default, deserialize_with = "flag")]
            on: bool,
        }
        let row = |text: &str| serde_json::from_str::<Row>(text);
        assert_eq!(row(r#"{"n":"1024","on":1}"#).map(|row| (row.n, row.on)).unwrap(), (1024, true));
        assert_eq!(row(r#"{"n":2.0}"#).map(|row| (row.n, row.on)).unwrap(), (2, false));
        for bad in [r#"{"n":"x"}"#, r#"{"n":-1}"#, r#"{"n":1.5}"#, r#"{"n":1,"on":"maybe"}"#] {
            assert!(row(bad).is_err(), "{bad}");
        }
    }
}
