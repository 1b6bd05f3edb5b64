//! Pieces of a file become objects, on as many threads as there are cores, and come back in the order of the file.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::de::DeserializeSeed as _;
use tenon_api::objects::{Kind, Object, made_good};

use super::head::{Head, HeadOf};
use super::locate::Way;
use super::pieces::{Form, Piece, is_list, json_words};
use super::unique_keys::UniqueKeys;
use super::{workloads, yaml};

/// Less than this is read before a second thread has begun.
const WORTH_A_THREAD: usize = 256 * 1024;
/// Beyond this many threads memory is what is slow.
const THREADS_MAX: usize = 8;
/// Pieces a thread takes at a time.
const BATCH: usize = 32;
/// Deeply nested objects are read by recursion.
const STACK: usize = 8 << 20;

/// What became of a piece.
#[derive(Debug)]
pub(super) enum Parsed {
    /// An object that matters, settled.
    Object(Box<Object>),
    /// A kind that does not affect a plan.
    Other {
        /// Its version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
}

/// Why a piece cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// The line of the file.
    pub(super) line: usize,
    /// What is wrong there.
    pub(super) why: String,
    /// Whether it refers to what stands outside it.
    pub(super) needs_others: bool,
}

impl From<(usize, String)> for Broken {
    fn from((line, why): (usize, String)) -> Broken {
        Broken { line, why, needs_others: false }
    }
}

/// What became of a piece, by its index.
type Indexed = (usize, Result<Parsed, Broken>);

/// Reads every piece up to the first that cannot be read.
pub(super) fn parse(pieces: &[Piece<'_>]) -> Vec<Result<Parsed, Broken>> {
    let size: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let cores = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    let threads = cores.min(size / WORTH_A_THREAD + 1);
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let mut outcomes: Vec<Indexed> = thread::scope(|scope| {
        let work = || take(pieces, &next, &failed);
        // A thread that cannot be started is one fewer; the rest do its work.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok())
            .collect();
        let mut outcomes = take(pieces, &next, &failed);
        for other in others {
            match other.join() {
                Ok(more) => outcomes.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcomes
    });
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn take(pieces: &[Piece<'_>], next: &AtomicUsize, failed: &AtomicUsize) -> Vec<Indexed> {
    let mut outcomes = Vec::new();
    loop {
        let begin = next.fetch_add(BATCH, Ordering::Relaxed);
        let batch = pieces.iter().enumerate().skip(begin).take(BATCH);
        // Pieces before the first fault are still read, so that it is the first in every run.
        for (index, piece) in batch {
            if index > failed.load(Ordering::Relaxed) {
                return outcomes;
            }
            let outcome = one(piece);
            if outcome.is_err() {
                failed.fetch_min(index, Ordering::Relaxed);
            }
            outcomes.push((index, outcome));
        }
        if begin >= pieces.len() {
            return outcomes;
        }
    }
}

fn one(piece: &Piece<'_>) -> Result<Parsed, Broken> {
    let head = if piece.head.is_complete() { piece.head.clone() } else { head(piece)? };
    let missing = |field: &str| {
        (
            piece.line,
            format!(
                "not a Kubernetes object: `{field}` is missing (give a list of instance types with --instance-types)"
            ),
        )
    };
    let name = head.kind.or(piece.head.kind.clone()).filter(|kind| !kind.is_empty()).ok_or_else(|| missing("kind"))?;
    let api_version = head.api_version.filter(|version| !version.is_empty()).ok_or_else(|| missing("apiVersion"))?;
    if is_list(&name) {
        let why = "a list within a list is not supported; move its items to the outer list";
        return Err((piece.line, why.to_owned()).into());
    }
    let Some(kind) = Kind::find(&api_version, &name) else {
        if matches!(piece.form, Form::Yaml | Form::YamlItem) {
            yaml::check(piece)?;
        }
        return Ok(Parsed::Other { api_version, kind: name });
    };
    let named = |broken: Broken| Broken { why: format!("{name}: {}", broken.why), ..broken };
    let object = object(piece, kind).map_err(named)?;
    let key = object.key();
    let who = if key.name.is_empty() { name } else { key.to_string() };
    let settled = object.settled().and_then(|object| workloads::check(&object).map(|()| object));
    let object = settled.map_err(|fault| {
        let line = fault.field().and_then(|field| line_of(piece, Way(field))).unwrap_or(piece.line);
        (line, format!("{who}: {fault}"))
    })?;
    Ok(Parsed::Object(Box::new(object)))
}

/// Where a field of a piece stands.
fn line_of(piece: &Piece<'_>, way: Way<'_>) -> Option<usize> {
    match piece.form {
        Form::Yaml | Form::YamlItem => yaml::line_of(piece, way),
        Form::Json => {
            let mut from = serde_json::Deserializer::from_str(&piece.text);
            way.deserialize(&mut from).err().map(|error| json_fault(piece, &error).0)
        }
        Form::JsonOfYaml => None,
    }
}

/// What the piece says it is, over what its list says.
fn head(piece: &Piece<'_>) -> Result<Head, Broken> {
    match piece.form {
        Form::Yaml | Form::YamlItem => yaml::head_of(piece),
        Form::Json | Form::JsonOfYaml => {
            let mut head = Head::default();
            let mut from = serde_json::Deserializer::from_str(&piece.text);
            let outcome = HeadOf { head: &mut head, is_in_list: false }.deserialize(&mut from);
            match outcome {
                Err(error) if !head.is_complete() => Err(json_fault(piece, &error).into()),
                _ => Ok(head),
            }
        }
    }
}

fn object(piece: &Piece<'_>, kind: Kind) -> Result<Object, Broken> {
    let read = match piece.form {
        Form::Yaml | Form::YamlItem => yaml::object(piece, kind),
        Form::Json | Form::JsonOfYaml => json_object(piece, kind).map_err(|error| json_fault(piece, &error).into()),
    };
    match read {
        Err(fault) if matches!(kind, Kind::NodePool | Kind::NodeClaim) => again(piece, kind).ok_or(fault),
        read => read,
    }
}

fn json_object(piece: &Piece<'_>, kind: Kind) -> Result<Object, serde_json::Error> {
    let object = kind.read(&mut serde_json::Deserializer::from_str(&piece.text))?;
    serde_json::from_str::<UniqueKeys>(&piece.text)?;
    Ok(object)
}

/// Pools and claims are few, and other programs write them with gaps.
fn again(piece: &Piece<'_>, kind: Kind) -> Option<Object> {
    let value = match piece.form {
        Form::Yaml | Form::YamlItem => yaml::value_of(piece),
        Form::Json | Form::JsonOfYaml => {
            serde_json::from_str::<UniqueKeys>(&piece.text).ok()?;
            serde_json::from_str(&piece.text).ok()
        }
    };
    kind.read(made_good(kind, value?)).ok()
}

fn json_fault(piece: &Piece<'_>, error: &serde_json::Error) -> (usize, String) {
    let inside = if piece.form == Form::Json { error.line().saturating_sub(1) } else { 0 };
    (piece.line + inside, json_words(error))
}
