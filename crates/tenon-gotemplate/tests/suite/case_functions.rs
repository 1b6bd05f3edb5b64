//! The functions that the recorded cases call beside the built-in ones.

use std::collections::BTreeMap;

use tenon_gotemplate::{
    Body, Failure, Function, Functions, IntKind, Limits, List, Map, Output, Text, Type, Value, format,
};

const ANY: Type = Type::Any;
const TEXT: Type = Type::String;
const MAP: Type = Type::ANY_MAP;

pub(crate) fn functions() -> Functions {
    Functions::new(all())
}

pub(crate) fn all() -> [Function; 17] {
    [
        fixed("upper", &[TEXT], |_, v| Ok(Value::string(upper(plain_text(&v[0])?)))),
        fixed("fail", &[TEXT], |_, v| Err(Failure::new(text(&v[0])))),
        variadic("add", &[Type::INT], |_, v| Ok(Value::int(v.iter().map(int).fold(0, i64::wrapping_add)))),
        fixed("dec", &[Type::INT], |_, v| Ok(Value::int(int(&v[0]).wrapping_sub(1)))),
        fixed("default", &[ANY, ANY], default),
        variadic("dict", &[ANY], dict),
        variadic("list", &[ANY], |_, v| List::new(&Type::Any, v.to_vec()).map(Value::List)),
        fixed("toJson", &[ANY], |_, v| Ok(Value::string(json(&v[0])?.to_string()))),
        variadic("quote", &[ANY], quote),
        fixed("ternary", &[ANY, ANY, Type::Bool], |_, v| Ok(if v[2].is_true() { v[0].clone() } else { v[1].clone() })),
        fixed("nindent", &[Type::INT, TEXT], nindent),
        fixed("get", &[MAP, TEXT], |_, v| Ok(map(&v[0]).get(bytes(&v[1])).unwrap_or_else(|| Value::string("")))),
        fixed("hasKey", &[MAP, TEXT], |_, v| Ok(Value::Bool(map(&v[0]).get(bytes(&v[1])).is_some()))),
        fixed("set", &[MAP, TEXT, ANY], set),
        fixed("join", &[TEXT, Type::ANYS], join),
        fixed("pick", &[MAP], |_, v| {
            Ok(map(&v[0]).entries().into_iter().next().map_or(Value::Nil, |e| Value::String(e.0)))
        }),
        fixed("retnil", &[], |_, _| Ok(Value::Nil)),
    ]
}

pub(crate) const fn fixed(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: false, body }
}

pub(crate) const fn variadic(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: true, body }
}

fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::String(text) => text.as_bytes(),
        _ => b"",
    }
}

/// A text that Go's functions treat no other way than these.
pub(crate) fn plain_text(value: &Value) -> Result<&str, Failure> {
    let text = std::str::from_utf8(bytes(value)).ok().filter(|text| !text.contains(['\u{2028}', '\u{2029}']));
    text.ok_or_else(|| Failure::new("not a plain text"))
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(bytes(value)).into_owned()
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number, _) => *number,
        _ => 0,
    }
}

fn map(value: &Value) -> Map {
    match value {
        Value::Map(map) => map.clone(),
        _ => Map::nil(&Type::Any),
    }
}

fn printed(value: &Value) -> Vec<u8> {
    let mut out = Output::new(1 << 20);
    format::print(&mut out, std::slice::from_ref(value)).unwrap();
    out.into_bytes()
}

/// The default stands in for nothing, zero and what is empty.
fn default(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let is_empty = !values[1].is_true();
    Ok(if is_empty { values[0].clone() } else { values[1].clone() })
}

fn dict(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let mut entries = BTreeMap::new();
    for pair in values.chunks(2) {
        let [key, value] = pair else { return Err(Failure::new("odd number of arguments")) };
        entries.insert(Text::from(printed(key)), value.clone());
    }
    Map::new(&Type::Any, entries).map(Value::Map)
}

fn quote(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let given = values.iter().filter(|value| !matches!(value, Value::Nil | Value::Missing));
    let quoted: Vec<Vec<u8>> = given.map(|value| format::quote(&printed(value))).collect();
    Ok(Value::string(quoted.join(&b' ')))
}

fn nindent(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let spaces = usize::try_from(int(&values[0])).ok().filter(|spaces| *spaces <= 100);
    let pad = " ".repeat(spaces.ok_or_else(|| Failure::new("too many spaces"))?);
    let lines: Vec<Vec<u8>> =
        bytes(&values[1]).split(|byte| *byte == b'\n').map(|line| [pad.as_bytes(), line].concat()).collect();
    Ok(Value::string([b"\n", lines.join(&b'\n').as_slice()].concat()))
}

fn join(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let Value::List(list) = &values[1] else { return Err(Failure::new("not a list")) };
    let parts: Vec<Vec<u8>> = list.items().iter().map(printed).collect();
    Ok(Value::string(parts.join(bytes(&values[0]))))
}

/// Lists and maps are refused: a map in itself could not be printed.
fn set(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let is_flat = |value: &Value| {
        use Value::{Bool, Float, Int, Missing, Nil, String};
        matches!(value, Missing | Nil | Bool(_) | Int(_, IntKind::Int) | Float(_) | String(_))
    };
    if !is_flat(&values[2]) {
        return Err(Failure::new("not a flat value"));
    }
    map(&values[0]).set(Text::from(bytes(&values[1])), values[2].clone())?;
    Ok(values[0].clone())
}

/// Every letter for itself, as Go does it.
fn upper(text: &str) -> String {
    let upper = |letter: char| {
        let mut all = letter.to_uppercase();
        all.next().filter(|_| all.next().is_none()).unwrap_or(letter)
    };
    text.chars().map(upper).collect()
}

fn json(value: &Value) -> Result<serde_json::Value, Failure> {
    Ok(match value {
        Value::Missing | Value::Nil => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(number, IntKind::Int) => (*number).into(),
        // With an exponent, Go writes others.
        Value::Float(number) if *number == 0.0 || (1e-5..1e15).contains(&number.abs()) => {
            serde_json::from_str(&format!("{number}")).unwrap()
        }
        Value::String(_) => plain_text(value)?.into(),
        Value::List(list) if *list.item_type() == ANY && !list.is_nil() => {
            list.items().iter().map(json).collect::<Result<Vec<_>, _>>()?.into()
        }
        Value::Map(map) if *map.item_type() == ANY && !map.is_nil() => {
            let entries = map.entries();
            let entry =
                |(key, value): &(Text, Value)| Ok((plain_text(&Value::String(key.clone()))?.to_owned(), json(value)?));
            serde_json::Value::Object(entries.iter().map(entry).collect::<Result<_, Failure>>()?)
        }
        _ => return Err(Failure::new("not a plain value")),
    })
}
