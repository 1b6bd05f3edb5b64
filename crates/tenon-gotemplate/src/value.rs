//! What do templates compute with?

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Failure;
use crate::go_type::{IntKind, Type, UintKind};
use crate::structs::{Pointer, Struct};

/// Values nest no deeper than this: printing and dropping them recurses.
pub const MAX_NESTING: u16 = 100;
/// What may be put into a map that others may hold already.
const MAX_SET_NESTING: u16 = 8;

/// About what an entry of a map takes, apart from its text.
const ENTRY_BYTES: usize = size_of::<(Text, Value)>() * 2;

/// A Go value. Copies are cheap and share what they hold, as Go's do.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// No value at all: what a map without the key gives. Prints as `<no value>`.
    #[default]
    Missing,
    /// An interface that holds nothing.
    Nil,
    /// `bool`.
    Bool(bool),
    /// A signed number.
    Int(i64, IntKind),
    /// An unsigned number.
    Uint(u64, UintKind),
    /// `float64`.
    Float(f64),
    /// `complex128`: real and imaginary part.
    Complex(f64, f64),
    /// `string`.
    String(Text),
    /// A slice.
    List(List),
    /// A map with strings as keys.
    Map(Map),
    /// A struct.
    Struct(Struct),
    /// A pointer, perhaps nil.
    Pointer(Pointer),
}

/// A Go string: bytes, usually UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Rc<[u8]>);

/// A slice. A slice of a slice sees the rest of its parent up to its capacity.
#[derive(Debug, Clone)]
pub struct List {
    item: &'static Type,
    items: Option<Rc<[Value]>>,
    start: usize,
    end: usize,
    nesting: u16,
}

/// A map, shared by all its copies.
#[derive(Debug, Clone)]
pub struct Map {
    item: &'static Type,
    entries: Option<Rc<RefCell<BTreeMap<Text, Value>>>>,
    nesting: Rc<Cell<u16>>,
}

impl Text {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn own_bytes(&self) -> usize {
        if Rc::strong_count(&self.0) == 1 { self.0.len() } else { 0 }
    }

    /// The text, with U+FFFD for what is not UTF-8.
    pub fn to_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl<T: AsRef<[u8]>> From<T> for Text {
    fn from(bytes: T) -> Text {
        Text(bytes.as_ref().into())
    }
}

impl std::borrow::Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl List {
    /// A list of these items. Fails when it would nest too deep.
    pub fn new(item: &'static Type, items: Vec<Value>) -> Result<List, Failure> {
        let nesting = nesting_above(items.iter())?;
        let end = items.len();
        Ok(List { item, items: Some(items.into()), start: 0, end, nesting })
    }

    /// A list of strings.
    pub fn of_strings<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> List {
        let items: Rc<[Value]> = items.into_iter().map(Value::string).collect();
        List { item: &Type::String, end: items.len(), items: Some(items), start: 0, nesting: 1 }
    }

    /// The nil slice.
    pub fn nil(item: &'static Type) -> List {
        List { item, items: None, start: 0, end: 0, nesting: 1 }
    }

    /// Whether it is the nil slice.
    pub fn is_nil(&self) -> bool {
        self.items.is_none()
    }

    /// The type of its items.
    pub fn item_type(&self) -> &'static Type {
        self.item
    }

    /// Its items.
    pub fn items(&self) -> &[Value] {
        self.items.as_deref().and_then(|items| items.get(self.start..self.end)).unwrap_or_default()
    }

    /// How far a slice of it may reach.
    pub(crate) fn capacity(&self) -> usize {
        self.items.as_ref().map_or(0, |items| items.len() - self.start)
    }

    /// The part from `from` up to `to`, which may lie beyond its end but not beyond its capacity.
    pub(crate) fn part(&self, from: usize, to: usize) -> List {
        List { start: self.start + from, end: self.start + to, ..self.clone() }
    }
}

impl Map {
    /// A map of these entries. Fails when it would nest too deep.
    pub fn new(item: &'static Type, entries: BTreeMap<Text, Value>) -> Result<Map, Failure> {
        let nesting = nesting_above(entries.values())?;
        Ok(Map { item, entries: Some(Rc::new(RefCell::new(entries))), nesting: Rc::new(Cell::new(nesting)) })
    }

    /// A map of strings.
    pub fn of_strings<'a, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (&'a String, V)>) -> Map {
        let entries = entries.into_iter().map(|(key, value)| (Text::from(key), Value::string(value))).collect();
        Map { item: &Type::String, entries: Some(Rc::new(RefCell::new(entries))), nesting: Rc::new(Cell::new(1)) }
    }

    /// The nil map.
    pub fn nil(item: &'static Type) -> Map {
        Map { item, entries: None, nesting: Rc::new(Cell::new(1)) }
    }

    /// Whether it is the nil map.
    pub fn is_nil(&self) -> bool {
        self.entries.is_none()
    }

    /// The type of its values.
    pub fn item_type(&self) -> &'static Type {
        self.item
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, |entries| entries.borrow().len())
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value under a key.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.as_ref()?.borrow().get(key).cloned()
    }

    /// Its entries in the order of their keys.
    pub fn entries(&self) -> Vec<(Text, Value)> {
        let Some(entries) = &self.entries else { return Vec::new() };
        entries.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Sets an entry for all who share the map. What holds the map is not asked, so only flat values may be set.
    pub fn set(&self, key: Text, value: Value) -> Result<(), Failure> {
        let nesting = value.nesting() + 1;
        if nesting > MAX_SET_NESTING {
            return Err(Failure::new(format!("a value of more than {MAX_SET_NESTING} levels cannot be set")));
        }
        self.nesting.set(self.nesting.get().max(nesting));
        match &self.entries {
            Some(entries) => drop(entries.borrow_mut().insert(key, value)),
            None => return Err(Failure::new("assignment to entry in nil map")),
        }
        Ok(())
    }
}

impl Value {
    /// A string.
    pub fn string(bytes: impl AsRef<[u8]>) -> Value {
        Value::String(Text::from(bytes))
    }

    /// An `int`.
    pub fn int(number: i64) -> Value {
        Value::Int(number, IntKind::Int)
    }

    /// Its type; a missing value and an empty interface have none.
    pub fn type_(&self) -> Option<Type> {
        Some(match self {
            Value::Missing | Value::Nil => return None,
            Value::Bool(_) => Type::Bool,
            Value::Int(_, kind) => Type::Int(*kind),
            Value::Uint(_, kind) => Type::Uint(*kind),
            Value::Float(_) => Type::Float,
            Value::Complex(..) => Type::Complex,
            Value::String(_) => Type::String,
            Value::List(list) => Type::List(list.item),
            Value::Map(map) => Type::Map(map.item),
            Value::Struct(struct_) => Type::Struct(struct_.type_()),
            Value::Pointer(pointer) => Type::Pointer(pointer.to()),
        })
    }

    /// The zero value of a type.
    pub fn zero(type_: Type) -> Value {
        match type_ {
            Type::Any => Value::Nil,
            Type::Reflect => Value::Missing,
            Type::Bool => Value::Bool(false),
            Type::Int(kind) => Value::Int(0, kind),
            Type::Uint(kind) => Value::Uint(0, kind),
            Type::Float => Value::Float(0.0),
            Type::Complex => Value::Complex(0.0, 0.0),
            Type::String => Value::string(""),
            Type::List(item) => Value::List(List::nil(item)),
            Type::Map(item) => Value::Map(Map::nil(item)),
            Type::Struct(type_) => {
                Value::Struct(Struct::new(type_, type_.fields.iter().map(|field| Value::zero(field.type_)).collect()))
            }
            Type::Pointer(to) => Value::Pointer(Pointer::nil(to)),
        }
    }

    /// Whether it is the zero value of its type. An empty list that is not nil is none.
    pub fn is_zero(&self) -> bool {
        match self {
            Value::Missing | Value::Nil => true,
            Value::Bool(value) => !value,
            Value::Int(number, _) => *number == 0,
            Value::Uint(number, _) => *number == 0,
            // Go looks at the bits: minus zero is not zero.
            Value::Float(number) => number.to_bits() == 0,
            Value::Complex(real, imaginary) => real.to_bits() == 0 && imaginary.to_bits() == 0,
            Value::String(text) => text.as_bytes().is_empty(),
            Value::List(list) => list.is_nil(),
            Value::Map(map) => map.is_nil(),
            Value::Struct(struct_) => struct_.all_fields().iter().all(Value::is_zero),
            Value::Pointer(pointer) => pointer.target().is_none(),
        }
    }

    /// What is at the end of pointers; `None` if that is nothing.
    pub fn indirect(&self) -> Option<&Value> {
        let mut value = self;
        loop {
            match value {
                Value::Missing | Value::Nil => return None,
                Value::Pointer(pointer) => value = pointer.target()?,
                _ => return Some(value),
            }
        }
    }

    /// Whether a condition takes it for true: it holds something, or is not zero.
    pub fn is_true(&self) -> bool {
        match self {
            Value::List(list) => !list.items().is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Struct(_) => true,
            Value::Float(number) => *number != 0.0,
            Value::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            value => !value.is_zero(),
        }
    }

    /// How many bytes it holds that no other value shares: what a function made, rather than passed on.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Value::String(text) => text.own_bytes(),
            Value::List(List { items: Some(items), .. }) if Rc::strong_count(items) == 1 => {
                size_of_val(items.as_ref()) + items.iter().map(Value::own_bytes).sum::<usize>()
            }
            Value::Map(Map { entries: Some(entries), .. }) if Rc::strong_count(entries) == 1 => {
                let of_entry = |(key, value): (&Text, &Value)| ENTRY_BYTES + key.own_bytes() + value.own_bytes();
                entries.borrow().iter().map(of_entry).sum()
            }
            _ => 0,
        }
    }

    /// How many levels of lists and maps it holds.
    fn nesting(&self) -> u16 {
        match self {
            Value::List(list) => list.nesting,
            Value::Map(map) => map.nesting.get(),
            Value::Struct(struct_) => struct_.all_fields().iter().map(Value::nesting).max().unwrap_or_default() + 1,
            Value::Pointer(pointer) => pointer.target().map_or(0, Value::nesting) + 1,
            _ => 0,
        }
    }
}

fn nesting_above<'a>(items: impl Iterator<Item = &'a Value>) -> Result<u16, Failure> {
    let nesting = items.map(Value::nesting).max().unwrap_or_default() + 1;
    if nesting > MAX_NESTING {
        return Err(Failure::new(format!("lists and maps nest deeper than {MAX_NESTING} levels")));
    }
    Ok(nesting)
}
