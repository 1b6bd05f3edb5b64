//! Rule: every Rust file is compiled. One that no `mod` names is dead, and nobody notices.
//!
//! The same walk says which files are part of a library or a program, and which only of tests.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::Problem;
use crate::tree::{Crate, Tree};

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let reached = reached(tree, Scope::Everything);
    let message = "no `mod` reaches this file, so nothing compiles it: declare or delete it";
    let dead = tree.sources.keys().filter(|path| !reached.contains(*path));
    Ok(dead.map(|path| Problem::new(path, 0, message)).collect())
}

/// The files of libraries and programs. Those that only tests and benchmarks compile are not among them.
pub(super) fn product_files(tree: &Tree) -> BTreeSet<PathBuf> {
    reached(tree, Scope::Product)
}

/// Whether an item is compiled for tests only.
pub(super) fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
}

/// Which code a walk visits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everything,
    /// Without tests and benchmarks.
    Product,
}

fn reached(tree: &Tree, scope: Scope) -> BTreeSet<PathBuf> {
    let mut walk = Walk { tree, scope, reached: BTreeSet::new() };
    for root in tree.crates.iter().flat_map(Crate::roots) {
        let path = tree.relative(root);
        let is_trial = path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
        if scope == Scope::Product && is_trial {
            continue;
        }
        walk.reach(&path, &parent(&path));
    }
    walk.reached
}

struct Walk<'a> {
    tree: &'a Tree,
    scope: Scope,
    reached: BTreeSet<PathBuf>,
}

impl Walk<'_> {
    /// Marks `path` and all it declares. `folder` is where its child modules lie.
    fn reach(&mut self, path: &Path, folder: &Path) {
        let Some(source) = self.tree.sources.get(path) else { return };
        if self.reached.insert(path.to_owned()) {
            self.descend(path, folder, &source.items);
            let text = self.tree.texts.get(path).map(String::as_str).unwrap_or_default();
            self.reached.extend(included(text).map(|given| normal(&parent(path).join(given))));
        }
    }

    fn descend(&mut self, path: &Path, folder: &Path, items: &[Item]) {
        for item in items {
            let Item::Mod(module) = item else { continue };
            if self.scope == Scope::Product && module.attrs.iter().any(is_cfg_test) {
                continue;
            }
            let name = module.ident.unraw().to_string();
            if let Some((_, items)) = &module.content {
                self.descend(path, &folder.join(&name), items);
            } else if let Some(given) = path_attribute(module) {
                let file = normal(&parent(path).join(given));
                self.reach(&file, &parent(&file));
            } else {
                self.reach(&folder.join(format!("{name}.rs")), &folder.join(&name));
                self.reach(&folder.join(&name).join("mod.rs"), &folder.join(&name));
            }
        }
    }
}

/// The file named by `#[path = "…"]`.
fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Files that a source takes in as they are: `include!("x.rs")`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.split("include!(\"").skip(1).filter_map(|rest| rest.split('"').next())
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}
