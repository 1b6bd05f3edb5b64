//! Rule: files and functions stay small enough to read at one sitting.
//!
//! What is larger today may be listed in `xtask/size-exceptions.toml`. The list is a ratchet: an entry must be exactly
//! as large as the thing it excuses, and no commit may add or raise one.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use proc_macro2::Span;
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, FnArg, ImplItem, Item, ItemFn, ItemImpl, Signature, TraitItemFn};

use super::Problem;
use crate::generate;
use crate::tree::Tree;

/// Most files should have 80 to 250 lines; past this one, a stranger gets lost.
const FILE_LINES: usize = 400;
/// A file of tests is a list, and a list may be longer.
const TEST_FILE_LINES: usize = 800;
/// Most functions should have at most 40 lines; past this one, it does two things.
const FUNCTION_LINES: usize = 70;
/// More parameters than this want to be a struct.
const PARAMETERS: usize = 4;

const LIST: &str = "xtask/size-exceptions.toml";

/// What is excused: place to size.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Exceptions {
    files: BTreeMap<String, usize>,
    functions: BTreeMap<String, usize>,
}

/// Something that was measured.
struct Measured {
    /// The key in the list: a path, or `path::function`.
    key: String,
    line: usize,
    size: usize,
    limit: usize,
    is_file: bool,
}

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let current = tree.texts.get(Path::new(LIST)).map(String::as_str);
    let exceptions = current.map(parse).transpose()?.unwrap_or_default();
    let mut problems = growth(tree, &exceptions)?;
    let mut excused = Vec::new();
    for (path, source) in &tree.sources {
        let text = tree.texts.get(path).map(String::as_str).unwrap_or_default();
        let is_table = text.lines().next().is_some_and(|opening| opening.starts_with("//! Table:"));
        if is_table || generate::is_generated(path) {
            continue;
        }
        let mut meter = Meter { path: path.display().to_string(), measured: Vec::new(), problems: Vec::new() };
        meter.visit_file(source);
        meter.measured.push(measure_file(path, text, source));
        for thing in meter.measured {
            let list = if thing.is_file { &exceptions.files } else { &exceptions.functions };
            let allowed = list.get(&thing.key).copied();
            problems.extend(judge(path, &thing, allowed));
            if thing.size > thing.limit {
                excused.push(thing.key);
            }
        }
        problems.extend(meter.problems);
    }
    let listed = exceptions.files.keys().chain(exceptions.functions.keys());
    let needless = listed.filter(|key| !excused.contains(key));
    problems
        .extend(needless.map(|key| Problem::new(LIST, 0, format!("`{key}` is small enough now: remove the entry"))));
    Ok(problems)
}

fn parse(text: &str) -> anyhow::Result<Exceptions> {
    toml::from_str(text).with_context(|| format!("cannot read {LIST}"))
}

fn judge(path: &Path, thing: &Measured, allowed: Option<usize>) -> Option<Problem> {
    let Measured { key, line, size, limit, .. } = thing;
    let message = match allowed {
        None if size > limit => format!("`{key}` has {size} lines; {limit} are allowed: split it"),
        Some(allowed) if size > limit && *size > allowed => {
            format!("`{key}` grew from {allowed} to {size} lines: split it")
        }
        Some(allowed) if size > limit && *size < allowed => {
            format!("`{key}` shrank from {allowed} to {size} lines: lower its entry in {LIST}")
        }
        _ => return None,
    };
    Some(Problem::new(path, *line, message))
}

/// Compares the list with every version of it that was ever committed: it may only shrink.
fn growth(tree: &Tree, current: &Exceptions) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    // A repository without a commit has no history to compare with.
    if tree.git(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
        return Ok(problems);
    }
    if tree.git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
        eprintln!(
            "note: this clone is shallow, so the size exceptions cannot be compared with those of earlier commits"
        );
    }
    for commit in tree.git(&["log", "--format=%H", "--diff-filter=AM", "--", LIST])?.lines() {
        let earlier = parse(&tree.git(&["show", &format!("{commit}:{LIST}")])?)?;
        let lists = [(&current.files, &earlier.files), (&current.functions, &earlier.functions)];
        for (now, then) in lists {
            let grown = now.iter().filter(|(key, size)| then.get(*key).is_none_or(|before| before < size));
            problems.extend(grown.map(|(key, _)| {
                Problem::new(LIST, 0, format!("`{key}` was added or raised: the list may only shrink"))
            }));
        }
    }
    problems.dedup();
    Ok(problems)
}

fn measure_file(path: &Path, text: &str, source: &syn::File) -> Measured {
    let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
    let inline_tests: usize = source.items.iter().filter_map(inline_test_lines).sum();
    Measured {
        key: path.display().to_string(),
        line: 0,
        size: text.lines().count() - inline_tests,
        limit: if is_test { TEST_FILE_LINES } else { FILE_LINES },
        is_file: true,
    }
}

fn inline_test_lines(item: &Item) -> Option<usize> {
    let Item::Mod(module) = item else { return None };
    (module.content.is_some() && module.attrs.iter().any(is_cfg_test)).then(|| lines(module.span()))
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
}

fn lines(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

/// Whether a function's parameters are ours to choose; a method of somebody's trait takes what the trait says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freedom {
    OurSignature,
    TraitSignature,
}

/// Walks one file and measures every function with a body.
struct Meter {
    path: String,
    measured: Vec<Measured>,
    problems: Vec<Problem>,
}

impl Meter {
    fn function(&mut self, signature: &Signature, body: &Block, freedom: Freedom) {
        let start = signature.span().start().line;
        self.measured.push(Measured {
            key: format!("{}::{}", self.path, signature.ident),
            line: start,
            size: body.span().end().line - start + 1,
            limit: FUNCTION_LINES,
            is_file: false,
        });
        let parameters = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).count();
        if parameters > PARAMETERS && freedom == Freedom::OurSignature {
            let message = format!(
                "`{}` takes {parameters} parameters; more than {PARAMETERS} want to be a struct",
                signature.ident
            );
            self.problems.push(Problem::new(&self.path, start, message));
        }
    }
}

impl<'ast> Visit<'ast> for Meter {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function(&function.sig, &function.block, Freedom::OurSignature);
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let freedom = if block.trait_.is_some() { Freedom::TraitSignature } else { Freedom::OurSignature };
        for item in &block.items {
            if let ImplItem::Fn(function) = item {
                self.function(&function.sig, &function.block, freedom);
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body, Freedom::OurSignature);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
