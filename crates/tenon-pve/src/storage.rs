//! Storages of a host and the files on them: find one for seeds, put a seed there, take it away.

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tenon_model::HostName;

use crate::client::{Call, Client, segment};
use crate::error::{Error, Result};
use crate::reply::{flag, parse, unreadable, whole, whole_or_none};
use crate::upid::Upid;

/// A storage as one host sees it.
#[derive(Debug, Clone, Deserialize)]
pub struct HostStorage {
    /// Its name.
    pub storage: String,
    /// What may be kept on it, divided by commas in any order.
    #[serde(default)]
    pub content: String,
    /// Whether it works on this host now.
    #[serde(default, deserialize_with = "flag")]
    pub active: bool,
    /// Whether it is switched on for this host.
    #[serde(default, deserialize_with = "flag")]
    pub enabled: bool,
    /// Whether every host sees the same content.
    #[serde(default, deserialize_with = "flag")]
    pub shared: bool,
    /// Free bytes, if it could be asked.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub avail: Option<u64>,
}

impl HostStorage {
    /// Whether it is usable here and takes this kind of content: `images`, `iso`.
    pub fn takes(&self, content: &str) -> bool {
        self.active && self.enabled && self.content.split(',').any(|kind| kind.trim() == content)
    }
}

/// A file or image on a storage.
#[derive(Debug, Clone, Deserialize)]
pub struct Volume {
    /// `storage:iso/name.iso` and the like.
    #[serde(rename = "volid")]
    pub id: String,
    /// Its size in bytes.
    #[serde(deserialize_with = "whole")]
    pub size: u64,
    /// The VM it is named after.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub vmid: Option<u64>,
}

impl Client {
    /// Storages of a host, by name, the unusable ones included.
    pub async fn storages(&self, host: &HostName) -> Result<Vec<HostStorage>> {
        let action = format!("list the storages of host {host}");
        let data = self.get(action.clone(), format!("/nodes/{}/storage", segment(host))).await?;
        let mut storages: Vec<HostStorage> = parse(data).map_err(|cause| Error::new(action, cause))?;
        storages.sort_by(|a, b| a.storage.cmp(&b.storage));
        Ok(storages)
    }

    /// Files of one kind on a storage.
    pub async fn volumes(&self, host: &HostName, storage: &str, content: &str) -> Result<Vec<Volume>> {
        let action = format!("list {content} on storage {storage} of host {host}");
        let path = format!("/nodes/{}/storage/{}/content", segment(host), segment(storage));
        let call = Call { action, method: Method::GET, path, params: &[("content", content.to_owned())] };
        let data = self.call(&call).await?;
        let mut volumes: Vec<Volume> = parse(data).map_err(|cause| Error::new(call.action, cause))?;
        volumes.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(volumes)
    }

    /// Begins to put an ISO image on a storage. A file of the same name is overwritten.
    pub async fn upload_iso(&self, host: &HostName, storage: &str, name: &str, image: &Bytes) -> Result<Upid> {
        let action = format!("upload {name} to storage {storage} of host {host}");
        let path = format!("/nodes/{}/storage/{}/upload", segment(host), segment(storage));
        let call = Call { action, method: Method::POST, path: path.clone(), params: &[] };
        let (content_type, body) = multipart(name, image);
        let data = self.send(&call, &path, (Some(&content_type), body)).await?;
        let upid = data.as_str().and_then(|text| text.parse().ok());
        upid.ok_or_else(|| Error::new(call.action, unreadable(&format!("`{data}` is not a task"))))
    }

    /// Begins to delete a file. Deleting what is not there succeeds.
    pub async fn delete_volume(&self, host: &HostName, volume: &str) -> Result<Upid> {
        let storage = volume.split(':').next().unwrap_or_default();
        self.task_call(Call {
            action: format!("delete {volume} on host {host}"),
            method: Method::DELETE,
            path: format!("/nodes/{}/storage/{}/content/{}", segment(host), segment(storage), segment(volume)),
            params: &[],
        })
        .await
    }
}

/// A form with the fields before the file: Proxmox reads it in one go and must know them by then.
fn multipart(name: &str, image: &Bytes) -> (String, Bytes) {
    // The digest of the image cannot stand in the image, so it divides safely; and equal uploads are equal requests.
    let digest: String = Sha256::digest(image).iter().map(|byte| format!("{byte:02x}")).collect();
    let boundary = format!("tenon-{digest}");
    let mut body = Vec::with_capacity(image.len() + 512);
    body.extend_from_slice(
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n").as_bytes(),
    );
    let file = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    body.extend_from_slice(file.as_bytes());
    body.extend_from_slice(image);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), Bytes::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(content: &str, active: bool) -> HostStorage {
        HostStorage {
            storage: "s".to_owned(),
            content: content.to_owned(),
            active,
            enabled: true,
            shared: false,
            avail: None,
        }
    }

    #[test]
    fn a_storage_takes_what_it_lists_and_only_while_it_works() {
        assert!(storage("images,iso", true).takes("iso"));
        assert!(!storage("isolated,images", true).takes("iso"));
        assert!(!storage("iso", false).takes("iso"));
    }

    #[test]
    fn the_fields_of_an_upload_come_before_the_file() {
        let (content_type, body) = multipart("a.iso", &Bytes::from_static(b"IMAGE"));
        let text = String::from_utf8(body.to_vec()).unwrap();
        let boundary = content_type.split_once("boundary=").unwrap().1;
        assert!(text.find("name=\"content\"").unwrap() < text.find("name=\"filename\"; filename=\"a.iso\"").unwrap());
        assert!(text.ends_with(&format!("IMAGE\r\n--{boundary}--\r\n")));
    }
}
