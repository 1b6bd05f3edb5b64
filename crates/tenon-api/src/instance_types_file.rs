//! The file that brings other sizes of VMs: a JSON list, with keys in any case.
//!
//! A controller takes only the sizes from it, because where a VM can be made is for Proxmox to say ([`read`]). A plan
//! from files takes all of it, what is offered where and at which price too ([`read_catalog`]).

mod catalog;
mod fields;
mod write;

use serde_json::value::RawValue;
use tenon_model::label_text::value_faults;
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{InstanceType, PriceFormula, Quantity};

pub use catalog::{CatalogEntry, OfferingEntry};
pub(crate) use fields::words;
use fields::{Fault, Fields};
pub use write::write;

/// A size without a word about pods takes as many as a kubelet does by default.
const DEFAULT_PODS: i64 = 110;

/// Reads the sizes of a file, which stand in place of the built-in ones.
pub fn read(text: &str) -> Result<Vec<InstanceType>, InstanceTypesError> {
    entries(text, |fields| {
        let name = label(fields.name()?)?;
        let mut capacity = fields.resources("capacity")?;
        for needed in [CPU, MEMORY] {
            if capacity.get(needed) <= Quantity::ZERO {
                return Err(Fault::new("capacity", format!("{needed} is required")));
            }
        }
        if capacity.get(PODS).is_zero() {
            capacity = capacity.with(PODS, Quantity::whole(DEFAULT_PODS));
        }
        Ok(InstanceType {
            name,
            capacity,
            overhead: fields.overhead()?,
            capacity_type: fields.capacity_type()?,
            volume_attachment_limits: fields.counts("volumeAttachmentLimits")?,
            price: fields.price()?,
        })
    })
}

/// A name that nodes are labelled with, and its family: an API server would refuse every NodeClaim with another.
fn label(name: String) -> Result<String, Fault> {
    for word in [name.as_str(), name.split('.').next().unwrap_or_default()] {
        if let Some(why) = value_faults(word).first() {
            return Err(Fault::new("name", format!("`{word}` is not a label value: {why}")));
        }
    }
    Ok(name)
}

/// Reads everything a file says: sizes, and what is offered where and at which price. What has no price gets the formula's.
pub fn read_catalog(text: &str, formula: &PriceFormula) -> Result<Vec<CatalogEntry>, InstanceTypesError> {
    entries(text, |fields| CatalogEntry::read(fields, formula))
}

fn entries<T>(text: &str, each: impl Fn(&Fields) -> Result<T, Fault>) -> Result<Vec<T>, InstanceTypesError> {
    let list: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| InstanceTypesError::File { line: error.line().max(1), why: words(&error) })?;
    let (mut names, mut read) = (std::collections::BTreeMap::new(), Vec::new());
    for (index, raw) in list.iter().enumerate() {
        let line = line_of(text, raw.get());
        let fields = Fields::read(raw.get());
        let name = fields.as_ref().ok().and_then(|fields| fields.name().ok());
        let size = name.clone().unwrap_or_else(|| format!("entry {}", index + 1));
        let fail = |fault: Fault| InstanceTypesError::Entry { size: size.clone(), line, fault: fault.to_string() };
        let entry = fields.and_then(|fields| each(&fields)).map_err(fail)?;
        if let Some(first) = names.insert(name, line) {
            return Err(fail(Fault::new("name", format!("duplicate name, first used in line {first}"))));
        }
        read.push(entry);
    }
    Ok(read)
}

/// The line on which a part of the text begins.
pub(crate) fn line_of(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Why a file of sizes cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceTypesError {
    /// It is no list in JSON.
    #[error("line {line}: the file is not a JSON list of instance types: {why}")]
    File {
        /// Where that shows.
        line: usize,
        /// What the JSON reader says.
        why: String,
    },
    /// One entry cannot be used.
    #[error("line {line}: instance type {size}: {fault}")]
    Entry {
        /// Its name, or where it stands.
        size: String,
        /// The line it begins on.
        line: usize,
        /// Which field, and what is wrong with it.
        fault: String,
    },
}

#[cfg(test)]
mod tests {
    use tenon_model::{CapacityType, Price};

    use super::*;

    #[test]
    fn a_file_of_the_reference_is_read_as_it_is() {
        let text = r#"[{"name":"big.8","capacity":{"cpu":"8","memory":"32Gi","vendor.example/gpu":1},"CapacityType":"spot",
            "Overhead":{"KubeReserved":{"cpu":"100m"},"evictionThreshold":{"memory":"100Mi"}},"offerings":[{"x":1}]},
            {"Name":"plain","Capacity":{"cpu":2,"memory":4294967296,"pods":"30"}}]"#;
        let sizes = read(text).unwrap();
        assert_eq!(sizes[0].capacity_type, CapacityType::Spot);
        assert_eq!(sizes[0].allocatable().get(CPU), Quantity::milli(7_900));
        assert_eq!(sizes[0].capacity.get("vendor.example/gpu"), Quantity::whole(1));
        assert_eq!(sizes[0].capacity.get(PODS), Quantity::whole(110));
        assert_eq!(sizes[1].allocatable(), sizes[1].capacity);
        assert_eq!(sizes[1].capacity.get(PODS), Quantity::whole(30));
    }

    #[test]
    fn a_price_is_taken_as_it_is_written_and_otherwise_left_to_the_formula() {
        let text = r#"[{"name":"a","capacity":{"cpu":1,"memory":1},"Price":0.7,"capacitytype":"spot"},
            {"name":"b","capacity":{"cpu":1,"memory":1},"price":null}]"#;
        let sizes = read(text).unwrap();
        assert_eq!(sizes[0].price(), Price::new(0.7), "it is not halved for spot");
        assert_eq!(sizes[1].price, None);
    }

    #[test]
    fn an_entry_that_cannot_be_used_is_named_with_its_fault() {
        for (text, words) in [
            ("{}", "not a JSON list"),
            ("[{\n", "line 2: the file is not"),
            ("[{}, 7]", "entry 1: name: this field is required"),
            ("[7]", "entry 1: must be an object"),
            (r#"[{"capacity":{"cpu":1,"memory":1}}]"#, "entry 1: name: this field is required"),
            ("[\n{\"name\":\"a\",\"capacity\":{\"cpu\":1}}]", "line 2: instance type a: capacity: memory is required"),
            (r#"[{"name":"a","capacity":{"cpu":"lots","memory":1}}]"#, "a: capacity.cpu: `lots`"),
            (r#"[{"name":"a","capacity":{"cpu":"-1","memory":1}}]"#, "a: capacity.cpu: `-1` must not be negative"),
            (r#"[{"name":"a","capacity":{"cpu":1,"memory":1},"capacitytype":"free"}]"#, "`free` is not one of"),
            (r#"[{"name":"a b","capacity":{"cpu":1,"memory":1}}]"#, "a b: name: `a b` is not a label value: "),
            (r#"[{"name":"a","capacity":{"cpu":1,"memory":1},"price":-1}]"#, "a: price: must be a non-negative number"),
            (
                r#"[{"name":"a","capacity":{"cpu":1,"memory":1},"price":"1"}]"#,
                "a: price: must be a non-negative number",
            ),
            (
                r#"[{"name":"a","capacity":{"cpu":1,"memory":1}},{"name":"a","capacity":{"cpu":1,"memory":1}}]"#,
                "duplicate name",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
