//! How the table becomes values: calls, parameters and the formats of property strings.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Num,
    Text,
    List,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int => "integer",
            Self::Num => "number",
            Self::Text => "string",
            Self::List => "array",
        }
    }
}

/// How a text is read further.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// A format with a name of its own, which may still be a property string.
    Named(String),
    /// A property string whose parts the call itself declares.
    Parts(String),
}

/// One parameter, or one part of a property string.
#[derive(Clone, Debug)]
pub(crate) struct Prop {
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
    /// The part that may stand without its name.
    pub(crate) is_key: bool,
    /// How many of a numbered parameter there are.
    pub(crate) count: Option<u32>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) needs: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) choices: Vec<String>,
    pub(crate) pattern: Option<(String, Regex)>,
    /// This is another name for that part; and the part that takes this name as its value.
    pub(crate) alias: Option<(String, Option<String>)>,
}

/// Parameters by name; a numbered one ends in `#`.
pub(crate) type Props = BTreeMap<String, Prop>;

/// Who may call, before anything else is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rights {
    World,
    Everybody,
    Check(Value),
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct CallSpec {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) rights: Rights,
    pub(crate) props: Props,
}

/// Everything the table says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub(crate) formats: BTreeMap<String, Props>,
    pub(crate) calls: Vec<CallSpec>,
    /// The keys a VM's config may have.
    pub(crate) options: Props,
}

const DISKS: &[(&str, u32)] = &[("ide", 4), ("scsi", 31), ("virtio", 16), ("sata", 6)];

/// Reads a table; the error names the line that is wrong.
pub(super) fn read(table: &str) -> Result<Schema, String> {
    let mut reader = Reader::default();
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        reader.line(line).ok_or_else(|| format!("cannot read `{line}`"))?;
    }
    let options = reader.groups.get("options").cloned().unwrap_or_default();
    Ok(Schema { formats: reader.formats, calls: reader.calls, options })
}

/// A table with the differences of another release after what stands under the same heading.
pub(super) fn merge(table: &str, differences: &str) -> String {
    let mut by_heading: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut heading = "";
    for line in differences.lines() {
        if line.starts_with(' ') {
            by_heading.entry(heading).or_default().push(line);
        } else {
            heading = line;
        }
    }
    let mut merged = Vec::new();
    let mut open = "";
    // An empty heading at the end closes the last block.
    for line in table.lines().chain(["end"]) {
        if !line.starts_with(' ') {
            merged.extend(by_heading.remove(open).unwrap_or_default());
            open = line;
        }
        merged.push(line);
    }
    merged.pop();
    merged.join("\n")
}

#[derive(Default)]
struct Reader {
    formats: BTreeMap<String, Props>,
    groups: BTreeMap<String, Props>,
    calls: Vec<CallSpec>,
    open: Option<Open>,
}

enum Open {
    Format(String),
    Group(String),
    Call,
}

impl Reader {
    fn line(&mut self, line: &str) -> Option<()> {
        let Some(body) = line.strip_prefix(' ') else {
            return self.open(line);
        };
        if let Some(rights) = body.strip_prefix('!') {
            self.calls.last_mut()?.rights = match rights {
                "world" => Rights::World,
                "all" => Rights::Everybody,
                check => Rights::Check(serde_json::from_str(check).ok()?),
            };
            return Some(());
        }
        let taken = match body.split_at_checked(1)? {
            ("@", group) => self.groups.get(group)?.clone(),
            ("+", format) => self.formats.get(format)?.clone(),
            ("-", _) => Props::new(),
            _ => Props::from([prop(body)?]),
        };
        let Self { formats, groups, calls, open } = self;
        let target = match open.as_ref()? {
            Open::Format(name) => formats.get_mut(name)?,
            Open::Group(name) => groups.get_mut(name)?,
            Open::Call => &mut calls.last_mut()?.props,
        };
        if let Some(name) = body.strip_prefix('-') {
            // What is taken away must have been there.
            target.remove(name)?;
        }
        target.extend(taken);
        Some(())
    }

    fn open(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        self.open = Some(match word {
            "format" => {
                self.formats.insert(rest.into(), Props::new());
                Open::Format(rest.into())
            }
            "group" => {
                self.groups.insert(rest.into(), Props::new());
                Open::Group(rest.into())
            }
            _ => {
                let (method, path, rights) = (word.into(), rest.into(), Rights::Everybody);
                self.calls.push(CallSpec { method, path, rights, props: Props::new() });
                Open::Call
            }
        });
        Some(())
    }
}

fn prop(line: &str) -> Option<(String, Prop)> {
    let (line, pattern) = match line.split_once(" ~") {
        Some((line, pattern)) => (line, Some((pattern.to_string(), Regex::new(&format!("^(?:{pattern})$")).ok()?))),
        None => (line, None),
    };
    let mut words = line.split(' ');
    let (name, count) = name_and_count(words.next()?)?;
    let kind = words.next()?;
    let mut prop = Prop { pattern, count, ..bare(kind)? };
    while let Some(word) = words.next() {
        match word.split_once(':') {
            _ if word == "key" => prop.is_key = true,
            _ if word == "as" => prop.alias = prop.alias.map(|(part, _)| (part, words.next().map(str::to_owned))),
            _ if word.starts_with('<') => prop.format = Some(Format::Named(word.trim_matches(['<', '>']).into())),
            _ if word.starts_with('{') => prop.format = Some(Format::Parts(word.trim_matches(['{', '}']).into())),
            Some(("min", text)) => prop.min = Some(text.parse().ok()?),
            Some(("max", text)) => prop.max = Some(text.parse().ok()?),
            Some(("minlen", text)) => prop.min_length = Some(text.parse().ok()?),
            Some(("maxlen", text)) => prop.max_length = Some(text.parse().ok()?),
            Some(("needs", text)) => prop.needs = Some(text.into()),
            Some(("enum", "@disks")) => prop.choices = disks(),
            Some(("enum", text)) => prop.choices = text.split('|').map(str::to_owned).collect(),
            _ => return None,
        }
    }
    Some((name, prop))
}

fn bare(kind: &str) -> Option<Prop> {
    let (alias, optional) = (kind.strip_prefix("->"), kind.ends_with('?') || kind.starts_with("->"));
    let kind = match kind.trim_end_matches('?') {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "num" => Kind::Num,
        "list" => Kind::List,
        "str" => Kind::Text,
        _ if alias.is_some() => Kind::Text,
        _ => return None,
    };
    Some(Prop {
        kind,
        optional,
        is_key: false,
        count: None,
        min: None,
        max: None,
        min_length: None,
        max_length: None,
        needs: None,
        format: None,
        choices: Vec::new(),
        pattern: None,
        alias: alias.map(|part| (part.to_string(), None)),
    })
}

fn name_and_count(word: &str) -> Option<(String, Option<u32>)> {
    match word.strip_suffix(']').and_then(|word| word.split_once('[')) {
        Some((stem, count)) => Some((format!("{stem}#"), Some(count.parse().ok()?))),
        None => Some((word.to_string(), None)),
    }
}

/// Every key a disk can have, in PVE's order.
fn disks() -> Vec<String> {
    let numbered = DISKS.iter().flat_map(|(bus, count)| (0..*count).map(move |n| format!("{bus}{n}")));
    numbered.chain(["efidisk0", "tpmstate0"].map(String::from)).collect()
}
