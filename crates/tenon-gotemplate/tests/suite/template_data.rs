//! With which data are generated templates run, and how is the data told to Go?

use serde_json::{Value as Json, json};
use tenon_gotemplate::{IntKind, List, Map, Pointer, Struct, Text, Type, UintKind, Value};

use crate::cases::{recorded, value};
use crate::samples::{A_HOLDER, A_NAMED, A_PAIR, HOLDER, NAMED, PAIR, POINTER_TO_NAMED, POINTER_TO_PAIR, hex};

/// Every dot that a template may get. The first is the one of the recorded cases with values of more types.
pub(crate) fn dots() -> Vec<Value> {
    let mut entries = match value(&recorded()["Data"]) {
        Value::Map(map) => map.entries(),
        _ => Vec::new(),
    };
    // A range over a number so large would never end in Go.
    entries.retain(|(key, _)| key.as_bytes() != b"Big");
    entries.extend(typed().into_iter().map(|(key, value)| (Text::from(key), value)));
    let whole = Value::Map(Map::new(&Type::Any, entries.into_iter().collect()).unwrap());
    vec![
        whole,
        Value::Pointer(Pointer::new(&A_HOLDER, plain_holder())),
        plain_holder(),
        Value::Nil,
        Value::int(3),
        Value::string("dot"),
        strings(&["x", "y"]),
        labels(),
        Value::Pointer(Pointer::nil(&A_PAIR)),
        Value::Bool(true),
    ]
}

fn typed() -> Vec<(&'static str, Value)> {
    let ints = (1..4).map(Value::int).collect();
    let bytes = b"h\xc3\xa9\xff".iter().map(|byte| Value::Uint(u64::from(*byte), UintKind::Uint8)).collect();
    let counts = [("one", 1), ("two", 2)].map(|(key, number)| (Text::from(key), Value::int(number)));
    vec![
        ("Strs", strings(&["b", "a", ""])),
        ("NilStrs", Value::zero(Type::STRINGS)),
        ("Labels", labels()),
        ("NilLabels", Value::zero(Type::STRING_MAP)),
        ("U32", Value::Uint(7, UintKind::Uint32)),
        ("U64", Value::Uint(u64::MAX, UintKind::Uint64)),
        ("I64", Value::Int(-9, IntKind::Int64)),
        ("I32", Value::Int(2, IntKind::Int32)),
        ("Cpx", Value::Complex(1.0, -2.5)),
        ("Raw", Value::string(b"a\xff\xe6\x97z")),
        ("Pair", pair("ann", 30)),
        ("Pair2", pair("ann", 30)),
        ("NP", Value::zero(POINTER_TO_PAIR)),
        ("NI", Value::zero(Type::Pointer(&Type::INT))),
        ("Named", named("ann")),
        ("NamedP", Value::Pointer(Pointer::new(&A_NAMED, named("bob")))),
        ("NilNamedP", Value::zero(POINTER_TO_NAMED)),
        ("Hold", plain_holder()),
        ("Pairs", Value::List(List::new(&A_PAIR, vec![pair("x", 1), pair("y", 2)]).unwrap())),
        ("Ints", Value::List(List::new(&Type::INT, ints).unwrap())),
        ("Counts", Value::Map(Map::new(&Type::INT, counts.into_iter().collect()).unwrap())),
        ("Bytes", Value::List(List::new(&Type::Uint(UintKind::Uint8), bytes).unwrap())),
    ]
}

/// Pointers that are not nil. What holds one is printed with an address, which differs in Go from run to run.
pub(crate) fn pointers() -> [Value; 4] {
    let next = Value::Pointer(Pointer::new(&A_PAIR, pair("next", 9)));
    let map = Map::new(
        &Type::Any,
        [("a", Value::int(1)), ("k", Value::Nil)].map(|(key, value)| (Text::from(key), value)).into(),
    );
    [
        Value::Pointer(Pointer::new(&A_PAIR, pair("bob", 25))),
        Value::Pointer(Pointer::new(&A_HOLDER, holder(next))),
        Value::Pointer(Pointer::new(&Type::STRINGS, strings(&["p", "q"]))),
        Value::Pointer(Pointer::new(&Type::ANY_MAP, Value::Map(map.unwrap()))),
    ]
}

fn strings(texts: &[&str]) -> Value {
    Value::List(List::of_strings(texts))
}

fn labels() -> Value {
    let entries = [("app", "web"), ("tier", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    Value::Map(Map::of_strings(entries.iter().map(|(key, value)| (key, value))))
}

fn pair(name: &str, age: i64) -> Value {
    Value::Struct(Struct::new(&PAIR, vec![Value::string(name), Value::int(age)]))
}

fn named(name: &str) -> Value {
    Value::Struct(Struct::new(&NAMED, vec![Value::string(name)]))
}

fn holder(next: Value) -> Value {
    Value::Struct(Struct::new(&HOLDER, vec![Value::int(5), strings(&["i", "j"]), labels(), pair("in", 4), next]))
}

fn plain_holder() -> Value {
    holder(Value::zero(POINTER_TO_PAIR))
}

/// A value as `tests/go/values.go` reads it.
pub(crate) fn for_go(value: &Value) -> Json {
    let Some(type_) = value.type_().map(|type_| type_.to_string()) else { return json!({"Type": "nil"}) };
    let text = |text: String| json!({"Type": type_, "Text": text});
    match value {
        Value::Missing | Value::Nil => Json::Null,
        Value::Bool(value) => text(value.to_string()),
        Value::Int(number, _) => text(number.to_string()),
        Value::Uint(number, _) => text(number.to_string()),
        Value::Float(number) => text(number.to_bits().to_string()),
        Value::Complex(real, imaginary) => text(format!("{} {}", real.to_bits(), imaginary.to_bits())),
        Value::String(string) => text(hex(string.as_bytes())),
        Value::List(list) if list.is_nil() => json!({"Type": type_, "Nil": true}),
        Value::List(list) => json!({"Type": type_, "Items": list.items().iter().map(for_go).collect::<Vec<_>>()}),
        Value::Map(map) if map.is_nil() => json!({"Type": type_, "Nil": true}),
        Value::Map(map) => {
            let entries = map.entries();
            let keys: Vec<String> = entries.iter().map(|(key, _)| hex(key.as_bytes())).collect();
            json!({"Type": type_, "Keys": keys, "Items": entries.iter().map(|(_, item)| for_go(item)).collect::<Vec<_>>()})
        }
        Value::Struct(struct_) => {
            json!({"Type": type_, "Items": struct_.fields().map(|(_, field)| for_go(field)).collect::<Vec<_>>()})
        }
        Value::Pointer(pointer) => match pointer.target() {
            Some(target) => json!({"Type": type_, "Items": [for_go(target)]}),
            None => json!({"Type": type_, "Nil": true}),
        },
    }
}
