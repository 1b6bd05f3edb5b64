//! Structs, and pointers to them.

use std::rc::Rc;

use crate::Value;
use crate::go_type::{StructType, Type};

/// A struct with its fields in the order of its type.
#[derive(Debug, Clone)]
pub struct Struct {
    type_: &'static StructType,
    fields: Rc<[Value]>,
}

/// A pointer.
#[derive(Debug, Clone)]
pub struct Pointer {
    to: &'static Type,
    target: Option<Rc<Value>>,
}

impl Struct {
    /// A struct; `fields` has one value for each field of the type, in order.
    pub fn new(type_: &'static StructType, fields: Vec<Value>) -> Struct {
        debug_assert_eq!(type_.fields.len(), fields.len(), "{}", type_.name);
        Struct { type_, fields: fields.into() }
    }

    /// Its type.
    pub fn type_(&self) -> &'static StructType {
        self.type_
    }

    /// The value of a field, by its name.
    pub fn get(&self, name: &[u8]) -> Option<&Value> {
        let at = self.type_.fields.iter().position(|field| field.name.as_bytes() == name)?;
        self.fields.get(at)
    }

    /// The values of all fields, also of those that are not shown.
    pub(crate) fn all_fields(&self) -> &[Value] {
        &self.fields
    }

    /// The fields that are shown when the whole struct is, with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&'static crate::Field, &Value)> {
        self.type_.fields.iter().zip(self.fields.iter()).filter(|(field, _)| !field.is_hidden())
    }
}

impl Pointer {
    /// A pointer to a value.
    pub fn new(to: &'static Type, target: Value) -> Pointer {
        Pointer { to, target: Some(Rc::new(target)) }
    }

    /// The nil pointer.
    pub fn nil(to: &'static Type) -> Pointer {
        Pointer { to, target: None }
    }

    /// What it points to.
    pub fn target(&self) -> Option<&Value> {
        self.target.as_deref()
    }

    /// The type it points to.
    pub(crate) fn to(&self) -> &'static Type {
        self.to
    }

    /// Whether both point to the same place.
    pub(crate) fn is_same(&self, other: &Pointer) -> bool {
        match (&self.target, &other.target) {
            (Some(one), Some(other)) => Rc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}
