//! The functions that the recorded cases call beside the built-in ones.

use std::collections::BTreeMap;

use tenon_gotemplate::{Body, Failure, Function, Functions, Limits, List, Map, Output, Text, Type, Value, format};

const ANY: Type = Type::Any;
const TEXT: Type = Type::String;
const MAP: Type = Type::ANY_MAP;

pub(crate) fn functions() -> Functions {
    Functions::new([
        fixed("upper", &[TEXT], |_, v| Ok(Value::string(text(&v[0]).to_uppercase()))),
        fixed("fail", &[TEXT], |_, v| Err(Failure::new(text(&v[0])))),
        variadic("add", &[Type::INT], |_, v| Ok(Value::int(v.iter().map(int).sum()))),
        fixed("dec", &[Type::INT], |_, v| Ok(Value::int(int(&v[0]) - 1))),
        fixed("default", &[ANY, ANY], default),
        variadic("dict", &[ANY], dict),
        variadic("list", &[ANY], |_, v| List::new(&Type::Any, v.to_vec()).map(Value::List)),
        fixed("toJson", &[ANY], |_, v| Ok(Value::string(json(&v[0]).to_string()))),
        variadic("quote", &[ANY], quote),
        fixed("ternary", &[ANY, ANY, Type::Bool], |_, v| Ok(if v[2].is_true() { v[0].clone() } else { v[1].clone() })),
        fixed("nindent", &[Type::INT, TEXT], nindent),
        fixed("get", &[MAP, TEXT], |_, v| Ok(map(&v[0]).get(bytes(&v[1])).unwrap_or_else(|| Value::string("")))),
        fixed("hasKey", &[MAP, TEXT], |_, v| Ok(Value::Bool(map(&v[0]).get(bytes(&v[1])).is_some()))),
        fixed("set", &[MAP, TEXT, ANY], |_, v| {
            map(&v[0]).set(Text::from(bytes(&v[1])), v[2].clone())?;
            Ok(v[0].clone())
        }),
        fixed("join", &[TEXT, Type::ANYS], join),
        fixed("pick", &[MAP], |_, v| {
            Ok(map(&v[0]).entries().into_iter().next().map_or(Value::Nil, |e| Value::String(e.0)))
        }),
        fixed("retnil", &[], |_, _| Ok(Value::Nil)),
    ])
}

const fn fixed(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: false, body }
}

const fn variadic(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: true, body }
}

fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::String(text) => text.as_bytes(),
        _ => b"",
    }
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
    let pad = " ".repeat(usize::try_from(int(&values[0])).map_err(|_| Failure::new("negative"))?);
    let lines: Vec<String> = text(&values[1]).split('\n').map(|line| format!("{pad}{line}")).collect();
    Ok(Value::string(format!("\n{}", lines.join("\n"))))
}

fn join(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let Value::List(list) = &values[1] else { return Err(Failure::new("not a list")) };
    let parts: Vec<Vec<u8>> = list.items().iter().map(printed).collect();
    Ok(Value::string(parts.join(bytes(&values[0]))))
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Missing | Value::Nil => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(number, _) => (*number).into(),
        Value::Uint(number, _) => (*number).into(),
        // Go writes a float without a fraction as a whole number.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            serde_json::from_str(&format!("{number}")).unwrap()
        }
        Value::Float(number) => (*number).into(),
        Value::String(_) => text(value).into(),
        Value::List(list) => list.items().iter().map(json).collect(),
        Value::Map(map) => {
            map.entries().iter().map(|(key, value)| (key.to_lossy().into_owned(), json(value))).collect()
        }
        other => panic!("no JSON for {other:?}"),
    }
}
