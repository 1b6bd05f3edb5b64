//! What the API accepts: calls, parameters, types, limits, and the words with which anything else is refused.
//!
//! `table` holds the facts, `read` makes values of them, `check` holds parameters to them, `formats` knows the named
//! formats, `print` shows the table to people and programs.

mod check;
mod formats;
mod print;
mod property;
mod read;
mod table;

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub(crate) use check::check;
pub(crate) use formats::words;
pub(crate) use print::lines;
pub(crate) use property::parse_property;
pub(crate) use read::{CallSpec, Kind, Prop, Props, Rights, Schema};

use crate::params::Raw;

/// The schema, read once.
pub(crate) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    // The table is part of this program; a test reads it, so a mistake in it never gets here.
    SCHEMA.get_or_init(|| read::read(table::TABLE).unwrap_or_default())
}

/// The declaration of a VM config key such as `net0` or `cores`.
pub(crate) fn option(key: &str) -> Option<&'static Prop> {
    find(&schema().options, key)
}

/// A parameter by the name it was given, numbered or not.
pub(crate) fn find<'a>(props: &'a Props, name: &str) -> Option<&'a Prop> {
    if let Some(prop) = props.get(name) {
        return Some(prop);
    }
    let (stem, number) = numbered(name)?;
    props.get(&format!("{stem}#")).filter(|prop| prop.count.is_some_and(|count| number < count))
}

/// The letters and the number of a name such as `net0`.
pub(crate) fn numbered(name: &str) -> Option<(&str, u32)> {
    let split = name.find(|c: char| c.is_ascii_digit())?;
    let (stem, digits) = name.split_at(split);
    let plain = digits.len() == 1 || !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain && !stem.is_empty()).map(|number| (stem, number))
}

/// What a name is given: parameters of a call before they are checked.
pub(crate) type Given = BTreeMap<String, Raw>;

#[cfg(test)]
mod tests {
    use super::{read, table};

    #[test]
    fn the_table_can_be_read() {
        assert!(
            read::read(table::TABLE).is_ok_and(|schema| schema.calls.len() > 100),
            "{:?}",
            read::read(table::TABLE).err()
        );
    }
}
