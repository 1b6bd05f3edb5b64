//! Functions with parameters and results of other types than those of the recorded cases; `tests/go/template.go` has the
//! same ones.

use tenon_gotemplate::{Function, IntKind, List, Pointer, Struct, Type, UintKind, Value};

use crate::case_functions::{self, fixed, plain_text, variadic};
use crate::samples::{A_PAIR, NAMED, PAIR};
use crate::template_data::pointers;

const PAIRS: &[Type] = &[Type::Struct(&PAIR)];

pub(crate) fn functions() -> impl Iterator<Item = Function> {
    case_functions::all().into_iter().chain([
        variadic("strings", &[Type::String], |_, v| Ok(list(&Type::String, v))),
        fixed("count", &[Type::STRINGS], |_, v| Ok(length(&v[0]))),
        fixed("labels", &[Type::STRING_MAP], |_, v| Ok(length(&v[0]))),
        fixed("older", PAIRS, |_, v| Ok(older(&v[0]))),
        fixed("named", &[Type::String], |_, v| {
            plain_text(&v[0])?;
            Ok(Value::Struct(Struct::new(&NAMED, v.to_vec())))
        }),
        fixed("nilpair", &[], |_, _| Ok(Value::Pointer(Pointer::nil(&A_PAIR)))),
        fixed("uint32", &[Type::Uint(UintKind::Uint32)], |_, v| Ok(v[0].clone())),
        fixed("uint8", &[Type::Uint(UintKind::Uint8)], |_, v| Ok(v[0].clone())),
        fixed("int32", &[Type::Int(IntKind::Int32)], |_, v| Ok(v[0].clone())),
        fixed("int64", &[Type::Int(IntKind::Int64)], |_, v| Ok(v[0].clone())),
        fixed("float", &[Type::Float], |_, v| Ok(v[0].clone())),
        fixed("complex", &[Type::Complex], |_, v| Ok(v[0].clone())),
        fixed("flip", &[Type::Bool], |_, v| Ok(Value::Bool(!v[0].is_true()))),
        variadic("tail", &[Type::String, Type::INT], |_, v| Ok(list(&Type::INT, &v[1..]))),
        fixed("pp", &[], |_, _| Ok(pointers()[0].clone())),
        fixed("hp", &[], |_, _| Ok(pointers()[1].clone())),
        fixed("sp", &[], |_, _| Ok(pointers()[2].clone())),
        fixed("mp", &[], |_, _| Ok(pointers()[3].clone())),
        fixed("sameList", &[Type::ANYS], |_, v| Ok(v[0].clone())),
    ])
}

fn list(item: &'static Type, values: &[Value]) -> Value {
    Value::List(List::new(item, values.to_vec()).unwrap())
}

fn length(value: &Value) -> Value {
    Value::int(match value {
        Value::List(list) => list.items().len() as i64,
        Value::Map(map) => map.len() as i64,
        _ => 0,
    })
}

fn older(pair: &Value) -> Value {
    let Value::Struct(pair) = pair else { return Value::Nil };
    let age = match pair.get(b"Age") {
        Some(Value::Int(age, _)) => age.wrapping_add(1),
        _ => 0,
    };
    Value::Struct(Struct::new(&PAIR, vec![pair.get(b"Name").cloned().unwrap(), Value::int(age)]))
}
