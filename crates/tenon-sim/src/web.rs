//! What the hosts of an estate find at a URL without a network: files that a test or a demo publishes.
//!
//! Everything here happens on the estate's own clock. A URL whose server is not published is fetched for real, in `fetch`.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::download::{Download, Fetched};
use crate::estate::Estate;
use crate::state::State;
use crate::wget::{self, Peer, Untrusted};

/// Where all published servers seem to be: an address for documentation (RFC 5737).
const ADDRESS: &str = "192.0.2.80";
/// The header of a qcow2 image as its format lays it out: magic, version 3, and the size of the disk at byte 24.
const HEADER_BYTES: usize = 104;

/// What a server proves its name with. It counts for `https://` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebCertificate {
    /// A certificate that every host trusts.
    #[default]
    Trusted,
    /// A certificate of an authority that no host knows.
    UnknownIssuer,
    /// A certificate that is out of date.
    Expired,
    /// A certificate for another name.
    WrongName,
}

/// A file that is published at a URL.
#[derive(Clone, Debug, Default)]
pub struct WebFile {
    /// Its bytes, or the first of them.
    pub data: Bytes,
    /// Its length, if that is more than the bytes. The others are never read; checksums are those of `data`.
    pub length: Option<u64>,
    /// How fast it comes; the estate's own pace when absent.
    pub bytes_per_s: Option<u64>,
    /// A status other than 200, with its phrase.
    pub refused: Option<(u16, String)>,
    /// What its server proves its name with.
    pub certificate: WebCertificate,
}

impl WebFile {
    /// A file of these bytes.
    pub fn new(data: impl Into<Bytes>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// A qcow2 image of a disk of this size, as a file of this length. Images with different tags differ in checksum.
    pub fn image(tag: &str, disk_bytes: u64, file_bytes: u64) -> Self {
        let mut data = b"QFI\xfb\0\0\0\x03".to_vec();
        data.resize(24, 0);
        data.extend(disk_bytes.to_be_bytes());
        data.resize(HEADER_BYTES, 0);
        data.extend(tag.bytes());
        Self { length: Some(file_bytes), ..Self::new(data) }
    }

    /// The same file over a link of so many bytes a second.
    #[must_use]
    pub fn over(mut self, bytes_per_s: u64) -> Self {
        self.bytes_per_s = Some(bytes_per_s);
        self
    }

    /// The same file from a server with this certificate.
    #[must_use]
    pub fn certificate(mut self, certificate: WebCertificate) -> Self {
        self.certificate = certificate;
        self
    }

    /// What a caller who wants this file gives as its SHA-256.
    pub fn sha256(&self) -> String {
        Sha256::digest(&self.data).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// All published files, by URL.
pub(crate) type Web = BTreeMap<String, WebFile>;

impl Estate {
    /// From now on every host finds this file at a URL. Other URLs of the same server are not found (404).
    pub fn publish(&self, url: &str, file: WebFile) {
        self.with(|state| state.web.insert(url.into(), file));
    }

    /// Takes a published file away; `false` when there is none. Without any file its server has no name any more.
    pub fn unpublish(&self, url: &str) -> bool {
        self.with(|state| state.web.remove(url).is_some())
    }
}

impl State {
    /// What a download finds at a URL of a published server; `None` for any other server.
    pub(crate) fn browse(&self, url: &str, verify: bool) -> Option<Fetched> {
        let place = wget::authority(url);
        let known = self.web.keys().any(|known| wget::authority(known) == place);
        if !known {
            return None;
        }
        let file = self.web.get(url);
        let mut lines = Peer::new(url, ADDRESS).hello();
        let doubt = file.and_then(|file| untrusted(url, file.certificate));
        if let Some(doubt) = doubt {
            lines.extend(doubt.lines(place, verify));
            if verify {
                return Some(Fetched::failed_as_told(lines));
            }
        }
        let missing = (404, "Not Found".to_string());
        let refused = file.map_or(Some(&missing), |file| file.refused.as_ref());
        match (file, refused) {
            (Some(file), None) => {
                let length = file.length.unwrap_or(0).max(file.data.len() as u64);
                lines.push(wget::status_line("200 OK"));
                let rate = file.bytes_per_s.unwrap_or(self.config.pace.link_bytes_per_s);
                Some(Fetched::File(Download { data: file.data.clone(), length, bytes_per_s: rate.max(1), lines }))
            }
            (_, refused) => {
                let (status, phrase) = refused.unwrap_or(&missing);
                lines.extend(wget::refused(&format!("{status} {phrase}"), self.epoch()));
                Some(Fetched::Failed { lines, error: "exit code 8".into() })
            }
        }
    }
}

fn untrusted(url: &str, certificate: WebCertificate) -> Option<Untrusted> {
    match certificate {
        _ if !url.starts_with("https://") => None,
        WebCertificate::Trusted => None,
        WebCertificate::UnknownIssuer => Some(Untrusted::Issuer),
        WebCertificate::Expired => Some(Untrusted::Expired),
        WebCertificate::WrongName => Some(Untrusted::Name),
    }
}
