//! Where something was read, so that whoever wrote it finds it again.

use std::fmt;
use std::sync::Arc;

use super::table_text::plain;

/// A line of a file, of standard input, or no line at all where a cluster answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    source: Arc<str>,
    line: Option<usize>,
}

impl Place {
    /// A line of a source.
    pub fn line(source: &Arc<str>, line: usize) -> Place {
        Place { source: Arc::clone(source), line: Some(line) }
    }

    /// A source without lines, or as a whole.
    pub fn whole(source: &Arc<str>) -> Place {
        Place { source: Arc::clone(source), line: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.line.iter().try_for_each(|line| write!(f, ":{line}"))
    }
}

/// Why what stands at a place cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What is wrong, and the next move.
    pub why: String,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is quoted from a file stays on one line, and a terminal does not obey it.
        write!(f, "{}: {}", self.place, plain(&self.why))
    }
}
