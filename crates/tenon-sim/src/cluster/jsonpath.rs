//! Where in an object does a printer column look?
//!
//! The part of JSONPath that definitions use: fields, quoted fields, indexes, `[*]` and equality filters.

use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    /// `[?(@.type=="Ready")]`.
    Where(Vec<String>, String),
}

/// The first thing a path leads to.
pub(crate) fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = vec![object];
    for step in steps(path)? {
        found = found.into_iter().flat_map(|value| step.follow(value)).collect();
    }
    found.into_iter().next()
}

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let entries = || value.as_array().into_iter().flatten();
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(at) => value.get(*at).into_iter().collect(),
            Self::All => entries().collect(),
            Self::Where(fields, wanted) => {
                let is_meant = |entry: &&Value| {
                    let told = fields.iter().try_fold(*entry, |value, field| value.get(field));
                    told.is_some_and(|told| told.as_str().map_or_else(|| told.to_string(), String::from) == *wanted)
                };
                entries().filter(is_meant).collect()
            }
        }
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let path = path.trim().trim_start_matches('{').trim_end_matches('}');
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = closing(inside)?;
            steps.push(bracket(inside.get(..end)?)?);
            rest = inside.get(end + 1..)?;
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let (field, left) = field(after);
            if !field.is_empty() {
                steps.push(Step::Field(field));
            }
            rest = left;
            if rest.len() == after.len() && !rest.starts_with('[') {
                return None;
            }
        }
    }
    Some(steps)
}

/// A field up to the next dot or bracket; a backslash takes what follows as it is.
fn field(text: &str) -> (String, &str) {
    let (mut name, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            '.' | '[' => return (name, text.get(at..).unwrap_or_default()),
            _ => name.push(letter),
        }
    }
    (name, "")
}

/// Where a bracket ends that is open, quotes aside.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Option<Step> {
    let unquoted = |text: &str| text.trim().trim_matches(|letter| letter == '"' || letter == '\'').to_owned();
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (left, right) = filter.split_once("==")?;
        let fields = left.trim().strip_prefix("@.")?.split('.').map(|field| field.trim().to_owned()).collect();
        return Some(Step::Where(fields, unquoted(right)));
    }
    Some(inside.parse().map_or_else(|_| Step::Field(unquoted(inside)), Step::Index))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::first;

    #[test]
    fn paths_of_printer_columns_are_followed() {
        let object = json!({
            "metadata": { "labels": { "karpenter.sh/nodepool": "a" } },
            "status": { "conditions": [{ "type": "Other", "status": "False" }, { "type": "Ready", "status": "True" }] },
        });
        let found = |path: &str| first(&object, path).cloned();
        assert_eq!(found(".status.conditions[?(@.type==\"Ready\")].status"), Some(json!("True")));
        assert_eq!(found(".status.conditions[0].type"), Some(json!("Other")));
        assert_eq!(found(".status.conditions[*].status"), Some(json!("False")));
        assert_eq!(found(".metadata.labels.karpenter\\.sh/nodepool"), Some(json!("a")));
        assert_eq!(found(".metadata.labels['karpenter.sh/nodepool']"), Some(json!("a")));
        assert_eq!(found(".spec.missing"), None);
    }
}
