//! A struct with a field of every kind that template data has, as the Go program has it.

use tenon_gotemplate::{Field, IntKind, StructType, Type, UintKind};

pub(super) static INNER: StructType = StructType {
    name: "main.Inner",
    fields: &[
        omitted("Key", "key", Type::String),
        omitted("Flag", "flag", Type::Bool),
        kept("Size", "size", Type::Uint(UintKind::Uint32)),
    ],
    text: None,
};

pub(super) static SAMPLE: StructType = StructType {
    name: "main.Sample",
    fields: &[
        kept("Name", "name", Type::String),
        kept("Tags", "tags", Type::STRINGS),
        omitted("Count", "count", Type::Int(IntKind::Int64)),
        omitted("On", "on", Type::Pointer(&Type::Bool)),
        omitted("Limit", "limit", Type::Pointer(&Type::Int(IntKind::Int32))),
        omitted("Extra", "extra", Type::STRING_MAP),
        omitted("Ratio", "ratio", Type::Float),
        omitted("Inner", "inner", INNER_TYPE),
        omitted("Inners", "inners", Type::List(&INNER_TYPE)),
        kept("Next", "next", Type::Pointer(&INNER_TYPE)),
        omitted("Any", "any", Type::Any),
    ],
    text: None,
};

pub(super) const INNER_TYPE: Type = Type::Struct(&INNER);

const fn kept(name: &'static str, yaml: &'static str, type_: Type) -> Field {
    Field { name, yaml, omit_empty: false, type_ }
}

const fn omitted(name: &'static str, yaml: &'static str, type_: Type) -> Field {
    Field { name, yaml, omit_empty: true, type_ }
}
