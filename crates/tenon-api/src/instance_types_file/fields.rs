//! The fields of one entry of the file: found in any case, read by type, and named when they are wrong.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use tenon_model::{CapacityType, Operator, Overhead, Price, Quantity, Requirement, Resources};

use crate::names::canonical_label;

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Fault {
    field: String,
    why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divide = if self.field.is_empty() { "" } else { ": " };
        write!(f, "{}{divide}{}", self.field, self.why)
    }
}

impl Fault {
    pub(super) fn new(field: impl Into<String>, why: impl Into<String>) -> Fault {
        Fault { field: field.into(), why: why.into() }
    }
}

/// What the JSON reader says, without its place: that is told in lines of the file.
pub(crate) fn words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    words.split(" at line ").next().unwrap_or_default().to_owned()
}

/// An object of the file, its keys in lower case: the reference reads them in any.
#[derive(Debug)]
pub(super) struct Fields {
    path: String,
    values: BTreeMap<String, Value>,
}

impl Fields {
    pub(super) fn read(text: &str) -> Result<Fields, Fault> {
        let value: Value = serde_json::from_str(text).map_err(|error| Fault::new("", words(&error)))?;
        Fields::of(&value, String::new())
    }

    fn of(value: &Value, path: String) -> Result<Fields, Fault> {
        let Some(pairs) = value.as_object() else {
            return Err(Fault::new(path, "must be an object"));
        };
        let values = pairs.iter().map(|(key, value)| (key.to_lowercase(), value.clone())).collect();
        Ok(Fields { path, values })
    }

    /// A field that says something; `null` says nothing.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(&key.to_lowercase()).filter(|value| !value.is_null())
    }

    pub(super) fn fault(&self, key: &str, why: impl Into<String>) -> Fault {
        Fault::new(self.path_of(key), why)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn name(&self) -> Result<String, Fault> {
        self.text("name")?.filter(|name| !name.is_empty()).ok_or_else(|| self.fault("name", "this field is required"))
    }

    /// What a size or an offering costs, if it says so.
    pub(super) fn price(&self) -> Result<Option<Price>, Fault> {
        let Some(value) = self.get("price") else { return Ok(None) };
        let price = value.as_f64().filter(|price| price.is_finite() && *price >= 0.0);
        price.map(|price| Some(Price::new(price))).ok_or_else(|| self.fault("price", "must be a non-negative number"))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| self.fault(key, "must be a string"))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.fault(key, "must be true or false"))
    }

    pub(super) fn count(&self, key: &str) -> Result<Option<u32>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let count = value.as_u64().and_then(|number| u32::try_from(number).ok());
        count.map(Some).ok_or_else(|| self.fault(key, "must be a non-negative integer"))
    }

    /// The objects of a list, if there is one.
    pub(super) fn list(&self, key: &str) -> Result<Option<Vec<Fields>>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = value.as_array().ok_or_else(|| self.fault(key, "must be a list"))?;
        let each = |(index, value)| Fields::of(value, format!("{}[{index}]", self.path_of(key)));
        list.iter().enumerate().map(each).collect::<Result<_, _>>().map(Some)
    }

    /// Counts by name, if there are any.
    pub(super) fn counts(&self, key: &str) -> Result<BTreeMap<String, u32>, Fault> {
        let Some(value) = self.get(key) else { return Ok(BTreeMap::new()) };
        let map = value.as_object().ok_or_else(|| self.fault(key, "must be a map"))?;
        let count = |(name, value): (&String, &Value)| {
            let count = value.as_u64().and_then(|number| u32::try_from(number).ok());
            let bad = || self.fault(&format!("{key}.{name}"), "must be a non-negative integer");
            count.map(|count| (name.clone(), count)).ok_or_else(bad)
        };
        map.iter().map(count).collect()
    }

    /// Amounts by resource, whatever the resources are called.
    pub(super) fn resources(&self, key: &str) -> Result<Resources, Fault> {
        let Some(value) = self.get(key) else { return Ok(Resources::default()) };
        let map = value.as_object().ok_or_else(|| self.fault(key, "must be a map"))?;
        let amount = |(resource, amount): (&String, &Value)| {
            let field = || format!("{key}.{resource}");
            let text = match amount {
                Value::String(text) => text.trim().to_owned(),
                Value::Number(number) => number.to_string(),
                _ => return Err(self.fault(&field(), "must be a quantity such as \"2Gi\" or 4")),
            };
            let amount: Quantity = text.parse().map_err(|error| self.fault(&field(), format!("{error}")))?;
            if amount < Quantity::ZERO {
                return Err(self.fault(&field(), format!("`{text}` must not be negative")));
            }
            Ok((resource.clone(), amount))
        };
        map.iter().map(amount).collect()
    }

    pub(super) fn overhead(&self) -> Result<Overhead, Fault> {
        let Some(value) = self.get("overhead") else { return Ok(Overhead::default()) };
        let fields = Fields::of(value, self.path_of("overhead"))?;
        Ok(Overhead {
            kube_reserved: fields.resources("kubeReserved")?,
            system_reserved: fields.resources("systemReserved")?,
            eviction_threshold: fields.resources("evictionThreshold")?,
        })
    }

    pub(super) fn capacity_type(&self) -> Result<CapacityType, Fault> {
        Ok(match self.text("capacitytype")?.as_deref() {
            None | Some("" | "on-demand") => CapacityType::OnDemand,
            Some("spot") => CapacityType::Spot,
            Some("reserved") => CapacityType::Reserved,
            Some(other) => {
                let why = format!("`{other}` is not one of on-demand, spot, reserved");
                return Err(self.fault("capacitytype", why));
            }
        })
    }

    /// One `{key, operator, values}`, under the label's name of today.
    pub(super) fn requirement(&self) -> Result<(String, Requirement), Fault> {
        let missing = |key: &str| self.fault(key, "this field is required");
        let label = self.text("key")?.ok_or_else(|| missing("key"))?;
        let name = self.text("operator")?.ok_or_else(|| missing("operator"))?;
        let operator = match name.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            "Gte" => Operator::Gte,
            "Lte" => Operator::Lte,
            _ => {
                let known = "In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte";
                return Err(self.fault("operator", format!("`{name}` is not one of {known}")));
            }
        };
        let values = match self.get("values") {
            None => Vec::new(),
            Some(value) => {
                let texts =
                    value.as_array().and_then(|list| list.iter().map(|one| Some(one.as_str()?.to_owned())).collect());
                texts.ok_or_else(|| self.fault("values", "must be a list of strings"))?
            }
        };
        let bad = || self.fault("values", format!("operator {name} needs exactly one non-negative integer"));
        let requirement = Requirement::new(operator, values).ok_or_else(bad)?;
        Ok((canonical_label(&label).to_owned(), requirement))
    }
}
