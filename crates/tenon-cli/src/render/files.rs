//! The files that are given: objects in manifests, or a directory with one file for each key of a Secret.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use k8s_openapi::api::core::v1::Secret;
use tenon_api::{NodePool, ProxmoxNodeClass};
use tenon_controllers::first_boot::SecretData;

use crate::plan;
use crate::plan::location::Location;
use crate::plan::manifest::manifests;

/// How standard input is called on the command line.
const STDIN: &str = "-";
/// A Secret is at most 1 MiB, so a larger file in a directory of them is a mistake.
const KEY_FILE_MAX: u64 = 1 << 20;

/// What a file or a directory holds.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) classes: Vec<ProxmoxNodeClass>,
    pub(super) pools: Vec<NodePool>,
    pub(super) secrets: Vec<FoundSecret>,
}

/// A Secret of a file, or what stands for one.
#[derive(Clone)]
pub(super) struct FoundSecret {
    pub(super) namespace: Option<String>,
    /// A directory has none.
    pub(super) name: Option<String>,
    pub(super) data: SecretData,
    /// Where it was read.
    pub(super) source: String,
}

impl std::fmt::Debug for FoundSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.origin())
    }
}

impl FoundSecret {
    /// What an error calls it.
    pub(super) fn origin(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("Secret {namespace}/{name} ({})", self.source),
            (None, Some(name)) => format!("Secret {name} ({})", self.source),
            (_, None) => format!("directory {}", self.source),
        }
    }

    fn of(secret: Secret, location: &Location) -> FoundSecret {
        let data = secret.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0));
        let text = secret.string_data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
        FoundSecret {
            namespace: secret.metadata.namespace,
            name: Some(secret.metadata.name.unwrap_or_default()),
            // As in the API server, stringData wins.
            data: data.chain(text).collect(),
            source: location.to_string(),
        }
    }
}

/// Reads each file once, however many flags name it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    read: BTreeMap<PathBuf, Arc<Objects>>,
}

impl Reader {
    /// The objects of a file that a flag names.
    pub(super) fn objects(&mut self, path: &Path, flag: &str) -> anyhow::Result<Arc<Objects>> {
        if let Some(known) = self.read.get(path) {
            return Ok(Arc::clone(known));
        }
        let objects = Arc::new(if path.is_dir() { directory(path, flag)? } else { manifest_file(path, flag)? });
        self.read.insert(path.to_owned(), Arc::clone(&objects));
        Ok(objects)
    }
}

/// The text of a file that is no list of objects.
pub(super) fn text(path: &Path, what: &str, flag: &str) -> anyhow::Result<String> {
    if path.as_os_str() != STDIN {
        return plan::text(path, what, flag);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).with_context(|| format!("cannot read {what} from standard input"))?;
    Ok(text)
}

fn manifest_file(path: &Path, flag: &str) -> anyhow::Result<Objects> {
    let text = text(path, "file", flag)?;
    let name = if path.as_os_str() == STDIN { "standard input".to_owned() } else { path.display().to_string() };
    let source: Arc<str> = Arc::from(name);
    let mut objects = Objects::default();
    for manifest in manifests(&source, &text)? {
        match manifest.kind().as_str() {
            "ProxmoxNodeClass" => objects.classes.push(manifest.read()?),
            "NodePool" => objects.pools.push(manifest.node_pool()?),
            "Secret" => objects.secrets.push(FoundSecret::of(manifest.read()?, &manifest.location())),
            _ => {}
        }
    }
    Ok(objects)
}

fn directory(path: &Path, flag: &str) -> anyhow::Result<Objects> {
    let shown = path.display();
    if !matches!(flag, "--templates" | "--values") {
        return Err(anyhow!("{shown} is a directory; give a file with {flag}"));
    }
    let mut data = SecretData::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot list {shown}"))? {
        let entry = entry.with_context(|| format!("cannot list {shown}"))?;
        let (file, key) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // A mounted Secret has hidden folders beside its keys.
        if key.starts_with('.') || !file.is_file() {
            continue;
        }
        let failed = || format!("cannot read {}", file.display());
        if fs::metadata(&file).with_context(failed)?.len() > KEY_FILE_MAX {
            return Err(anyhow!("{} is larger than 1 MiB, which no Secret can hold", file.display()));
        }
        data.insert(key, fs::read(&file).with_context(failed)?);
    }
    let secret = FoundSecret { namespace: None, name: None, data, source: shown.to_string() };
    Ok(Objects { secrets: vec![secret], ..Objects::default() })
}
