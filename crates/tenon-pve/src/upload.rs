//! Puts a file on a storage: one form, the fields before the file, the length said beforehand.

use bytes::Bytes;
use http::Method;
use sha2::{Digest, Sha256};
use tenon_model::HostName;

use crate::access::Right;
use crate::client::{Call, Client, Message, segment};
use crate::error::{Cause, Error, Result};
use crate::transport::TransportError;
use crate::upid::Upid;

/// A file to be sent.
#[derive(Debug, Clone)]
pub struct Upload {
    /// `iso`, `import` or `vztmpl`.
    pub content: String,
    /// What it is called on the storage. A file of the same name is overwritten.
    pub name: String,
    /// Whether Proxmox compares what arrived with the SHA-256 of what was sent.
    pub checked: bool,
}

impl Client {
    /// Begins to put an ISO image on a storage. A file of the same name is overwritten.
    pub async fn upload_iso(&self, host: &HostName, storage: &str, name: &str, image: &Bytes) -> Result<Upid> {
        let upload = Upload { content: "iso".to_owned(), name: name.to_owned(), checked: false };
        self.upload(host, storage, &upload, image).await
    }

    /// Begins to put a file on a storage.
    pub async fn upload(&self, host: &HostName, storage: &str, upload: &Upload, image: &Bytes) -> Result<Upid> {
        let name = &upload.name;
        let action = format!("upload {name} to storage {storage} on host {host}");
        // Some refused uploads leave their bytes behind on the host, so what would be refused or renamed is not sent.
        if !is_plain(name) {
            let why = "the file name may contain only letters, digits, `.`, `_` and `-`";
            return Err(Error::new(action, Cause::NotSent(TransportError::Withheld(why.into()))));
        }
        let path = format!("/nodes/{}/storage/{}/upload", segment(host), segment(storage));
        let call = Call { action, method: Method::POST, path: path.clone(), params: &[] };
        let (content_type, body) = multipart(upload, image);
        let message = Message { path, content_type: Some(content_type), body };
        match self.send(&call, &message).await {
            Ok(data) => self.task_of(&call, &data),
            Err(error) => Err(self.denied_upload(error, storage).await),
        }
    }

    /// Proxmox does not say why it refuses an upload, so the token's rights are asked for.
    async fn denied_upload(&self, error: Error, storage: &str) -> Error {
        if error.refusal().is_none_or(|refusal| !matches!(refusal.status, 400 | 403)) {
            return error;
        }
        let right = Right { path: format!("/storage/{storage}"), privilege: "Datastore.AllocateTemplate" };
        self.naming_missing(error, &[right]).await
    }
}

/// Proxmox replaces every other character, and the file then has another name than the one we look for.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)
}

/// A form with the fields before the file: Proxmox reads it in one go and must know them by then.
fn multipart(upload: &Upload, image: &Bytes) -> (String, Bytes) {
    // The digest of the image cannot stand in the image, so it divides safely; and equal uploads are equal requests.
    let digest: String = Sha256::digest(image).iter().map(|byte| format!("{byte:02x}")).collect();
    let boundary = format!("tenon-{digest}");
    let mut fields = vec![("content", upload.content.as_str())];
    if upload.checked {
        fields.extend([("checksum-algorithm", "sha256"), ("checksum", &digest)]);
    }
    let mut body = Vec::with_capacity(image.len() + 1024);
    for (name, value) in fields {
        let field = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(field.as_bytes());
    }
    let file = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"{}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n",
        upload.name
    );
    body.extend_from_slice(file.as_bytes());
    body.extend_from_slice(image);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), Bytes::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_an_upload_come_before_the_file() {
        let upload = Upload { content: "iso".to_owned(), name: "a.iso".to_owned(), checked: true };
        let (content_type, body) = multipart(&upload, &Bytes::from_static(b"IMAGE"));
        let text = String::from_utf8(body.to_vec()).unwrap();
        let boundary = content_type.split_once("boundary=").unwrap().1;
        let file = text.find("name=\"filename\"; filename=\"a.iso\"").unwrap();
        for field in ["name=\"content\"", "name=\"checksum-algorithm\"", "name=\"checksum\""] {
            assert!(text.find(field).unwrap() < file, "{field}");
        }
        assert!(text.ends_with(&format!("IMAGE\r\n--{boundary}--\r\n")));
    }

    #[test]
    fn a_name_that_proxmox_would_change_is_not_sent() {
        assert!(is_plain("user-data-2001.iso") && is_plain("a_b.C.qcow2"));
        for name in ["", ".", "../x.iso", "a b.iso", "a+b@c.iso", "a\"b.iso", "a\r\nb.iso", "é.iso"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
