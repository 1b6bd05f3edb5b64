//! What is on a guest's disk?
//!
//! Files with mode and owner, plus the little that a guest remembers from boot to boot. A disk belongs to a VM's SMBIOS
//! uuid: a VM that is started again finds it as it was.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// The unit that every image with a kubelet brings. On its own it joins nothing.
const PACKAGE_UNIT: &str = "/usr/lib/systemd/system/kubelet.service";

/// What the package of kubeadm adds: it says where files are looked for, and brings none of them.
const KUBEADM_DROP_IN: &str = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf";
const KUBEADM: &str = "[Service]
Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
                       --kubeconfig=/etc/kubernetes/kubelet.conf\"
Environment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) mode: u32,
    pub(crate) owner: String,
    pub(crate) content: Vec<u8>,
}

impl File {
    /// A file that only root may read.
    pub(crate) fn secret(content: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o600, owner: "root:root".into(), content: content.into() }
    }

    pub(crate) fn public(content: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o644, ..Self::secret(content) }
    }
}

/// A disk, freshly cloned from an image that has containerd, kubelet and kubeadm, or as the last boot left it.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    files: BTreeMap<String, File>,
    /// The cloud-init instance whose user-data was applied.
    pub(crate) instance: Option<String>,
    pub(crate) hostname: String,
    /// Static addresses of its cards.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) boots: u32,
}

impl Disk {
    pub(crate) fn from_image(hostname: &str) -> Self {
        let (files, hostname) = (BTreeMap::new(), hostname.to_owned());
        let mut disk = Self { files, instance: None, hostname, addresses: Vec::new(), boots: 0 };
        disk.write(PACKAGE_UNIT, File::public("[Service]\nExecStart=/usr/bin/kubelet\n"));
        disk.write(KUBEADM_DROP_IN, File::public(KUBEADM));
        disk
    }

    pub(crate) fn write(&mut self, path: &str, file: File) {
        self.files.insert(normal(path), file);
    }

    /// Adds to a file, as `append: true` does; mode and owner become those of the addition.
    pub(crate) fn append(&mut self, path: &str, addition: File) {
        let path = normal(path);
        let mut content = self.files.remove(&path).map(|old| old.content).unwrap_or_default();
        content.extend_from_slice(&addition.content);
        self.files.insert(path, File { content, ..addition });
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(&normal(path));
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(&normal(path))
    }

    /// A file's content, if it is text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.file(path)?.content).ok()
    }

    /// Files directly in a folder: name and path.
    pub(crate) fn folder(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        let prefix = format!("{}/", normal(folder));
        let inside = move |path: &String| path.strip_prefix(&prefix).is_some_and(|name| !name.contains('/'));
        let paths = self.files.keys().filter(move |path| inside(path));
        paths.map(|path| (path.rsplit('/').next().unwrap_or_default(), path.as_str()))
    }
}

/// The path without empty and `.` parts.
fn normal(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.fold(String::new(), |whole, part| format!("{whole}/{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_however_its_path_is_spelled() {
        let mut disk = Disk::from_image("a");
        disk.write("/etc//x/./y.conf", File::secret("one"));
        assert_eq!(disk.text("/etc/x/y.conf"), Some("one"));
        assert_eq!(disk.file("/etc/x/y.conf").map(|f| f.mode), Some(0o600));
        assert_eq!(disk.folder("/etc/x/").collect::<Vec<_>>(), [("y.conf", "/etc/x/y.conf")]);
        assert_eq!(disk.folder("/etc").count(), 0);
    }

    #[test]
    fn appending_keeps_what_was_there() {
        let mut disk = Disk::from_image("a");
        disk.append("/a", File::public("1"));
        disk.append("/a", File::secret("2"));
        assert_eq!(disk.file("/a"), Some(&File::secret("12")));
    }
}
