//! Where built programs are kept, under which key, and who may write there.
//!
//! The cache lives outside the clone, so that a second clone starts warm. A file in it is complete: it is written
//! elsewhere and renamed into place.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result, file};
use crate::programs::{Family, Program};

/// The cache folder of everything this project keeps between clones.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// A cache below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// `${XDG_CACHE_HOME:-~/.cache}/tenon`.
    pub fn from_env() -> Result<Cache> {
        // A relative XDG_CACHE_HOME is to be ignored, says the XDG base directory specification.
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .ok_or(Error::NoCacheFolder)?;
        Ok(Cache::at(base.join("tenon")))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a program of exactly this pin lies once it is built.
    pub fn program(&self, program: Program) -> PathBuf {
        self.family(program.family()).join(program.name())
    }

    /// The folder of one family at exactly its pin.
    pub fn family(&self, family: Family) -> PathBuf {
        let folder = format!("{}-{}-{}", family.folder(), family.version(), key(family));
        self.root.join("testbed").join(folder)
    }

    /// Takes the right to write below `folder`, waiting for whoever has it; `waiting` is called before a wait.
    pub fn lock(&self, folder: &Path, waiting: impl FnOnce()) -> Result<File> {
        fs::create_dir_all(folder).map_err(file("create", folder))?;
        let path = folder.join(".lock");
        let lock = File::create(&path).map_err(file("create", &path))?;
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => waiting(),
            Err(TryLockError::Error(source)) => return Err(file("lock", &path)(source)),
        }
        lock.lock().map_err(file("lock", &path))?;
        Ok(lock)
    }
}

/// Everything that decides what a build of this family gives: two clones that agree on it share the result.
fn key(family: Family) -> String {
    let parts = [
        family.go_mod(),
        family.go_sum(),
        &family.version().to_string(),
        &family.ldflags(),
        std::env::consts::OS,
        std::env::consts::ARCH,
    ];
    let mut hash = Sha256::new();
    // A family without sources of ours keeps the key it has.
    for part in parts.iter().chain(family.sources()) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    // 48 bits tell apart the handful of pins a cache ever holds.
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_lies_under_its_version_and_the_hash_of_its_pin() {
        let path = Cache::at("/c").program(Program::Kubectl);
        let text = path.to_str().unwrap();
        let version = Program::Kubectl.version();
        assert!(text.starts_with(&format!("/c/testbed/kubernetes-{version}-")), "{text}");
        assert!(text.ends_with("/kubectl"), "{text}");
    }

    #[test]
    fn families_do_not_share_a_key() {
        assert_ne!(key(Family::Kubernetes), key(Family::Helm));
        assert_ne!(key(Family::Etcd), key(Family::Helm));
        assert_ne!(key(Family::Karpenter), key(Family::Helm));
        assert_ne!(key(Family::Provider), key(Family::Helm));
    }

    #[test]
    fn a_cache_that_is_a_file_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        fs::write(&path, "not a folder").unwrap();
        let error = Cache::at(&path).lock(&path.join("testbed"), || ()).unwrap_err();
        assert!(error.to_string().starts_with("cannot create"), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn a_second_writer_is_told_that_it_waits() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let first = cache.lock(dir.path(), || panic!("nobody has it")).unwrap();
        let mut first = Some(first);
        let mut waited = false;
        // Letting go inside the callback keeps this test on one thread.
        let _second = cache.lock(dir.path(), || {
            waited = true;
            first.take();
        });
        assert!(waited);
    }
}
