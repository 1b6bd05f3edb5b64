//! Of which Go type is a value?
//!
//! Templates see types in a few places: a function refuses an argument of another type, a comparison two kinds that do
//! not go together, `%T` prints the name. Everything here is known when the program is written, so a type is `Copy`.

use std::fmt;

/// A Go type, as far as template data and functions need one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`: takes every value.
    Any,
    /// `bool`.
    Bool,
    /// A signed number.
    Int(IntKind),
    /// An unsigned number.
    Uint(UintKind),
    /// `float64`.
    Float,
    /// `complex128`.
    Complex,
    /// `string`.
    String,
    /// A slice of that type.
    List(&'static Type),
    /// A map from strings to that type.
    Map(&'static Type),
    /// A struct.
    Struct(&'static StructType),
    /// A pointer to that type.
    Pointer(&'static Type),
    /// What built-in functions take: any value, even the one that is missing.
    Reflect,
}

/// Which signed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntKind {
    /// `int`, of 64 bits.
    Int,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
}

/// Which unsigned number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UintKind {
    /// `uint`, of 64 bits.
    Uint,
    /// `uint8`, a byte.
    Uint8,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
}

/// A struct: its name and its fields in order.
#[derive(Debug)]
pub struct StructType {
    /// The name with its package, as `%T` prints it.
    pub name: &'static str,
    /// The fields.
    pub fields: &'static [Field],
    /// How the struct prints itself, if it has a `String` method: printed text, JSON and YAML hold that text.
    pub text: Option<fn(&crate::Struct) -> String>,
}

impl PartialEq for StructType {
    fn eq(&self, other: &StructType) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for StructType {}

/// One field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name that templates use; JSON uses it as well.
    pub name: &'static str,
    /// The key in YAML; `-` hides the field wherever the whole struct is shown.
    pub yaml: &'static str,
    /// Whether YAML leaves the field out while it is empty.
    pub omit_empty: bool,
    /// Its type.
    pub type_: Type,
}

impl Field {
    /// Whether only templates that name it see it.
    pub fn is_hidden(&self) -> bool {
        self.yaml == "-"
    }
}

impl Type {
    /// `int`.
    pub const INT: Type = Type::Int(IntKind::Int);
    /// `[]string`.
    pub const STRINGS: Type = Type::List(&Type::String);
    /// `map[string]string`.
    pub const STRING_MAP: Type = Type::Map(&Type::String);
    /// `[]interface {}`.
    pub const ANYS: Type = Type::List(&Type::Any);
    /// `map[string]interface {}`.
    pub const ANY_MAP: Type = Type::Map(&Type::Any);

    /// Whether `nil` may stand for a value of this type.
    pub(crate) fn can_be_nil(self) -> bool {
        matches!(self, Type::Any | Type::List(_) | Type::Map(_) | Type::Pointer(_) | Type::Reflect)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Any => f.write_str("interface {}"),
            Type::Bool => f.write_str("bool"),
            Type::Int(IntKind::Int) => f.write_str("int"),
            Type::Int(IntKind::Int32) => f.write_str("int32"),
            Type::Int(IntKind::Int64) => f.write_str("int64"),
            Type::Uint(UintKind::Uint) => f.write_str("uint"),
            Type::Uint(UintKind::Uint8) => f.write_str("uint8"),
            Type::Uint(UintKind::Uint32) => f.write_str("uint32"),
            Type::Uint(UintKind::Uint64) => f.write_str("uint64"),
            Type::Float => f.write_str("float64"),
            Type::Complex => f.write_str("complex128"),
            Type::String => f.write_str("string"),
            Type::List(item) => write!(f, "[]{item}"),
            Type::Map(item) => write!(f, "map[string]{item}"),
            Type::Struct(struct_) => f.write_str(struct_.name),
            Type::Pointer(to) => write!(f, "*{to}"),
            Type::Reflect => f.write_str("reflect.Value"),
        }
    }
}
