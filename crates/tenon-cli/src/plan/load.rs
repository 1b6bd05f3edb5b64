//! Reads the files and directories a plan is made from.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};

use super::collect::Collector;
use super::location::{Fault, Location};
use super::parse::{Parsed, parse};
use super::pieces::{Lists, fault, pieces};

/// A file beyond this is no list of objects; it is read as a whole.
const FILE_MAX: u64 = 2 << 30;
/// How standard input is called on the command line, and in errors.
const STDIN: &str = "-";
const STDIN_NAME: &str = "standard input";

/// What is to be read.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// Files, directories, and `-`.
    pub paths: &'a [PathBuf],
    /// Files that hold no objects and are skipped in directories.
    pub excluded: Vec<&'a Path>,
    /// Whether the objects of a cluster are read too.
    pub has_cluster: bool,
}

/// Reads every source into the collector. A cluster that is read too may have all there is.
pub fn load(sources: &Sources<'_>, stdin: &mut dyn Read, into: &mut Collector) -> anyhow::Result<()> {
    let (mut seen, mut is_stdin_read) = (BTreeSet::new(), false);
    let (mut empty, mut is_something) = (Vec::new(), sources.has_cluster);
    let mut note = |name: &str, found: bool| {
        is_something |= found;
        empty.extend((!found).then(|| name.to_owned()));
    };
    for path in sources.paths {
        if path.as_os_str() == STDIN {
            if std::mem::replace(&mut is_stdin_read, true) {
                bail!("`-f -` is given twice, but standard input can be read only once; remove one");
            }
            note(STDIN_NAME, read_into(STDIN_NAME, stdin, into)?);
            continue;
        }
        for file in files(path, &sources.excluded)? {
            // The same file by two ways is no contradiction.
            if !seen.insert(identity(&file)) {
                into.note(format!("{} is given twice; it is read once", file.display()));
                continue;
            }
            let mut open = fs::File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.display().to_string();
            note(&name, read_into(&name, &mut open, into)?);
        }
    }
    if let (false, Some(first)) = (is_something, empty.first()) {
        bail!("{first}:1: no objects found; give a file with Kubernetes objects");
    }
    empty.iter().for_each(|name| into.note(format!("{name} has no objects")));
    Ok(())
}

/// The file itself, or the files of a directory that hold objects by their name.
fn files(path: &Path, excluded: &[&Path]) -> anyhow::Result<Vec<PathBuf>> {
    let shown = path.display();
    let kind =
        fs::metadata(path).map_err(|error| anyhow!("cannot read {shown}: {error}; check the path given with -f"))?;
    if !kind.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let excluded: Vec<PathBuf> = excluded.iter().map(|path| identity(path)).collect();
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot list {shown}"))? {
        let file = entry.with_context(|| format!("cannot list {shown}"))?.path();
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let is_ours = ending.is_some_and(|ending| ["yaml", "yml", "json"].contains(&ending.as_str()));
        if is_ours && !file.is_dir() && !excluded.contains(&identity(&file)) {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(anyhow!(
            "no object files in directory {shown}: it has no .yaml, .yml or .json file (subdirectories are not searched)"
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
        bail!("{name} is larger than {} GiB; split it into several files", FILE_MAX >> 30);
    }
    let source: Arc<str> = Arc::from(name);
    let text = String::from_utf8(bytes).map_err(|error| not_text(&source, &error))?;
    Ok(read_text(&source, &text, into)?)
}

fn not_text(source: &Arc<str>, error: &FromUtf8Error) -> Fault {
    Fault { location: Location::line(source, not_text_line(error)), why: "not UTF-8 text".to_owned() }
}

/// The line on which bytes cease to be text.
pub(super) fn not_text_line(error: &FromUtf8Error) -> usize {
    let valid = error.utf8_error().valid_up_to();
    1 + error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count()
}

/// Reads the objects of one text, and returns whether there was something.
pub fn read_text(source: &Arc<str>, text: &str, into: &mut Collector) -> Result<bool, Fault> {
    let mut found = pieces(source, text, Lists::Apart)?;
    let mut outcomes = parse(&found.pieces);
    if outcomes.iter().any(|outcome| matches!(outcome, Err(broken) if broken.needs_others)) {
        found = pieces(source, text, Lists::Whole)?;
        outcomes = parse(&found.pieces);
    }
    for (piece, outcome) in found.pieces.iter().zip(outcomes) {
        match outcome {
            Ok(Parsed::Object(object)) => into.add(*object, Location::line(source, piece.line))?,
            Ok(Parsed::Other { api_version, kind }) => into.leave_out(&api_version, &kind),
            Err(broken) => return Err(fault(source, text, broken.line, broken.why)),
        }
    }
    Ok(found.is_something)
}
