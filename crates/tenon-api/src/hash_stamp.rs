//! Which hashes are written on pools, classes and claims, and what becomes of those that another controller wrote?
//!
//! A claim carries the hash of what it was made from, a pool or class the hash of what it is now, and both say in which
//! version the number was made. Numbers of two versions say nothing about each other: that is never drift. When the
//! owner's version is not ours, its claims are first given ours, and then the owner is: a controller that dies in between
//! begins again, and finds the claims it wrote before done.

use std::collections::BTreeMap;

use crate::hash::{self, CLASS_VERSION, POOL_VERSION};
use crate::names;
use crate::nodeclass::ProxmoxNodeClass;
use crate::nodepool::NodePool;

/// Annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// Where one kind of hash is written, and our version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    hash: &'static str,
    version: &'static str,
    ours: &'static str,
}

/// The stamp of pools, and of claims for their pool.
pub const POOL: Stamp = Stamp {
    hash: names::ANNOTATION_NODEPOOL_HASH,
    version: names::ANNOTATION_NODEPOOL_HASH_VERSION,
    ours: POOL_VERSION,
};

/// The stamp of classes, and of claims for their class.
pub const CLASS: Stamp = Stamp {
    hash: names::ANNOTATION_NODECLASS_HASH,
    version: names::ANNOTATION_NODECLASS_HASH_VERSION,
    ours: CLASS_VERSION,
};

impl Stamp {
    /// The annotations that say a hash of ours.
    pub fn written(&self, hash: &str) -> Annotations {
        [(self.hash, hash), (self.version, self.ours)].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// Whether an object carries a number of our version.
    pub fn is_ours(&self, annotations: &Annotations) -> bool {
        annotations.get(self.version).is_some_and(|version| version == self.ours)
    }

    /// What a pool or class has to be given, if anything, once its claims are done.
    pub fn for_owner(&self, owner: &Annotations, hash: &str) -> Option<Annotations> {
        let written = self.written(hash);
        let stands = written.iter().all(|(name, value)| owner.get(name) == Some(value));
        (!stands).then_some(written)
    }

    /// What a claim has to be given before its owner, whose hash is `hash`, is. Only while the owner's version is not ours:
    /// later a claim of another version is one that says nothing. A claim that has drifted keeps its number, which no hash
    /// of ours equals but by chance, and so stays drifted.
    pub fn for_claim(&self, owner: &Annotations, claim: ClaimStamped<'_>, hash: &str) -> Option<Annotations> {
        if self.is_ours(owner) || self.is_ours(claim.annotations) {
            return None;
        }
        let mut written = self.written(hash);
        if claim.drifted {
            written.remove(self.hash);
        }
        Some(written)
    }

    /// Whether a claim was made from something else than its owner is now. All four annotations must be there, in one
    /// version, whoever made it.
    pub fn differs(&self, owner: &Annotations, claim: &Annotations) -> bool {
        let read = |annotations: &Annotations| {
            Some((annotations.get(self.hash)?.clone(), annotations.get(self.version)?.clone()))
        };
        match (read(owner), read(claim)) {
            (Some((now, of_owner)), Some((then, of_claim))) => of_owner == of_claim && now != then,
            _ => false,
        }
    }
}

/// What matters of a claim that may be given a hash.
#[derive(Debug, Clone, Copy)]
pub struct ClaimStamped<'a> {
    /// Its annotations.
    pub annotations: &'a Annotations,
    /// Whether it has a condition `Drifted`.
    pub drifted: bool,
}

/// What a new claim says of its pool.
pub fn of_pool(pool: &NodePool) -> Annotations {
    POOL.written(&hash::of_pool(pool))
}

/// What a new claim says of its class, with what its VM is given on the way.
pub fn of_class(class: &ProxmoxNodeClass) -> Annotations {
    let mut written = CLASS.written(&hash::of_class(class));
    written.insert(names::ANNOTATION_IN_PLACE_HASH.to_owned(), hash::of_class_in_place(class));
    let pool = class.spec.resource_pool.clone().filter(|pool| !pool.is_empty());
    written.extend(pool.map(|pool| (names::ANNOTATION_RESOURCE_POOL.to_owned(), pool)));
    written
}
