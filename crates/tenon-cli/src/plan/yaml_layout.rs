//! How a YAML file is laid out, seen from its line beginnings alone: where documents begin, and the items of a long list.
//!
//! Parsing YAML is slow, so a large file is taken apart first and its parts are parsed side by side. Nothing is guessed:
//! a document that is not laid out as programs write it gives `None`, and is parsed as a whole.

/// A part of a text, and the line it begins on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// What the lines at the left edge of a document say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout<'a> {
    pub(super) api_version: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
    /// The members of `items`, each as a list of one.
    pub(super) items: Option<Vec<Part<'a>>>,
}

/// The documents of a text. A line that begins with three dashes or dots divides them wherever it stands, in a text over
/// several lines too.
pub(super) fn documents(text: &str) -> Vec<Part<'_>> {
    let (mut documents, mut begin, mut begin_line) = (Vec::new(), 0, 1);
    let mut push = |from: usize, to: usize, line: usize| {
        // A fault of a document is reported at the line where it begins to say something.
        let (mut from, mut line) = (from, line);
        let part = text.get(from..to).unwrap_or_default();
        for blank in part.split_inclusive('\n').take_while(|line| !says_something(line)) {
            (from, line) = (from + blank.len(), line + 1);
        }
        if from < to {
            documents.push(Part { text: text.get(from..to).unwrap_or_default(), line });
        }
    };
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line, "---") {
            push(begin, offset, begin_line);
            (begin, begin_line) = (offset, index + 1);
        } else if is_marker(line, "...") {
            push(begin, offset, begin_line);
            (begin, begin_line) = (offset + line.len(), index + 2);
        }
        offset += line.len();
    }
    push(begin, text.len(), begin_line);
    documents
}

/// Whether a line is more than blank, a comment, a directive or a bare marker.
fn says_something(line: &str) -> bool {
    let line = line.strip_prefix("---").unwrap_or(line).trim();
    !(line.is_empty() || line.starts_with('#') || line.starts_with('%'))
}

/// Whether a document is written down as nothing: `null` is what an empty one means.
pub(super) fn is_null(document: Part<'_>) -> bool {
    let mut lines = document.text.lines().filter(|line| says_something(line));
    let first = lines.next().map(|line| line.strip_prefix("---").unwrap_or(line));
    let word = first.and_then(|line| line.split('#').next()).map(str::trim);
    matches!(word, Some("null" | "~" | "Null" | "NULL")) && lines.next().is_none()
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Where a scan stands in the list under `items`.
struct Items {
    /// How far its dashes are from the left edge.
    indent: Option<usize>,
    /// Where its members begin, and on which line.
    begins: Vec<(usize, usize)>,
    /// Where it ends.
    end: Option<usize>,
}

/// The layout of a document that is a mapping in block style; `None` if it is not, or may not be.
pub(super) fn layout(document: Part<'_>) -> Option<Layout<'_>> {
    let mut layout = Layout::default();
    let mut items: Option<Items> = None;
    let (mut offset, mut has_keys) = (0, false);
    for (index, line) in document.text.split_inclusive('\n').enumerate() {
        let begin = offset;
        offset += line.len();
        let bare = line.trim_start_matches(' ');
        let indent = line.len() - bare.len();
        let bare = bare.trim_end();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let is_dash = bare == "-" || bare.starts_with("- ");
        if let Some(items) = items.as_mut().filter(|items| items.end.is_none()) {
            let is_first = items.indent.is_none();
            let edge = *items.indent.get_or_insert(indent);
            if indent > edge {
                continue;
            }
            if is_dash && indent == edge {
                items.begins.push((begin, document.line + index));
                continue;
            }
            if indent > 0 || is_first {
                return None;
            }
            items.end = Some(begin);
        }
        if indent > 0 || (is_dash && has_keys) {
            continue;
        }
        let (key, value) = entry(bare)?;
        has_keys = true;
        match key {
            // Which of two is meant, no layout tells.
            "apiVersion" if layout.api_version.is_some() => return None,
            "kind" if layout.kind.is_some() => return None,
            "items" if items.is_some() || layout.items.is_some() => return None,
            "apiVersion" => layout.api_version = Some(scalar(value)?),
            "kind" => layout.kind = Some(scalar(value)?),
            "items" if value == "[]" => layout.items = Some(Vec::new()),
            "items" if value.is_empty() => items = Some(Items { indent: None, begins: Vec::new(), end: None }),
            "items" => return None,
            _ => {}
        }
    }
    if let Some(items) = items {
        layout.items = Some(parts(document.text, &items)?);
    }
    Some(layout)
}

fn parts<'a>(text: &'a str, items: &Items) -> Option<Vec<Part<'a>>> {
    let end = items.end.unwrap_or(text.len());
    let ends = items.begins.iter().skip(1).map(|(begin, _)| *begin).chain([end]);
    items
        .begins
        .iter()
        .zip(ends)
        .map(|((begin, line), end)| Some(Part { text: text.get(*begin..end)?, line: *line }))
        .collect()
}

/// A key at the left edge and what follows it on its line.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    let value = value.is_empty().then_some("").or_else(|| value.strip_prefix([' ', '\t']))?;
    let value = value.find(" #").map_or(value, |comment| value.get(..comment).unwrap_or(value)).trim();
    is_plain.then_some((key, if value.starts_with('#') { "" } else { value }))
}

/// A word, bare or in quotes.
fn scalar(value: &str) -> Option<&str> {
    let bare = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(value);
    let is_word = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-".contains(&byte));
    is_word.then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, &str)> {
        documents(text).into_iter().map(|part| (part.line, part.text)).collect()
    }

    #[test]
    fn documents_begin_at_their_markers_and_keep_their_lines() {
        assert_eq!(texts("a: 1\n---\nb: 2\n"), [(1, "a: 1\n"), (3, "b: 2\n")]);
        assert_eq!(texts("%YAML 1.2\n---\r\na: |\n  ---\n...\n# end\n"), [(3, "a: |\n  ---\n")]);
        assert_eq!(texts("--- {a: 1}\n--- # x\n"), [(1, "--- {a: 1}\n")]);
        assert_eq!(texts("a: 1\n----\nb: 2"), [(1, "a: 1\n----\nb: 2")]);
        assert_eq!(texts("\n# only words\n---\n"), []);
    }

    #[test]
    fn null_is_nothing_and_what_only_begins_with_it_is_something() {
        for (text, nothing) in [
            ("null", true),
            ("--- ~ # gone\n# words\n", true),
            ("# words\nnull\n\n", true),
            ("null: 1", false),
            ("null\nx: 1", false),
            ("nulls", false),
        ] {
            assert_eq!(is_null(Part { text, line: 1 }), nothing, "{text}");
        }
    }

    #[test]
    fn a_list_as_programs_write_it_is_taken_apart() {
        for indent in ["", "  "] {
            let text = format!(
                "apiVersion: v1\nitems:\n{indent}- apiVersion: v1\n{indent}  kind: Pod\n{indent}  x: |\n{indent}     - y\n\
                 {indent}- kind: Node # n\nkind: \"List\" # all\nmetadata:\n  a: b\n"
            );
            let layout = layout(Part { text: &text, line: 10 }).unwrap();
            assert_eq!((layout.api_version, layout.kind), (Some("v1"), Some("List")));
            let items = layout.items.unwrap();
            assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [12, 16]);
            assert!(items[0].text.ends_with("- y\n") && items[1].text.starts_with(&format!("{indent}- kind: Node")));
        }
    }

    #[test]
    fn what_is_laid_out_otherwise_is_left_whole() {
        for text in [
            "{kind: Pod}",
            "- kind: Pod",
            "? kind\n: Pod",
            "kind: |\n  Pod",
            "kind: *k",
            "items: [{}]\nkind: List",
            "items:\n  a: 1\nkind: List",
            "items:\n  - a\n - b\n",
            "just words",
            "kind: Pod\nkind: Secret\n",
            "apiVersion: v1\napiVersion: v1\n",
            "kind: List\nitems:\n- a\nitems:\n- b\n",
            "kind: List\nitems: []\nitems:\n- b\n",
        ] {
            assert_eq!(layout(Part { text, line: 1 }), None, "{text}");
        }
        let empty = layout(Part { text: "items: []\nkind: PodList\n", line: 1 }).unwrap();
        assert_eq!(empty.items, Some(Vec::new()));
        let other = layout(Part { text: "list:\n- a\n- b\nkind: Pod\n", line: 1 }).unwrap();
        assert_eq!((other.kind, other.items), (Some("Pod"), None));
    }
}
