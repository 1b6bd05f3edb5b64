//! Nothing that a template says makes a function use up memory or time.

use tenon_gotemplate::{Limits, List, Type, Value};

use super::generate::Random;
use super::{FUNCTIONS, call, call_within, written};

const LIMITS: Limits = Limits { output: 1000, steps: 1000, depth: 10 };

#[test]
fn results_larger_than_the_limit_are_refused() {
    let text = Value::string("a\n".repeat(400));
    let many = Value::List(List::of_strings(std::iter::repeat_n("\u{1}", 400)));
    let calls: Vec<(&str, Vec<Value>)> = vec![
        ("indent", vec![Value::int(2), text.clone()]),
        ("indent", vec![Value::int(i64::MAX), Value::string("")]),
        ("nindent", vec![Value::int(1000), Value::string("")]),
        ("replace", vec![Value::string("a"), Value::string("bbb"), text.clone()]),
        ("replace", vec![Value::string(""), Value::string("b"), text.clone()]),
        ("regexReplaceAll", vec![Value::string("."), text.clone(), Value::string("$0$0")]),
        ("join", vec![many.clone(), Value::string("--")]),
        ("quote", vec![text.clone(), text.clone()]),
        ("toYaml", vec![many.clone()]),
        ("toJson", vec![many.clone()]),
        ("toPrettyJson", vec![many]),
        ("b64enc", vec![text]),
    ];
    for (function, arguments) in calls {
        let refused = call_within(&LIMITS, function, &arguments).expect_err(function);
        assert!(refused.to_string().contains("larger than 1000 bytes"), "{function}: {refused}");
    }
}

#[test]
fn a_document_may_be_as_large_as_the_limit() {
    let text = Value::string("a".repeat(1000));
    assert!(call_within(&LIMITS, "toYaml", &[text]).is_ok());
}

#[test]
fn lists_that_share_their_items_are_bounded_as_well() {
    let mut value = Value::string("x");
    for _ in 0..60 {
        value = Value::List(List::new(&Type::Any, vec![value.clone(), value]).unwrap());
    }
    for function in ["toYaml", "toYamlPretty", "toJson", "toPrettyJson"] {
        call(function, &[value.clone()]).expect_err(function);
    }
}

#[test]
fn hard_searches_end_soon() {
    let (text, part) =
        (Value::string("a".repeat(1 << 20)), Value::string(["a".repeat(1 << 19).as_str(), "b"].concat()));
    assert!(matches!(call("contains", &[part, text.clone()]), Ok(Value::Bool(false))));
    let nested = Value::string("(a*)*$|".repeat(20) + "b");
    assert!(call("regexFind", &[nested, Value::string("a".repeat(1 << 12))]).is_ok());
    let large = Value::string("\\pL{100}");
    assert!(call("regexFind", &[large.clone(), Value::string("a")]).is_ok());
    call("regexFind", &[large, text]).expect_err("a large pattern over a large text");
}

#[test]
fn patterns_that_would_grow_too_large_are_refused() {
    for pattern in ["(\\pL{100}){10}\\pL{1000}", "a{1001}", "(a{100}){11}", &"(".repeat(10_000)] {
        call("regexFind", &[Value::string(pattern), Value::string("a")]).expect_err(pattern);
    }
    let deep = ["(".repeat(5_000), ")".repeat(5_000)].concat();
    call("regexFind", &[Value::string(deep), Value::string("a")]).expect_err("too deep");
}

#[test]
fn no_arguments_make_a_function_panic() {
    let mut random = Random::new(21);
    for _ in 0..100 {
        for function in FUNCTIONS {
            let count = random.below(5);
            let arguments: Vec<Value> = (0..count).map(|_| written::read(&random.value(2), Type::Any)).collect();
            // Whether it is an error does not matter here.
            let _ = call_within(&LIMITS, function.name, &arguments);
        }
    }
}
