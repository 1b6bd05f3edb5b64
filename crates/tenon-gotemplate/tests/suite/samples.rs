//! Which values do the tests print? Each in both languages: as a value here, and as JSON for the Go program.

use serde_json::{Value as Json, json};
use tenon_gotemplate::{Field, IntKind, List, Map, Pointer, Struct, StructType, Text, Type, UintKind, Value};

/// A value and what Go makes it from.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) value: Value,
    pub(crate) json: Json,
}

const fn field(name: &'static str, type_: Type) -> Field {
    Field { name, yaml: name, omit_empty: false, type_ }
}

pub(crate) static PAIR: StructType =
    StructType { name: "main.Pair", fields: &[field("Name", Type::String), field("Age", Type::INT)], text: None };
pub(crate) static NAMED: StructType = StructType {
    name: "main.Named",
    fields: &[field("Name", Type::String)],
    // Bytes that are no UTF-8 would not survive here; the samples have none.
    text: Some(|named| match named.get(b"Name") {
        Some(Value::String(name)) => format!("<{}>", name.to_lossy()),
        _ => String::new(),
    }),
};
pub(crate) static HOLDER: StructType = StructType {
    name: "main.Holder",
    fields: &[
        field("Any", Type::Any),
        field("Items", Type::STRINGS),
        field("Labels", Type::STRING_MAP),
        field("Inner", Type::Struct(&PAIR)),
        field("Next", Type::Pointer(&Type::Struct(&PAIR))),
    ],
    text: None,
};

pub(crate) static A_PAIR: Type = Type::Struct(&PAIR);
pub(crate) static A_NAMED: Type = Type::Struct(&NAMED);
pub(crate) static A_HOLDER: Type = Type::Struct(&HOLDER);
pub(crate) static POINTER_TO_PAIR: Type = Type::Pointer(&A_PAIR);
pub(crate) static POINTER_TO_NAMED: Type = Type::Pointer(&A_NAMED);

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn nil() -> Sample {
    Sample { value: Value::Nil, json: json!({"Type": "nil"}) }
}

pub(crate) fn bool(bool: bool) -> Sample {
    Sample { value: Value::Bool(bool), json: json!({"Type": "bool", "Text": bool.to_string()}) }
}

pub(crate) fn int(number: i64, kind: IntKind) -> Sample {
    let json = json!({"Type": Type::Int(kind).to_string(), "Text": number.to_string()});
    Sample { value: Value::Int(number, kind), json }
}

pub(crate) fn uint(number: u64, kind: UintKind) -> Sample {
    let json = json!({"Type": Type::Uint(kind).to_string(), "Text": number.to_string()});
    Sample { value: Value::Uint(number, kind), json }
}

pub(crate) fn float(number: f64) -> Sample {
    Sample { value: Value::Float(number), json: json!({"Type": "float64", "Text": number.to_bits().to_string()}) }
}

pub(crate) fn complex(real: f64, imaginary: f64) -> Sample {
    let text = format!("{} {}", real.to_bits(), imaginary.to_bits());
    Sample { value: Value::Complex(real, imaginary), json: json!({"Type": "complex128", "Text": text}) }
}

pub(crate) fn string(bytes: &[u8]) -> Sample {
    Sample { value: Value::string(bytes), json: json!({"Type": "string", "Text": hex(bytes)}) }
}

/// The zero value of a type whose zero is nil.
pub(crate) fn nil_of(type_: Type) -> Sample {
    Sample { value: Value::zero(type_), json: json!({"Type": type_.to_string(), "Nil": true}) }
}

pub(crate) fn list(item: &'static Type, items: &[Sample]) -> Sample {
    let values = items.iter().map(|item| item.value.clone()).collect();
    let value = Value::List(List::new(item, values).unwrap());
    Sample { value, json: json!({"Type": Type::List(item).to_string(), "Items": jsons(items)}) }
}

pub(crate) fn map(item: &'static Type, entries: &[(Vec<u8>, Sample)]) -> Sample {
    let values = entries.iter().map(|(key, item)| (Text::from(key), item.value.clone())).collect();
    let items: Vec<Json> = entries.iter().map(|(_, item)| item.json.clone()).collect();
    let keys: Vec<String> = entries.iter().map(|(key, _)| hex(key)).collect();
    let json = json!({"Type": Type::Map(item).to_string(), "Items": items, "Keys": keys});
    Sample { value: Value::Map(Map::new(item, values).unwrap()), json }
}

pub(crate) fn struct_(type_: &'static StructType, fields: &[Sample]) -> Sample {
    let values = fields.iter().map(|field| field.value.clone()).collect();
    let value = Value::Struct(Struct::new(type_, values));
    Sample { value, json: json!({"Type": type_.name, "Items": jsons(fields)}) }
}

pub(crate) fn pointer(to: &'static Type, target: &Sample) -> Sample {
    let json = json!({"Type": Type::Pointer(to).to_string(), "Items": [target.json]});
    Sample { value: Value::Pointer(Pointer::new(to, target.value.clone())), json }
}

fn jsons(samples: &[Sample]) -> Vec<&Json> {
    samples.iter().map(|sample| &sample.json).collect()
}
