//! Shows a long build's progress: one line that rewrites itself on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A log should show that something moves without being flooded.
const LOG_EVERY: Duration = Duration::from_secs(15);
/// A terminal may move faster than people read, but not faster than they see.
const TERMINAL_EVERY: Duration = Duration::from_millis(200);

/// Progress on standard error.
pub(crate) struct Shown {
    is_terminal: bool,
    started: Instant,
    last: Option<Instant>,
}

impl Shown {
    pub(crate) fn new() -> Shown {
        Shown { is_terminal: std::io::stderr().is_terminal(), started: Instant::now(), last: None }
    }

    fn print(&mut self, line: &str) {
        let elapsed = self.started.elapsed().as_secs();
        let mut err = std::io::stderr();
        // Progress that cannot be shown must not end the build.
        let _ = if self.is_terminal {
            write!(err, "\r\x1b[K   {line}, {elapsed} s").and_then(|()| err.flush())
        } else {
            writeln!(err, "   {line}, {elapsed} s")
        };
    }
}

impl testbed::Progress for Shown {
    fn note(&mut self, text: &str) {
        self.finish();
        eprintln!("   {text}");
        self.started = Instant::now();
    }

    fn step(&mut self, what: &str, done: usize, total: usize) {
        let every = if self.is_terminal { TERMINAL_EVERY } else { LOG_EVERY };
        if self.last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        self.last = Some(Instant::now());
        match total {
            0 => self.print(&format!("{what}: {done}")),
            total => self.print(&format!("{what}: {done} of at most {total}")),
        }
    }
}

impl Shown {
    /// Leaves the line that rewrites itself behind.
    pub(crate) fn finish(&mut self) {
        if self.is_terminal && self.last.take().is_some() {
            eprintln!();
        }
    }
}
