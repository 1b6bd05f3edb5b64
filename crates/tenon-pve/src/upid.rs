//! The name of a Proxmox task.

use std::fmt;
use std::str::FromStr;

use tenon_model::HostName;

/// `UPID:host:pid:pstart:starttime:type:id:user:`. It is followed at the host it names, whatever host we talk to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Upid {
    text: String,
    host: HostName,
    kind: String,
    id: String,
    user: String,
}

impl Upid {
    /// Who started it: `user@realm`, or `user@realm!token`.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The host whose worker runs the task.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// `qmclone`, `qmstart` and the like.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What the task works on. For a clone this is the source, not the new VM.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole text, as Proxmox wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Upid {
    type Err = UpidError;

    fn from_str(text: &str) -> Result<Upid, UpidError> {
        let error = || UpidError { text: text.to_owned() };
        let parts: Vec<&str> = text.split(':').collect();
        let ["UPID", host, pid, pstart, start, kind, id, user, ""] = parts.as_slice() else { return Err(error()) };
        let is_hex = |part: &str| (1..=16).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if ![pid, pstart, start].into_iter().all(|part| is_hex(part)) || kind.is_empty() || user.is_empty() {
            return Err(error());
        }
        let host = host.parse().map_err(|_| error())?;
        Ok(Upid {
            text: text.to_owned(),
            host,
            kind: (*kind).to_owned(),
            id: (*id).to_owned(),
            user: (*user).to_owned(),
        })
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no [`Upid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a Proxmox task ID (UPID)")]
pub struct UpidError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_task_name_reads_and_prints() {
        let text = "UPID:pve1:00002874:00091F65:6AF96A3F:qmclone:1001:root@pam!test:";
        let upid: Upid = text.parse().unwrap();
        assert_eq!((upid.host().as_str(), upid.kind(), upid.id()), ("pve1", "qmclone", "1001"));
        assert_eq!((upid.to_string().as_str(), upid.user()), (text, "root@pam!test"));
        // An upload works on nothing that has an id.
        assert_eq!("UPID:pve1:0:0:0:imgcopy::a@pve!b:".parse::<Upid>().unwrap().id(), "");
    }

    #[test]
    fn what_is_no_task_name_is_refused() {
        for text in [
            "",
            "UPID:",
            "UPID:pve1:x:0:0:qmclone:1:a@b:",
            "UPID:p/1:0:0:0:k:1:a@b:",
            "UPID:pve1:0:0:0:k:1:a@b",
            "UPID:pve1:0:0:0::1:a@b:",
        ] {
            assert!(text.parse::<Upid>().is_err(), "{text}");
        }
    }
}
