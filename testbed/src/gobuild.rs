//! Builds one program from its pinned Go modules into the cache.
//!
//! Go's own build cache makes an interrupted build resume. The result is checked, then renamed into place: whoever
//! finds a file in the cache finds a whole one.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result, file};
use crate::locate::{Found, Lookup, Source, check};
use crate::programs::Program;

/// What a build tells whoever waits for it.
pub trait Progress {
    /// Something worth one line.
    fn note(&mut self, text: &str);
    /// `done` of at most `total` steps of `what` are behind us. Called often; show it as seldom as you like.
    fn step(&mut self, what: &str, done: usize, total: usize);
}

/// Lines of Go's output kept for an error message.
const TAIL_LINES: usize = 20;

/// Builds `program` into the cache.
pub(crate) fn build(program: Program, lookup: &Lookup, progress: &mut dyn Progress) -> Result<Found> {
    let version = program.version();
    let go = Go { binary: lookup.go().ok_or(Error::NoGo { program, version })?, program };
    let folder = lookup.cache.family(program.family());
    let _lock = lookup.cache.lock(&folder, || {
        progress.note(&format!("waiting for another build of {program} to finish"));
    })?;
    let target = folder.join(program.name());
    // Whoever had the lock before us may have built just this.
    if let Ok(found) = check(program, target.clone(), Source::Cache, "the cache") {
        return Ok(found);
    }
    progress.note(&format!("building {program} {version} from Go modules (once; kept in {})", folder.display()));
    let total = go.count_packages(progress)?;
    // One fixed name, guarded by the lock: what a killed build left is overwritten, never collected.
    let partial = folder.join(format!(".partial-{program}"));
    let built = go
        .compile(&partial, total, progress)
        .and_then(|()| check(program, partial.clone(), Source::Built, "the cache"))
        .and_then(|found| fs::rename(&partial, &target).map_err(file("rename", &partial)).map(|()| found));
    if built.is_err() {
        // Nothing half-written stays behind; that it was never written is fine too.
        let _ = fs::remove_file(&partial);
    }
    built.map(|found| Found { path: target, ..found })
}

/// The Go installation, at work on one program.
struct Go {
    binary: PathBuf,
    program: Program,
}

impl Go {
    /// How many packages the program is made of; fetches its modules on the way.
    fn count_packages(&self, progress: &mut dyn Progress) -> Result<usize> {
        let mut command = self.command();
        command.args(["list", "-mod=readonly", "-deps", &self.program.package()]).stdout(Stdio::piped());
        let what = format!("{}: modules fetched", self.program);
        let mut fetched = 0;
        let output = self.run(command, |line| {
            if line.starts_with("go: downloading") {
                fetched += 1;
                progress.step(&what, fetched, 0);
            }
        })?;
        Ok(output.lines().count())
    }

    fn compile(&self, to: &Path, total: usize, progress: &mut dyn Progress) -> Result<()> {
        let mut command = self.command();
        command.args(["build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"]);
        command.arg(self.program.family().ldflags()).arg("-o").arg(to).arg(self.program.package());
        let what = format!("{}: packages compiled", self.program);
        let mut done = 0;
        self.run(command, |line| {
            if is_import_path(line) {
                done += 1;
                progress.step(&what, done, total);
            }
        })
        .map(drop)
    }

    fn command(&self) -> Command {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.program.family().module_folder());
        let mut command = Command::new(&self.binary);
        command
            .current_dir(module)
            // Modules may ask for a newer patch release than the installed one; this lets Go fetch it.
            .env("GOTOOLCHAIN", "auto")
            // The user's flags and workspace are for the user's code.
            .env("GOFLAGS", "")
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0");
        command
    }

    /// Runs Go to its end, showing each line of its standard error to `each`, and returns its standard output.
    fn run(&self, mut command: Command, mut each: impl FnMut(&str)) -> Result<String> {
        let fail = |reason: String, tail: VecDeque<String>| Error::Build {
            program: self.program,
            reason,
            output: Vec::from(tail).join("\n"),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| fail(format!("cannot run go: {error}"), VecDeque::new()))?;
        let stdout = child.stdout.take().map(|out| std::thread::spawn(move || std::io::read_to_string(out)));
        let mut tail = VecDeque::with_capacity(TAIL_LINES);
        let stderr = child.stderr.take().into_iter().flat_map(|err| BufReader::new(err).lines());
        for line in stderr.map_while(std::result::Result::ok) {
            each(&line);
            if is_import_path(&line) {
                continue;
            }
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(line);
        }
        let status = child.wait().map_err(|error| fail(format!("cannot wait for go: {error}"), VecDeque::new()))?;
        let output = stdout.and_then(|reader| reader.join().ok()).and_then(std::result::Result::ok).unwrap_or_default();
        if status.success() {
            return Ok(output);
        }
        let reason = explain(&status.to_string(), &tail);
        Err(fail(reason, tail))
    }
}

/// `go build -v` prints one import path a line, and unlike anything else it prints, a path has no blank in it.
fn is_import_path(line: &str) -> bool {
    !line.contains(' ')
}

/// The cause in a user's words, with the next move.
fn explain(status: &str, tail: &VecDeque<String>) -> String {
    let said = |words: &str| tail.iter().any(|line| line.to_lowercase().contains(words));
    if said("no space left on device") {
        "the disk is full; free about 6 GB and run the command again (compiled packages are kept)".to_owned()
    } else if said("dial tcp") || said("connection refused") || said("no such host") {
        "cannot fetch the Go modules; check GOPROXY and the network, then run the command again".to_owned()
    } else {
        format!("go exited with {status}")
    }
}
