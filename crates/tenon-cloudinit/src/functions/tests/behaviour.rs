//! What templates that people write rely on, said once in plain words.

use tenon_gotemplate::{Map, Struct, StructType, Type, Value};

use super::sample::{INNER, SAMPLE};
use super::{call, render};

fn printed(template: &str) -> String {
    render(template, &Value::Nil).unwrap_or_else(|error| panic!("{template}: {error}"))
}

fn refused(template: &str) -> String {
    render(template, &Value::Nil).expect_err(template)
}

#[test]
fn the_documented_examples_work() {
    assert_eq!(printed(r#"{{ join (list "a" "b") "," }}"#), "a,b");
    assert_eq!(printed(r#"{{ hasTag (list "tag1" "tag2") "tag1" }}"#), "true");
    assert_eq!(printed(r#"{{ get (dict "a" 1) "a" }}"#), "1");
    assert_eq!(printed(r#"{{ hasKey (dict "a" 1) "a" }} {{ hasKey (dict "a" 1) "b" }}"#), "true false");
    assert_eq!(printed(r#"{{ dict "b" 1 "a" (list 1 "x") | toPrettyYaml }}"#), "a:\n  - 1\n  - x\nb: 1");
    assert_eq!(printed(r#"{{ dict "a" (list 1 2) | toYaml }}"#), "a:\n    - 1\n    - 2");
    assert_eq!(
        printed(r#"{{ cidrhost "10.12.112.0/20" 16 }} {{ cidrhost "10.12.112.7/20" }}"#),
        "10.12.112.16 10.12.112.7"
    );
    assert_eq!(
        printed(r#"{{ "2001:db8:1::/64" | cidrslaac "00:1A:2B:3C:4D:5E" }}"#),
        "2001:db8:1:0:21a:2bff:fe3c:4d5e/64"
    );
}

#[test]
fn values_of_a_node_class_have_keys() {
    let values = [("SSHAuthorizedKeys".to_owned(), "a,b".to_owned())];
    let values = Value::Map(Map::of_strings(values.iter().map(|(key, value)| (key, value))));
    let template =
        r#"{{ hasKey . "SSHAuthorizedKeys" }} {{ get . "none" | quote }} {{ split .SSHAuthorizedKeys "," }}"#;
    assert_eq!(render(template, &values).unwrap(), r#"true "" [a b]"#);
}

#[test]
fn an_empty_value_gives_way_to_the_next() {
    assert_eq!(
        printed(r#"{{ default "d" "" }} {{ default "d" "x" }} {{ "" | default "d" }} {{ default "d" }}"#),
        "d x d d"
    );
    assert_eq!(printed(r#"{{ coalesce "" 0 false "x" "y" }} {{ coalesce 0 }}"#), "x <no value>");
    assert_eq!(printed(r#"{{ ternary "a" "b" true }} {{ ternary "a" "b" false }}"#), "a b");
    assert_eq!(printed(r#"{{ empty "" }} {{ empty 0 }} {{ empty (list) }} {{ empty "0" }}"#), "true true false false");
}

#[test]
fn what_is_replaced_or_cut_comes_first() {
    assert_eq!(
        printed(r#"{{ "a-b-c" | replace "-" "_" }} {{ "x.iso" | trimSuffix ".iso" }} {{ trimPrefix "x" "xy" }}"#),
        "a_b_c x y"
    );
    assert_eq!(
        printed(r#"{{ "abc" | contains "b" }} {{ "abc" | hasPrefix "a" }} {{ "abc" | hasSuffix "a" }}"#),
        "true true false"
    );
    assert_eq!(printed(r#"{{ "a\nb" | indent 2 }}{{ "a\nb" | nindent 1 }}"#), "  a\n  b\n a\n b");
    assert_eq!(printed(r#"{{ quote "a" 1 (coalesce) "b" }}"#), r#""a" "1" "b""#);
}

#[test]
fn patterns_find_and_replace() {
    assert_eq!(printed(r#"{{ regexFind "[a-z]+" "12abc3" }}"#), "abc");
    assert_eq!(printed(r#"{{ regexFindString "(\\w+)=(\\w+)" "k=v" 2 }}"#), "v");
    assert_eq!(printed(r#"{{ regexFindString "a" "a" 3 | quote }}"#), r#""""#);
    assert_eq!(printed(r#"{{ regexReplaceAll "(a)(b)" "abab" "${2}${1}" }}"#), "baba");
}

#[test]
fn a_value_in_text_is_found_by_its_key() {
    assert_eq!(printed(r#"{{ getValue "h=node-1;i=20000" "i" }}{{ getValue "h=1" "x" }}"#), "20000");
    assert_eq!(printed(r#"{{ getValue "a=1=2;b" "a" }}"#), "1");
    assert!(refused(r#"{{ getValue "a=1;b" "b" }}"#).contains("the key has no value"));
}

#[test]
fn wrong_arguments_end_the_template_with_an_error() {
    for template in [
        r#"{{ join "a" "," }}"#,
        r#"{{ join (list 1 2) "," }}"#,
        r#"{{ hasTag (dict) "a" }}"#,
        r#"{{ get (list) "a" }}"#,
        r#"{{ hasKey "a" "a" }}"#,
        r#"{{ upper 1 }}"#,
        r#"{{ ternary 1 2 3 }}"#,
        r#"{{ indent "2" "a" }}"#,
        r#"{{ indent -1 "a" }}"#,
        r#"{{ regexFind "(" "a" }}"#,
        r#"{{ regexFindString "a" "a" -1 }}"#,
        r#"{{ b64dec "?" }}"#,
        r#"{{ cidrhost "10.0.0.0/33" }}"#,
        r#"{{ cidrhost "10.0.0.0/24" 256 }}"#,
        r#"{{ cidrslaac "00:1A:2B:3C:4D:5E" "10.0.0.0/8" }}"#,
        r#"{{ cidrslaac "00:1A:2B:3C:4D:5E" "fd00::/120" }}"#,
        r#"{{ cidrslaac "00" "fd00::/64" }}"#,
        r#"{{ toYaml 1i }}"#,
    ] {
        refused(template);
    }
}

#[test]
fn the_same_call_gives_the_same_address_again() {
    let call = r#"{{ cidrslaac "00:1A:2B:3C:4D:5E" "fd00::/80" }} "#;
    let other = r#"{{ $x := cidrslaac "ff:ff:ff:ff:ff:ff" "fd01::/48" }}"#;
    assert_eq!(printed(&format!("{call}{other}{call}")), "fd00::2bff:fe3c:4d5e/80 fd00::2bff:fe3c:4d5e/80 ");
}

#[test]
fn a_negative_host_number_counts_from_the_end() {
    assert_eq!(
        printed(r#"{{ cidrhost "10.0.0.0/24" -2 }} {{ cidrhost "fd00::/64" -1 }}"#),
        "10.0.0.254 fd00::ffff:ffff:ffff:ffff"
    );
    assert_eq!(printed(r#"{{ cidrhost "::ffff:10.0.0.0/120" 5 }}"#), "10.0.0.5");
}

#[test]
fn what_json_cannot_say_is_an_empty_text() {
    for value in [Value::Float(f64::NAN), Value::Float(f64::INFINITY), Value::Complex(1.0, 2.0)] {
        assert!(matches!(call("toJson", &[value]), Ok(Value::String(text)) if text.as_bytes().is_empty()));
    }
}

#[test]
fn a_struct_with_a_text_is_written_as_that_text() {
    static SPAN: StructType = StructType { name: "metav1.Duration", fields: &[], text: Some(|_| "30s".to_owned()) };
    let span = Value::Struct(Struct::new(&SPAN, Vec::new()));
    assert_eq!(render("{{ toJson . }} {{ toYaml . }} {{ quote . }}", &span).unwrap(), r#""30s" 30s "30s""#);
}

#[test]
fn empty_fields_are_left_out_of_yaml_and_kept_in_json() {
    let inner = Value::zero(Type::Struct(&INNER));
    assert_eq!(render("{{ toYaml . }} {{ toJson . }}", &inner).unwrap(), r#"size: 0 {"Key":"","Flag":false,"Size":0}"#);
    let sample = Value::zero(Type::Struct(&SAMPLE));
    assert_eq!(render("{{ toYaml . }}", &sample).unwrap(), "name: \"\"\ntags: []\nnext: null");
}
