//! Reads the files and folders a plan is made from.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};

use super::collect::Collector;
use super::parse::{Parsed, parse};
use super::pieces::{Lists, fault, pieces};
use super::place::{Fault, Place};

/// A file beyond this is no list of objects; it is read as a whole.
const FILE_MAX: u64 = 2 << 30;
/// How standard input is called on the command line, and in errors.
const STDIN: &str = "-";
const STDIN_NAME: &str = "standard input";

/// What is to be read.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// Files, folders, and `-`.
    pub paths: &'a [PathBuf],
    /// Files that are something else and are passed over in folders.
    pub apart: Vec<&'a Path>,
    /// Whether the objects of a cluster are read too.
    pub has_cluster: bool,
}

/// Reads every source into the collector. A cluster that is read too may have all there is.
pub fn load(sources: &Sources<'_>, stdin: &mut dyn Read, into: &mut Collector) -> anyhow::Result<()> {
    let (mut seen, mut is_stdin_read) = (BTreeSet::new(), false);
    let (mut empty, mut is_something) = (Vec::new(), sources.has_cluster);
    let mut tell = |name: &str, found: bool| {
        is_something |= found;
        empty.extend((!found).then(|| name.to_owned()));
    };
    for path in sources.paths {
        if path.as_os_str() == STDIN {
            if std::mem::replace(&mut is_stdin_read, true) {
                bail!("`-f -` is given twice, and standard input can be read once");
            }
            tell(STDIN_NAME, read_into(STDIN_NAME, stdin, into)?);
            continue;
        }
        for file in files(path, &sources.apart)? {
            // The same file by two ways is no contradiction.
            if !seen.insert(identity(&file)) {
                into.note(format!("{} is given twice and read once", file.display()));
                continue;
            }
            let mut open = fs::File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.display().to_string();
            tell(&name, read_into(&name, &mut open, into)?);
        }
    }
    if let (false, Some(first)) = (is_something, empty.first()) {
        bail!("{first}:1: there is nothing here, and no plan to be made: give a file with objects");
    }
    empty.iter().for_each(|name| into.note(format!("there is nothing in {name}")));
    Ok(())
}

/// The file itself, or the files of a folder that hold objects by their name.
fn files(path: &Path, apart: &[&Path]) -> anyhow::Result<Vec<PathBuf>> {
    let shown = path.display();
    let kind = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !kind.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let apart: Vec<PathBuf> = apart.iter().map(|path| identity(path)).collect();
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot list {shown}"))? {
        let file = entry.with_context(|| format!("cannot list {shown}"))?.path();
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let is_ours = ending.is_some_and(|ending| ["yaml", "yml", "json"].contains(&ending.as_str()));
        if is_ours && !file.is_dir() && !apart.contains(&identity(&file)) {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(anyhow!(
            "there is no object file in {shown}: a folder is searched for .yaml, .yml and .json, not its subfolders"
        ));
    }
    files.sort();
    Ok(files)
}

fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn read_into(name: &str, from: &mut dyn Read, into: &mut Collector) -> anyhow::Result<bool> {
    let mut bytes = Vec::new();
    from.take(FILE_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_MAX) {
        bail!("{name} has more than {} GiB: divide it into several files", FILE_MAX >> 30);
    }
    let source: Arc<str> = Arc::from(name);
    let text = String::from_utf8(bytes).map_err(|error| not_text(&source, &error))?;
    Ok(read_text(&source, &text, into)?)
}

fn not_text(source: &Arc<str>, error: &FromUtf8Error) -> Fault {
    Fault { place: Place::line(source, not_text_line(error)), why: "this is not text in UTF-8".to_owned() }
}

/// The line on which bytes cease to be text.
pub(super) fn not_text_line(error: &FromUtf8Error) -> usize {
    let valid = error.utf8_error().valid_up_to();
    1 + error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count()
}

/// Reads the objects of one text, and tells whether there was something.
pub fn read_text(source: &Arc<str>, text: &str, into: &mut Collector) -> Result<bool, Fault> {
    let mut found = pieces(source, text, Lists::Apart)?;
    let mut outcomes = parse(&found.pieces);
    if outcomes.iter().any(|outcome| matches!(outcome, Err(broken) if broken.needs_others)) {
        found = pieces(source, text, Lists::Whole)?;
        outcomes = parse(&found.pieces);
    }
    for (piece, outcome) in found.pieces.iter().zip(outcomes) {
        match outcome {
            Ok(Parsed::Object(object)) => into.add(*object, Place::line(source, piece.line))?,
            Ok(Parsed::Other { api_version, kind }) => into.leave_out(&api_version, &kind),
            Err(broken) => return Err(fault(source, text, broken.line, broken.why)),
        }
    }
    Ok(found.is_something)
}
