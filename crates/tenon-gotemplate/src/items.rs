//! What does a range run over?

use crate::go_type::{IntKind, UintKind};
use crate::{List, Text, Value};

/// The items of a value, one after the other.
pub(crate) enum Items {
    Ints { next: i64, end: i64, kind: IntKind },
    Uints { next: u64, end: u64, kind: UintKind },
    List { list: List, next: usize },
    Map(std::vec::IntoIter<(Text, Value)>),
    None,
}

impl Items {
    /// The items, or why there can be none. `variables` are declared for them.
    pub(crate) fn of(value: &Value, variables: usize) -> Result<Items, String> {
        match value {
            Value::Int(..) | Value::Uint(..) if variables > 1 => {
                Err("can't use an integer to iterate over more than one variable".to_owned())
            }
            Value::Int(end, kind) => Ok(Items::Ints { next: 0, end: *end, kind: *kind }),
            Value::Uint(end, kind) => Ok(Items::Uints { next: 0, end: *end, kind: *kind }),
            Value::List(list) => Ok(Items::List { list: list.clone(), next: 0 }),
            Value::Map(map) => Ok(Items::Map(map.entries().into_iter())),
            Value::Missing | Value::Nil => Ok(Items::None),
            Value::Pointer(pointer) => match pointer.target() {
                Some(target) => Items::of(target, variables),
                None => Err("range can't iterate over a nil pointer".to_owned()),
            },
            // The value itself is not shown: it may be a secret.
            _ => Err(format!("range can't iterate over {}", type_name(value))),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Items::Ints { next, end, .. } => next >= end,
            Items::Uints { next, end, .. } => next >= end,
            Items::List { list, next } => *next >= list.items().len(),
            Items::Map(entries) => entries.len() == 0,
            Items::None => true,
        }
    }

    /// How many items were copied to run over them.
    pub(crate) fn copied(&self) -> usize {
        match self {
            Items::Map(entries) => entries.len(),
            _ => 0,
        }
    }

    /// Index or key, and the item.
    pub(crate) fn next(&mut self) -> Option<(Value, Value)> {
        if self.is_empty() {
            return None;
        }
        match self {
            Items::Ints { next, kind, .. } => {
                *next += 1;
                Some((Value::Missing, Value::Int(*next - 1, *kind)))
            }
            Items::Uints { next, kind, .. } => {
                *next += 1;
                Some((Value::Missing, Value::Uint(*next - 1, *kind)))
            }
            Items::List { list, next } => {
                let item = list.items().get(*next).cloned()?;
                let index = i64::try_from(*next).ok()?;
                *next += 1;
                Some((Value::int(index), item))
            }
            Items::Map(entries) => entries.next().map(|(key, value)| (Value::String(key), value)),
            Items::None => None,
        }
    }
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Value) -> String {
    value.type_().map_or_else(|| "nil".to_owned(), |type_| type_.to_string())
}
