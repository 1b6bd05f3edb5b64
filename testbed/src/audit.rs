//! Reads the API server's audit log: who asked for what, and what the answer was.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::{Error, Result, file};

/// One answered request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The path with its query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// Who asked.
    pub user: AuditUser,
    /// What program asked.
    #[serde(default)]
    pub user_agent: String,
    /// Which object, unless the path is none of the API's resources.
    pub object_ref: Option<AuditObject>,
    /// What came back.
    pub response_status: Option<AuditStatus>,
}

/// Who asked.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditUser {
    /// The authenticated name.
    #[serde(default)]
    pub username: String,
    /// The authenticated groups.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// Which object a request was about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// Plural, lower case.
    pub resource: String,
    /// Empty for a list, or where the server chooses the name.
    pub name: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// `status`, `eviction`, `binding` and the like; empty for the object itself.
    pub subresource: String,
    /// Empty for the core group.
    pub api_group: String,
}

/// The answer's status.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditStatus {
    /// The HTTP code.
    #[serde(default)]
    pub code: u16,
}

/// Follows one audit log.
#[derive(Debug)]
pub struct AuditReader {
    path: PathBuf,
    offset: u64,
    line: usize,
}

impl AuditReader {
    pub(crate) fn new(path: PathBuf) -> AuditReader {
        AuditReader { path, offset: 0, line: 0 }
    }

    /// The events written since the last call. A line that is still being written is left for the next.
    pub fn read(&mut self) -> Result<Vec<AuditEvent>> {
        let mut events = Vec::new();
        let mut log = match File::open(&self.path) {
            Ok(log) => BufReader::new(log),
            // Not an error: nothing was asked yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(events),
            Err(error) => return Err(file("open", &self.path)(error)),
        };
        log.seek(SeekFrom::Start(self.offset)).map_err(file("read", &self.path))?;
        let mut line = String::new();
        loop {
            line.clear();
            let length = log.read_line(&mut line).map_err(file("read", &self.path))?;
            if !line.ends_with('\n') {
                return Ok(events);
            }
            self.offset += u64::try_from(length).unwrap_or(u64::MAX);
            self.line += 1;
            events.push(serde_json::from_str(&line).map_err(|source| Error::Audit {
                path: self.path.clone(),
                line: self.line,
                source,
            })?);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LINE: &str = r#"{"kind":"Event","verb":"create","requestURI":"/api/v1/namespaces/a/pods/p/eviction","user":{"username":"u"},
"objectRef":{"resource":"pods","namespace":"a","name":"p","subresource":"eviction","apiVersion":"v1"},"responseStatus":{"code":429}}"#;

    #[test]
    fn a_line_still_being_written_is_read_when_it_is_whole() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let mut reader = AuditReader::new(log.path().to_owned());
        assert!(reader.read().unwrap().is_empty());
        let line = LINE.replace('\n', "");
        let (first, second) = line.split_at(40);
        log.write_all(first.as_bytes()).unwrap();
        assert!(reader.read().unwrap().is_empty());
        writeln!(log, "{second}").unwrap();
        let events = reader.read().unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].object_ref.as_ref().unwrap().subresource, "eviction");
        assert_eq!(events[0].response_status.as_ref().unwrap().code, 429);
        assert!(reader.read().unwrap().is_empty());
    }

    #[test]
    fn a_log_that_is_not_there_yet_has_no_events() {
        assert!(AuditReader::new("/nonexistent/audit.log".into()).read().unwrap().is_empty());
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        writeln!(log, "{{}}").unwrap();
        let error = AuditReader::new(log.path().to_owned()).read().unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
