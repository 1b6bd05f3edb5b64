//! What do templates print? The texts are Go's; the suite in `tests` compares thousands more with Go itself.

use std::collections::BTreeMap;

use super::{float, plain, print, printf, println, quote};
use crate::{Failure, Field, IntKind, List, Map, Output, Pointer, Struct, StructType, Text, Type, UintKind, Value};

static PERSON: StructType = StructType {
    name: "main.Person",
    fields: &[
        Field { name: "Name", yaml: "name", omit_empty: false, type_: Type::String },
        Field { name: "Boss", yaml: "boss", omit_empty: false, type_: Type::Any },
    ],
    text: None,
};
static SIZE: StructType = StructType {
    name: "main.Size",
    fields: &[Field { name: "Bytes", yaml: "bytes", omit_empty: false, type_: Type::INT }],
    text: Some(|_| "5Gi".to_owned()),
};
static A_PERSON: Type = Type::Struct(&PERSON);
static A_SIZE: Type = Type::Struct(&SIZE);

fn written(write: impl FnOnce(&mut Output) -> Result<(), Failure>) -> String {
    let mut out = Output::new(10_000);
    write(&mut out).unwrap();
    String::from_utf8(out.into_bytes()).unwrap()
}

fn sprintf(format: &str, values: &[Value]) -> String {
    written(|out| printf(out, format.as_bytes(), values))
}

fn ints(numbers: &[i64]) -> Value {
    Value::List(List::new(&Type::INT, numbers.iter().map(|number| Value::int(*number)).collect()).unwrap())
}

fn text(text: &str) -> Value {
    Value::string(text)
}

fn person(name: &str) -> Value {
    Value::Struct(Struct::new(&PERSON, vec![text(name), Value::Nil]))
}

fn size() -> Value {
    Value::Struct(Struct::new(&SIZE, vec![Value::int(5)]))
}

fn any_map(entries: &[(&str, Value)]) -> Map {
    let entries: BTreeMap<Text, Value> = entries.iter().map(|(key, value)| (Text::from(key), value.clone())).collect();
    Map::new(&Type::Any, entries).unwrap()
}

#[test]
fn print_sets_a_space_between_neighbours_that_are_no_strings() {
    let values = [Value::int(1), Value::int(2), text("a"), text("b"), Value::Nil, Value::Missing, Value::Bool(true)];
    assert_eq!(written(|out| print(out, &values)), "1 2ab<nil> <nil> true");
    assert_eq!(written(|out| println(out, &values)), "1 2 a b <nil> <nil> true\n");
    assert_eq!(written(|out| print(out, &[])), "");
    assert_eq!(written(|out| println(out, &[])), "\n");
}

#[test]
fn floats_have_the_fewest_digits_and_an_exponent_when_large_or_small() {
    let numbers = [0.0, -0.0, 1.0, 0.1, 100_000.0, 1e6, 123_456_789.0, 1e21, 1e-4, 1e-7, f64::MAX, 5e-324];
    let texts = numbers.map(float);
    let expected = [
        "0",
        "-0",
        "1",
        "0.1",
        "100000",
        "1e+06",
        "1.23456789e+08",
        "1e+21",
        "0.0001",
        "1e-07",
        "1.7976931348623157e+308",
        "5e-324",
    ];
    assert_eq!(texts, expected);
    assert_eq!([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(float), ["+Inf", "-Inf", "NaN"]);
}

#[test]
fn a_float_between_two_shortest_texts_takes_the_even_one() {
    // 1590845886072003.25, exactly.
    assert_eq!(float(f64::from_bits(4_834_222_184_085_459_725)), "1.5908458860720032e+15");
}

#[test]
fn verbs_print_whole_numbers() {
    assert_eq!(sprintf("%d|%5d|%-5d|%05d|%+d|% d", &[1, 2, 3, 4, 5, 6].map(Value::int)), "1|    2|3    |00004|+5| 6");
    assert_eq!(
        sprintf("%08b %o %#o %O %x %#X", &[5, 8, 8, 8, -255, 255].map(Value::int)),
        "00000101 10 010 0o10 -ff 0XFF"
    );
    assert_eq!(sprintf("%c %q %U %#U", &[65, 10, 0x1f600, 0xe9].map(Value::int)), "A '\\n' U+1F600 U+00E9 'é'");
    assert_eq!(sprintf("%-010d|%.3d|%8.3d", &[7, 7, -7].map(Value::int)), "7         |007|    -007");
    assert_eq!(sprintf("%#v %v", &[5, 5].map(|number| Value::Uint(number, UintKind::Uint8))), "0x5 5");
    assert_eq!(sprintf("%d", &[Value::Int(i64::MIN, IntKind::Int64)]), "-9223372036854775808");
}

#[test]
fn verbs_print_floats_and_complex_numbers() {
    let number = Value::Float(1234.5678);
    assert_eq!(
        sprintf("%[1]f %6.2[1]f %[1]e %+.3[1]e %[1]g %.3[1]g", &[number]),
        "1234.567800 1234.57 1.234568e+03 +1.235e+03 1234.5678 1.23e+03"
    );
    assert_eq!(sprintf("%.0f %.0f %.1f", &[0.5, 2.5, 0.25].map(Value::Float)), "0 2 0.2");
    assert_eq!(
        sprintf("%#g %#.0f %x %b", &[1.0, 3.0, 1.5, 1.0].map(Value::Float)),
        "1.00000 3. 0x1.8p+00 4503599627370496p-52"
    );
    assert_eq!(
        sprintf("%08.2f|%+08.2f|%08f", &[-1.5, 1.5, f64::INFINITY].map(Value::Float)),
        "-0001.50|+0001.50|    +Inf"
    );
    assert_eq!(sprintf("%v %.1f", &[Value::Complex(1.0, -2.0), Value::Complex(0.25, 1.0)]), "(1-2i) (0.2+1.0i)");
}

#[test]
fn verbs_print_strings() {
    assert_eq!(sprintf("%s|%5s|%-5s|%.2s|%05s", &["a", "é", "c", "日本語", "e"].map(text)), "a|    é|c    |日本|0000e");
    assert_eq!(
        sprintf("%q %#q %+q %q", &["a\"b", "a\"b", "é", "\u{feff}"].map(text)),
        r#""a\"b" `a"b` "\u00e9" "\ufeff""#
    );
    assert_eq!(
        sprintf("%x % x %#x % #X %.1x", &["hi", "hi", "hi", "hi", "hi"].map(text)),
        "6869 68 69 0x6869 0X68 0X69 68"
    );
}

#[test]
fn a_string_in_quotes_shows_bytes_that_are_no_text() {
    assert_eq!(quote(b"a\xff\n\x00\x7f\\ \xe6\x97"), br#""a\xff\n\x00\x7f\\ \xe6\x97""#);
    assert_eq!(quote("日\u{200b}\u{10ffff}".as_bytes()), "\"日\\u200b\\U0010ffff\"".as_bytes());
}

#[test]
fn verbs_apply_to_what_lists_maps_and_structs_hold() {
    assert_eq!(sprintf("%d %03x %v", &[ints(&[1, 2]), ints(&[10]), ints(&[])]), "[1 2] [00a] []");
    let map = any_map(&[("name", text("ann")), ("age", Value::int(30)), ("x", Value::Nil)]);
    assert_eq!(sprintf("%s", &[Value::Map(map.clone())]), "map[age:%!s(int=30) name:ann x:<nil>]");
    let source = r#"map[string]interface {}{"age":30, "name":"ann", "x":interface {}(nil)}"#;
    assert_eq!(sprintf("%#v", &[Value::Map(map)]), source);
    assert_eq!(sprintf("%v %+v", &[person("ann"), person("ann")]), "{ann <nil>} {Name:ann Boss:<nil>}");
    assert_eq!(sprintf("%#v", &[person("ann")]), r#"main.Person{Name:"ann", Boss:interface {}(nil)}"#);
    assert_eq!(
        sprintf("%#v %#v", &[Type::STRINGS, Type::ANY_MAP].map(Value::zero)),
        "[]string(nil) map[string]interface {}(nil)"
    );
}

#[test]
fn a_pointer_shows_what_it_points_to_only_as_an_argument() {
    let pointer = Value::Pointer(Pointer::new(&A_PERSON, person("ann")));
    assert_eq!(sprintf("%v %+v", &[pointer.clone(), pointer.clone()]), "&{ann <nil>} &{Name:ann Boss:<nil>}");
    let nil = Value::zero(Type::Pointer(&A_PERSON));
    assert_eq!(
        sprintf("%v %#v %s", &[nil.clone(), nil.clone(), nil]),
        "<nil> (*main.Person)(nil) %!s(*main.Person=<nil>)"
    );
    let list = Value::List(List::new(&Type::Any, vec![pointer]).unwrap());
    assert!(sprintf("%v", &[list]).starts_with("[0xc"));
}

#[test]
fn a_struct_with_a_text_of_its_own_prints_it_for_the_verbs_of_texts() {
    let pointer = Value::Pointer(Pointer::new(&A_SIZE, size()));
    assert_eq!(sprintf("%v %s %q %x %5s", &[size(), size(), size(), size(), pointer]), "5Gi 5Gi \"5Gi\" 354769   5Gi");
    assert_eq!(sprintf("%d %#v %t", &[size(), size(), size()]), "{5} main.Size{Bytes:5} {%!t(int=5)}");
    assert_eq!(sprintf("%w", &[size()]), "%!w(main.Size={5})");
    assert_eq!(sprintf("%s", &[Value::zero(Type::Pointer(&A_SIZE))]), "<nil>");
}

#[test]
fn types_are_named() {
    let values = [Value::int(1), ints(&[]), person(""), Value::Nil, Value::Float(0.5)];
    assert_eq!(sprintf("%T %T %T %T %10T", &values), "int []int main.Person <nil>    float64");
}

#[test]
fn a_format_that_does_not_fit_says_what_is_wrong() {
    assert_eq!(sprintf("%d %z", &[text("hi"), Value::int(1)]), "%!d(string=hi) %!z(int=1)");
    assert_eq!(sprintf("%d %d", &[Value::int(1)]), "1 %!d(MISSING)");
    assert_eq!(sprintf("x", &[Value::int(1), text("a"), Value::Nil]), "x%!(EXTRA int=1, string=a, <nil>)");
    assert_eq!(sprintf("50%", &[]), "50%!(NOVERB)");
    assert_eq!(sprintf("%[3]d %[x]d", &[Value::int(1)]), "%!d(BADINDEX) %!d(BADINDEX)");
    assert_eq!(sprintf("%*d", &[text("a"), Value::int(1)]), "%!(BADWIDTH)1");
    assert_eq!(sprintf("%.*d", &[Value::int(-1), Value::int(1)]), "%!(BADPREC)1");
    assert_eq!(sprintf("%*d", &[Value::int(1_000_001), Value::int(1)]), "%!(BADWIDTH)1");
    assert_eq!(sprintf("%d %s %v", &[Value::Nil, Value::Missing, Value::Missing]), "%!d(<nil>) %!s(<nil>) <nil>");
}

#[test]
fn directives_choose_their_arguments() {
    assert_eq!(sprintf("%[2]d %[1]d", &[1, 2].map(Value::int)), "2 1");
    assert_eq!(sprintf("%[2]*[1]d|%d", &[7, 3].map(Value::int)), "  7|3");
    assert_eq!(sprintf("%[1]4d", &[Value::int(7)]), "%!d(BADINDEX)", "the width stands before the index");
    assert_eq!(sprintf("%*d|%.*f", &[Value::int(-4), Value::int(7), Value::int(1), Value::Float(2.55)]), "7   |2.5");
    assert_eq!(sprintf("%d%% %5%", &[Value::int(7)]), "7% %");
}

#[test]
fn nothing_larger_than_the_output_is_ever_made() {
    let formats =
        ["%1000000d", "%.1000000d", "%.9999999f", "%#.9999999g", "%.9999999x", "%.9999999U", "%01000000d", "%9000000s"];
    for format in formats {
        for value in [Value::int(1), Value::Float(1.5)] {
            let mut out = Output::new(1000);
            let outcome = printf(&mut out, format.as_bytes(), &[value]);
            let is_refused =
                outcome.is_err_and(|failure| failure.to_string() == "the output is larger than 1000 bytes");
            assert!(is_refused || out.as_bytes().starts_with(b"%!"), "{format}");
        }
    }
    assert_eq!(sprintf("%.9999999g", &[Value::Float(0.5)]), "0.5");
}

#[test]
fn a_map_that_holds_itself_is_an_error() {
    let map = any_map(&[]);
    map.set(Text::from("self"), Value::Map(map.clone())).unwrap();
    let failure = plain(&Value::Map(map), &mut Output::new(100_000)).unwrap_err();
    assert_eq!(failure.to_string(), "values nest deeper than 200 levels");
}
