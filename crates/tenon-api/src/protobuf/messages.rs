//! Lists of pods, and what is told of them one after the other.

use super::fields::{Fields, Value};
use super::pods::text;
use super::schema::STATUS;
use super::to_json::Writer;
use super::{MAGIC, PodReader, ProtobufFault};
use crate::kube_objects::Pod;

/// An API server takes no object of more than a few megabytes.
const MOST_BYTES: usize = 64 << 20;

/// What a server answers to who asks for a list.
#[derive(Debug, Clone, PartialEq)]
pub enum PodList {
    /// A part of the list.
    Page(PodPage),
    /// Why there is none, as JSON.
    Refusal(Vec<u8>),
}

/// A part of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodPage {
    /// The version of the list.
    pub version: String,
    /// What to ask for the next part with; empty at the end.
    pub next: String,
    /// The pods.
    pub pods: Vec<Pod>,
}

/// What a server tells about pods.
#[derive(Debug, Clone, PartialEq)]
pub enum PodEvent {
    /// A pod is there.
    Pod(Box<Pod>),
    /// All pods of this version were told.
    AllTold {
        /// The version of the list.
        version: String,
    },
    /// Nothing of interest.
    Bookmark,
    /// Why no more is told, as JSON.
    Refusal(Vec<u8>),
}

impl PodReader {
    /// A list of pods.
    pub fn list(&mut self, message: &[u8]) -> Result<PodList, ProtobufFault> {
        let object = match unwrapped(message)? {
            (b"PodList", object) => object,
            (b"Status", object) => return refusal(object).map(PodList::Refusal),
            _ => return Err(ProtobufFault::OtherKind),
        };
        let (mut page, mut fields) = (PodPage::default(), Fields(object));
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => {
                    let [version, next] = Fields(value.bytes()).pick([2, 3])?;
                    page.version = text(2, version)?.unwrap_or_default().to_owned();
                    page.next = text(3, next)?.unwrap_or_default().to_owned();
                }
                2 => page.pods.push(self.pod(value.bytes())?),
                _ => {}
            }
        }
        Ok(PodList::Page(page))
    }

    /// An event of a list that is told pod by pod.
    fn event(&mut self, message: &[u8]) -> Result<PodEvent, ProtobufFault> {
        let [kind, object] = Fields(message).pick([1, 2])?.map(|part| part.map_or(&[][..], Value::bytes));
        let (about, object) = unwrapped(bytes_of(object, 1)?)?;
        match (kind, about) {
            (b"ADDED" | b"MODIFIED", b"Pod") => Ok(PodEvent::Pod(Box::new(self.pod(object)?))),
            (b"BOOKMARK", b"Pod") => bookmark(bytes_of(object, 1)?),
            (b"ERROR", b"Status") => refusal(object).map(PodEvent::Refusal),
            _ => Err(ProtobufFault::OtherKind),
        }
    }
}

fn bookmark(meta: &[u8]) -> Result<PodEvent, ProtobufFault> {
    let mut fields = Fields(meta);
    while let Some((number, annotation)) = fields.next()? {
        if number == 12 && text(1, Fields(annotation.bytes()).one(1)?)? == Some("k8s.io/initial-events-end") {
            let version = text(6, Fields(meta).one(6)?)?.unwrap_or_default();
            return Ok(PodEvent::AllTold { version: version.to_owned() });
        }
    }
    Ok(PodEvent::Bookmark)
}

fn refusal(status: &[u8]) -> Result<Vec<u8>, ProtobufFault> {
    let mut writer = Writer::with_capacity(status.len());
    writer.message(status, STATUS)?;
    Ok(writer.json)
}

/// What is inside of the message around every object, and of which kind that is.
fn unwrapped(message: &[u8]) -> Result<(&[u8], &[u8]), ProtobufFault> {
    let wrapped = message.strip_prefix(MAGIC).ok_or(ProtobufFault::NotKubernetes)?;
    let types = bytes_of(wrapped, 1)?;
    Ok((bytes_of(types, 2)?, bytes_of(wrapped, 2)?))
}

/// A message without them was cut off: an empty list is not one that is missing.
fn bytes_of(message: &[u8], number: u32) -> Result<&[u8], ProtobufFault> {
    Fields(message).one(number)?.map(Value::bytes).ok_or(ProtobufFault::TooShort)
}

/// Events that come in pieces: each is preceded by its length in four bytes.
#[derive(Debug, Default)]
pub struct PodEvents {
    received: Vec<u8>,
    /// So much of it was read.
    read: usize,
}

impl PodEvents {
    /// Takes what came.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.received.drain(..self.read);
        self.read = 0;
        self.received.extend_from_slice(bytes);
    }

    /// The next event, if it came whole.
    pub fn next(&mut self, reader: &mut PodReader) -> Result<Option<PodEvent>, ProtobufFault> {
        let Some((length, rest)) = self.received[self.read..].split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MOST_BYTES {
            return Err(ProtobufFault::TooLong(length));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let event = reader.event(message)?;
        self.read += 4 + length;
        Ok(Some(event))
    }
}
