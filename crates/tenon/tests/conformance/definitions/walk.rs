//! Which constraints do the generated definitions hold?

use serde_json::Value;

/// Something a schema refuses, and where.
#[derive(Debug, Clone)]
pub(crate) struct Constraint {
    pub(crate) kind: String,
    /// Fields with dots between them; `[]` is a list's item, `{}` a map's value.
    pub(crate) path: String,
    /// The keyword; for a rule its message; for `required` the field.
    pub(crate) name: String,
    /// What a refusal says.
    pub(crate) words: String,
    /// The field a refusal names, if it is below the path.
    pub(crate) below: Option<String>,
    /// Whether a rule compares with what was before.
    pub(crate) is_transition: bool,
    /// Whether a default fills in what is required.
    pub(crate) is_filled: bool,
}

impl Constraint {
    pub(crate) fn place(&self) -> String {
        format!("{} {}", self.kind, self.path).trim_end().to_owned()
    }
}

/// Every constraint of every definition.
pub(crate) fn constraints() -> anyhow::Result<Vec<Constraint>> {
    let mut found = Vec::new();
    for definition in tenon_api::definitions() {
        let definition = serde_json::to_value(definition)?;
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
        let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        Walk { kind, found: &mut found }.visit("", root);
    }
    Ok(found)
}

struct Walk<'a> {
    kind: String,
    found: &'a mut Vec<Constraint>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &str, schema: &Value) {
        self.keywords(path, schema);
        self.required(path, schema);
        self.rules(path, schema);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.visit(&path, field);
        }
        for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[key].is_object() {
                self.visit(&format!("{path}{mark}"), &schema[key]);
            }
        }
    }

    fn keywords(&mut self, path: &str, schema: &Value) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            if let Some(words) = words(keyword, value) {
                self.add(path, keyword, words);
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            if let Some(words) = words("pattern", &part["pattern"]) {
                self.add(path, &format!("pattern {}", part["pattern"].as_str().unwrap_or_default()), words);
            }
        }
    }

    fn required(&mut self, path: &str, schema: &Value) {
        for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let is_filled = !schema["properties"][field]["default"].is_null();
            self.add(path, &format!("required {field}"), "Required value".to_owned());
            if let Some(last) = self.found.last_mut() {
                (last.below, last.is_filled) = (Some(field.to_owned()), is_filled);
            }
        }
    }

    fn rules(&mut self, path: &str, schema: &Value) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let text = rule["rule"].as_str().unwrap_or_default();
            let words = rule["message"].as_str().map_or_else(|| format!("failed rule: {text}"), str::to_owned);
            self.add(path, rule["message"].as_str().unwrap_or(text), words);
            if let Some(last) = self.found.last_mut() {
                last.is_transition = text.contains("oldSelf");
            }
        }
    }

    fn add(&mut self, path: &str, name: &str, words: String) {
        self.found.push(Constraint {
            kind: self.kind.clone(),
            path: path.to_owned(),
            name: name.to_owned(),
            words,
            below: None,
            is_transition: false,
            is_filled: false,
        });
    }
}

/// What a server says when a keyword refuses; nothing for keywords that refuse nothing of their own.
fn words(keyword: &str, value: &Value) -> Option<String> {
    Some(match keyword {
        "pattern" => format!("should match '{}'", value.as_str()?),
        "enum" => "supported values: ".to_owned(),
        "minimum" => format!("should be greater than or equal to {}", value.as_f64()?),
        "maximum" => format!("should be less than or equal to {}", value.as_f64()?),
        "minLength" => format!("should be at least {value} chars long"),
        "maxLength" => format!("may not be more than {value} bytes"),
        "minItems" => format!("should have at least {value} items"),
        "maxItems" | "maxProperties" => format!("must have at most {value} items"),
        "format" if *value == "date-time" => "must be of type date-time".to_owned(),
        "format" if *value == "int32" => "must be of type integer with format int32".to_owned(),
        "x-kubernetes-list-type" if *value == "set" || *value == "map" => "Duplicate value".to_owned(),
        "minProperties" | "multipleOf" | "uniqueItems" | "not" | "oneOf" => format!("no words known for {keyword}"),
        _ => return None,
    })
}
