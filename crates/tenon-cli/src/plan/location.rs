//! Where an object was read, so that whoever wrote it finds it again.

use std::fmt;
use std::sync::Arc;

use super::table_text::plain;

/// A line of a file or of standard input, or no line at all where a cluster answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    source: Arc<str>,
    line: Option<usize>,
}

impl Location {
    /// A line of a source.
    pub fn line(source: &Arc<str>, line: usize) -> Location {
        Location { source: Arc::clone(source), line: Some(line) }
    }

    /// A cluster, which has no lines.
    pub fn cluster(source: &Arc<str>) -> Location {
        Location { source: Arc::clone(source), line: None }
    }

    /// Whether it is a line of a file or of standard input.
    pub fn is_in_file(&self) -> bool {
        self.line.is_some()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.line.iter().try_for_each(|line| write!(f, ":{line}"))
    }
}

/// Why what stands at a location cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub location: Location,
    /// What is wrong, and the next step.
    pub why: String,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is quoted from a file stays on one line, and a terminal does not obey it.
        write!(f, "{}: {}", self.location, plain(&self.why))
    }
}
