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
mod table_8_4;

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub(crate) use check::check;
pub(crate) use formats::words;
pub(crate) use print::lines;
pub(crate) use property::parse_property;
pub(crate) use read::{CallSpec, Kind, Prop, Props, Rights, Schema};

use crate::params::Raw;
use crate::version::PveVersion;

/// The schema of the newest release, read once.
pub(crate) fn schema() -> &'static Schema {
    of(PveVersion::V9_2)
}

/// The schema of a release, read once.
pub(crate) fn of(version: PveVersion) -> &'static Schema {
    static NEW: OnceLock<Schema> = OnceLock::new();
    static OLD: OnceLock<Schema> = OnceLock::new();
    // The tables are part of this program; a test reads them, so a mistake in them never gets here.
    match version {
        PveVersion::V9_2 => NEW.get_or_init(|| read::read(table::TABLE).unwrap_or_default()),
        PveVersion::V8_4 => OLD.get_or_init(|| read::read(&old_table()).unwrap_or_default()),
    }
}

fn old_table() -> String {
    read::merge(table::TABLE, table_8_4::DIFFERENCES)
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
    use super::{old_table, read, table};

    #[test]
    fn the_table_can_be_read() {
        assert!(
            read::read(table::TABLE).is_ok_and(|schema| schema.calls.len() > 100),
            "{:?}",
            read::read(table::TABLE).err()
        );
    }

    #[test]
    fn the_differences_of_8_4_can_be_read_and_all_have_a_place() {
        let (new, old) = (read::read(table::TABLE), read::read(&old_table()));
        assert_eq!(old.as_ref().map(|old| old.calls.len()), new.as_ref().map(|new| new.calls.len()));
        for heading in super::table_8_4::DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')) {
            assert!(table::TABLE.lines().any(|line| line == heading), "{heading}");
        }
    }
}
