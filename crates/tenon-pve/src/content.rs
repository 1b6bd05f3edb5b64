//! Files and images on a storage: list, look, fetch from elsewhere, take away. Sending one is in `upload`.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form, segment};
use crate::error::Result;
use crate::reply::{amount, amount_or_none, whole_or_none};
use crate::upid::Upid;

/// A file or image on a storage.
#[derive(Debug, Clone, Deserialize)]
pub struct Volume {
    /// `storage:iso/name.iso` and the like.
    #[serde(rename = "volid")]
    pub id: String,
    /// Its size in bytes.
    #[serde(default, deserialize_with = "amount")]
    pub size: u64,
    /// The VM it is named after.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub vmid: Option<u64>,
    /// `iso`, `images`, `import`, …
    #[serde(default)]
    pub content: String,
    /// `raw`, `qcow2`, `iso`, …
    #[serde(default)]
    pub format: String,
    /// When it was made, in seconds since 1970.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub ctime: Option<u64>,
    /// The image it is a linked clone of.
    pub parent: Option<String>,
}

/// One file or image, looked at closely.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VolumeDetail {
    /// What a guest sees of it, in bytes.
    #[serde(deserialize_with = "amount")]
    pub size: u64,
    /// What it takes on the storage, in bytes.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub used: Option<u64>,
    /// `raw`, `qcow2`, …
    #[serde(default)]
    pub format: String,
    /// Where it lies on the host, if it is a file.
    pub path: Option<String>,
}

/// Which files to list.
#[derive(Debug, Clone, Default)]
pub struct VolumeFilter {
    /// Only this kind: `iso`, `images`, `import`.
    pub content: Option<String>,
    /// Only those named after this VM. Without a kind Proxmox adds those that are named after nobody.
    pub vmid: Option<VmId>,
}

/// A file Proxmox is to fetch itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// `iso` or `import`.
    pub content: String,
    /// Where it is.
    pub url: String,
    /// What it is called on the storage.
    pub name: String,
    /// The algorithm (`sha256`, …) and the sum. With it the call may be repeated: a file that has the sum is success.
    pub checksum: Option<(String, String)>,
    /// Whether the source must prove who it is; Proxmox wants that unless told otherwise.
    pub verify_certificates: Option<bool>,
}

impl Client {
    /// Files of one kind on a storage.
    pub async fn volumes(&self, host: &HostName, storage: &str, content: &str) -> Result<Vec<Volume>> {
        let filter = VolumeFilter { content: Some(content.to_owned()), vmid: None };
        self.volumes_where(host, storage, &filter).await
    }

    /// Some files on a storage, by name.
    pub async fn volumes_where(&self, host: &HostName, storage: &str, filter: &VolumeFilter) -> Result<Vec<Volume>> {
        let what = filter.content.as_deref().unwrap_or("everything");
        let action = format!("list {what} on storage {storage} on host {host}");
        let path = format!("/nodes/{}/storage/{}/content", segment(host), segment(storage));
        let form = Form::default().with_some("content", filter.content.as_ref()).with_some("vmid", filter.vmid);
        let call = Call { action, method: Method::GET, path, params: form.params() };
        let mut volumes: Vec<Volume> = self.read(call).await?;
        volumes.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(volumes)
    }

    /// One file or image.
    pub async fn volume(&self, host: &HostName, volume: &str) -> Result<VolumeDetail> {
        let action = format!("read volume {volume} on host {host}");
        self.read(Call { action, method: Method::GET, path: volume_path(host, volume), params: &[] }).await
    }

    /// Begins to delete a file. Deleting what is not there succeeds.
    pub async fn delete_volume(&self, host: &HostName, volume: &str) -> Result<Upid> {
        let action = format!("delete volume {volume} on host {host}");
        let path = volume_path(host, volume);
        self.task_call(Call { action, method: Method::DELETE, path, params: &[] }).await
    }

    /// The same, waiting up to this many seconds; `None` if it was done by then.
    pub async fn delete_volume_within(&self, host: &HostName, volume: &str, delay_s: u32) -> Result<Option<Upid>> {
        let action = format!("delete volume {volume} on host {host}");
        let form = Form::default().with("delay", delay_s);
        let call = Call { action, method: Method::DELETE, path: volume_path(host, volume), params: form.params() };
        match self.call(&call).await? {
            Value::Null => Ok(None),
            data => self.task_of(&call, &data).map(Some),
        }
    }

    /// Begins to fetch a file from elsewhere onto a storage.
    pub async fn download(&self, host: &HostName, storage: &str, download: &Download) -> Result<Upid> {
        let Download { content, url, name, checksum, verify_certificates } = download;
        let (algorithm, sum) = checksum.as_ref().map(|(algorithm, sum)| (algorithm, sum)).unzip();
        let form = Form::default()
            .with("content", content)
            .with("filename", name)
            .with("url", url)
            .with_some("checksum-algorithm", algorithm)
            .with_some("checksum", sum)
            .with_flag("verify-certificates", *verify_certificates);
        let action = format!("download {url} to storage {storage} on host {host}");
        let path = format!("/nodes/{}/storage/{}/download-url", segment(host), segment(storage));
        self.task_call(Call { action, method: Method::POST, path, params: form.params() }).await
    }
}

fn volume_path(host: &HostName, volume: &str) -> String {
    let storage = volume.split(':').next().unwrap_or_default();
    format!("/nodes/{}/storage/{}/content/{}", segment(host), segment(storage), segment(volume))
}
