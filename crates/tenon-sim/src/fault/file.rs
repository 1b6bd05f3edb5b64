//! How a fault file is read: YAML with the lists `rules`, `events` and `guests`.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::event::{WorldChange, WorldEvent};
use super::fields::Fields;
use super::plan::FaultPlan;
use super::rule::{FaultEffect, FaultMatch, FaultRule, Repeat};
use crate::guest::GuestFaultRule;

/// Why a fault file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FaultFileError {
    /// It is no YAML.
    #[error("cannot read the YAML: {0}")]
    Yaml(String),
    /// A part of it cannot be used.
    #[error("{0}")]
    Entry(String),
}

impl FaultFileError {
    pub(crate) fn entry(place: &str, problem: impl Display) -> Self {
        Self::Entry(format!("{place} {problem}"))
    }

    pub(crate) fn field(place: &str, name: &str, problem: impl Display) -> Self {
        Self::Entry(format!("{place}: field `{name}` {problem}"))
    }
}

const LISTS: [&str; 3] = ["rules", "events", "guests"];
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
const EFFECTS: [&str; 16] = [
    "refuse",
    "fail-after",
    "timeout-before",
    "timeout-after",
    "drop-reply",
    "cut-body",
    "token-revoked",
    "lock-timeout",
    "task-fails",
    "task-dies",
    "task-stalls",
    "task-warns",
    "slow-storage",
    "full-storage",
    "wrong-digest",
    "stale-listing",
];
const EVENTS: [&str; 9] = [
    "host-down",
    "host-up",
    "quorum-lost",
    "quorum-back",
    "ha-recovery",
    "vm-moved",
    "storage-free",
    "token-revoked",
    "clock-skew",
];
const VMIDS: std::ops::RangeInclusive<u32> = 100..=999_999_999;

impl FaultPlan {
    /// Reads a fault file.
    pub fn from_yaml(text: &str) -> Result<Self, FaultFileError> {
        let read = serde_saphyr::from_str::<Value>(text).map_err(|error| FaultFileError::Yaml(error.to_string()))?;
        let map = match read {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            _ => return Err(FaultFileError::entry("the file", "must have the lists rules, events and guests")),
        };
        if let Some(key) = map.keys().find(|key| !LISTS.contains(&key.as_str())) {
            let problem = format!("is not known; allowed: {}", LISTS.join(", "));
            return Err(FaultFileError::field("the file", key, problem));
        }
        Ok(Self {
            rules: list(&map, "rules", rule)?,
            events: list(&map, "events", event)?,
            guests: list(&map, "guests", GuestFaultRule::read)?,
        })
    }
}

fn list<T>(
    map: &Map<String, Value>,
    name: &str,
    read: fn(&Fields<'_>) -> Result<T, FaultFileError>,
) -> Result<Vec<T>, FaultFileError> {
    let items = match map.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(FaultFileError::field("the file", name, "must be a list")),
    };
    let one = |(at, value): (usize, &Value)| {
        let fields = Fields::new(format!("{name}[{at}]"), value)?;
        let item = read(&fields)?;
        fields.end()?;
        Ok(item)
    };
    items.iter().enumerate().map(one).collect()
}

fn rule(fields: &Fields<'_>) -> Result<FaultRule, FaultFileError> {
    let name = fields.text("name")?.unwrap_or_default();
    let method = match fields.text("method")? {
        Some(_) => Some(fields.word("method", &METHODS)?.to_string()),
        None => None,
    };
    let path = fields.text("path")?;
    if path.as_ref().is_some_and(|path| !path.starts_with(['/', '*'])) {
        return Err(fields.wrong("path", "must begin with a slash: it is the path below /api2/json"));
    }
    let when = FaultMatch {
        method,
        path,
        host: fields.text("host")?,
        storage: fields.text("storage")?,
        vmid: fields.number("vmid", VMIDS)?,
        repeat: repeat(fields)?,
        from: fields.duration("from")?,
        until: fields.duration("until")?,
    };
    Ok(FaultRule { name, when, effect: effect(fields)? })
}

/// How often a rule or a fault of a guest strikes.
pub(crate) fn repeat(fields: &Fields<'_>) -> Result<Repeat, FaultFileError> {
    Ok(Repeat {
        nth: fields.number("nth", 1..=u32::MAX)?,
        every: fields.number("every", 1..=u32::MAX)?,
        times: fields.number("times", 1..=u32::MAX)?,
        probability: fields.number("probability", 0.0..=1.0)?,
    })
}

fn effect(fields: &Fields<'_>) -> Result<FaultEffect, FaultFileError> {
    let text = || fields.needed_text("text");
    let status = || fields.needed_number("status", 400..=599);
    Ok(match fields.word("effect", &EFFECTS)? {
        "refuse" => FaultEffect::Refuse { status: status()?, text: text()? },
        "fail-after" => FaultEffect::FailAfter { status: status()?, text: text()? },
        "timeout-before" => FaultEffect::TimeoutBefore,
        "timeout-after" => FaultEffect::TimeoutAfter,
        "drop-reply" => FaultEffect::DropReply,
        "cut-body" => FaultEffect::CutBody,
        "token-revoked" => FaultEffect::TokenRevoked,
        "lock-timeout" => FaultEffect::LockTimeout,
        "task-fails" => {
            let after_effect = match fields.text("when")? {
                None => false,
                Some(_) => fields.word("when", &["before", "after"])? == "after",
            };
            FaultEffect::TaskFails { text: text()?, after_effect }
        }
        "task-dies" => FaultEffect::TaskDies,
        "task-stalls" => FaultEffect::TaskStalls,
        "task-warns" => FaultEffect::TaskWarns { text: text()? },
        "slow-storage" => FaultEffect::SlowStorage { factor: fields.needed_number("factor", 0.0..=1_000_000.0)? },
        "full-storage" => FaultEffect::FullStorage,
        "wrong-digest" => FaultEffect::WrongDigest,
        _ => FaultEffect::StaleListing { age: fields.needed_duration("age")? },
    })
}

fn event(fields: &Fields<'_>) -> Result<WorldEvent, FaultFileError> {
    let at = fields.needed_duration("at")?;
    let host = || fields.needed_text("host");
    let change = match fields.word("event", &EVENTS)? {
        "host-down" => WorldChange::HostDown { host: host()?, delay: fields.duration("delay")? },
        "host-up" => WorldChange::HostUp { host: host()? },
        "quorum-lost" => WorldChange::QuorumLost,
        "quorum-back" => WorldChange::QuorumBack,
        "ha-recovery" => WorldChange::HaRecovery { host: host()?, to: fields.text("to")? },
        "vm-moved" => {
            WorldChange::VmMoved { vmid: fields.needed_number("vmid", VMIDS)?, to: fields.needed_text("to")? }
        }
        "storage-free" => {
            let storage = fields.needed_text("storage")?;
            WorldChange::StorageFree { storage, bytes: fields.needed_number("bytes", 0..=u64::MAX)? }
        }
        "token-revoked" => WorldChange::TokenRevoked { token: fields.needed_text("token")? },
        _ => WorldChange::ClockSkew { seconds: fields.needed_number("seconds", -YEAR_S..=YEAR_S)? },
    };
    // What cannot be undone does not last; the field is refused there as unknown.
    let lasts = if change.undone().is_some() { fields.duration("lasts")? } else { None };
    Ok(WorldEvent { at, change, lasts })
}

/// No clock is more wrong than this.
const YEAR_S: i64 = 366 * 86_400;
