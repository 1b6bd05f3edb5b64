//! The objects of a file for verbs that do not plan: each is read as what its reader expects.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tenon_api::NodePool;
use tenon_api::objects::Object;

use super::location::{Fault, Location};
use super::parse::{Parsed, parse};
use super::pieces::{Lists, Piece, fault, pieces};
use super::yaml;

/// One object of a file, not read yet.
pub(crate) struct Manifest<'a> {
    source: Arc<str>,
    text: &'a str,
    piece: Piece<'a>,
}

/// The objects of a text, in its order. What has no kind has an empty one.
pub(crate) fn manifests<'a>(source: &Arc<str>, text: &'a str) -> Result<Vec<Manifest<'a>>, Fault> {
    let found = pieces(source, text, Lists::Whole)?;
    Ok(found.pieces.into_iter().map(|piece| Manifest { source: Arc::clone(source), text, piece }).collect())
}

impl Manifest<'_> {
    /// What it says it is.
    pub(crate) fn kind(&self) -> String {
        let stated = || self.value_of("kind").or_else(|| self.piece.head.kind.clone());
        self.piece.head.kind.clone().filter(|_| self.piece.head.is_complete()).or_else(stated).unwrap_or_default()
    }

    fn value_of(&self, key: &str) -> Option<String> {
        yaml::value_of(&self.piece)?.get(key)?.as_str().map(str::to_owned)
    }

    /// Where it begins.
    pub(crate) fn location(&self) -> Location {
        Location::line(&self.source, self.piece.line)
    }

    /// As an object of a type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let read = yaml::typed(&self.piece);
        read.map_err(|(line, why)| fault(&self.source, self.text, line, format!("{}: {why}", self.kind())))
    }

    /// As a NodePool, with what other programs leave out.
    pub(crate) fn node_pool(&self) -> Result<NodePool, Fault> {
        match parse(std::slice::from_ref(&self.piece)).pop() {
            Some(Ok(Parsed::Object(object))) => match *object {
                Object::NodePool(pool) => Ok(*pool),
                _ => Err(self.other_version()),
            },
            Some(Err(broken)) => Err(fault(&self.source, self.text, broken.line, broken.why)),
            _ => Err(self.other_version()),
        }
    }

    fn other_version(&self) -> Fault {
        Fault { location: self.location(), why: "NodePool: only NodePool of karpenter.sh/v1 is supported".to_owned() }
    }
}
