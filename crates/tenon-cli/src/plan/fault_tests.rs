//! Errors in files: the line of the file, and what is wrong there.

use super::load_tests::{POD, TYPES, indented, pod_json, read};

const WRONG: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: b\nspec:\n  containers: 5\n";
const NEGATIVE: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: n}\nspec:\n  containers:\n  - name: c\n    resources: \
                        {requests: {cpu: -1}}\n";
const LIST: &str = "apiVersion: v1\nkind: List\nitems:\n";

/// Reads a text under a name that tells its form.
fn is_reported(name: &str, text: &str, words: &str) {
    let said = read(name, text).map(|found| found.objects.pods.len()).unwrap_err();
    assert!(said.contains(words) && !said.contains('\n'), "{text}\nsaid: {said}\nwanted: {words}");
    assert!(!said.contains("at line"), "{said}");
}

#[test]
fn a_fault_in_yaml_is_reported_with_the_line_of_the_file() {
    let three = format!("{POD}---\n{POD}").replacen("name: a", "name: z", 1) + "---\n" + WRONG;
    for (text, words) in [
        (three, "x.yaml:16: Pod: "),
        (format!("{LIST}{}", indented(WRONG)), "x.yaml:9: Pod: "),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5\n".to_owned(), "x.yaml:4: Pod: "),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  hostNetwork: on\n".to_owned(), "x.yaml:5: "),
        (format!("{POD}---\na: b: c\n"), "x.yaml:6: "),
        (format!("{POD}---\na:\n  - [\n"), "x.yaml:"),
        (POD.replace("}]}\n", ""), "x.yaml:"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n".to_owned(), "x.yaml:5: "),
        ("apiVersion: v1\nkind: Pod\n".to_owned(), "x.yaml:1: Pod: metadata.name is required"),
        ("apiVersion: v1\nkind: Secret\nkind: Pod\n".to_owned(), "x.yaml:3: duplicate key `kind`"),
        (format!("{LIST}- kind: A\n  apiVersion: v1\nitems: []\n"), "x.yaml:6: duplicate key `items`"),
        ("name: a\n".to_owned(), "x.yaml:1: not a Kubernetes object: `kind` is missing"),
        ("kind: Pod\n".to_owned(), "x.yaml:1: not a Kubernetes object: `apiVersion` is missing"),
        ("only words\n".to_owned(), "x.yaml:1: "),
    ] {
        is_reported("x.yaml", &text, words);
    }
}

#[test]
fn an_amount_is_reported_with_its_own_line() {
    let yaml = format!("{POD}---\n{NEGATIVE}");
    is_reported("x.yaml", &yaml, "x.yaml:12: Pod n: spec.containers[0].resources.requests.cpu: `-1`");
    let list = format!("{LIST}{}", indented(&NEGATIVE.replace("requests: {cpu", "limits:\n        {a.b/c")));
    is_reported("x.yaml", &list, "x.yaml:11: Pod n: spec.containers[0].resources.limits.a.b/c: `-1`");
    let json = r#"[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"},"spec":{"containers":[{"name":"c","resources":
        {"requests":{"memory":"1Gi",
        "cpu":"-1"}}}]}}]"#;
    is_reported("x.json", json, "x.json:3: Pod n: spec.containers[0].resources.requests.cpu: `-1`");
}

#[test]
fn what_nobody_reads_must_be_whole() {
    let secret = format!("apiVersion: v1\nkind: Secret\ndata: {{a: [1\n---\n{POD}");
    is_reported("x.yaml", &secret, "x.yaml:3: unclosed bracket");
    is_reported("x.yaml", &format!("{LIST}- apiVersion: v1\n  kind: A\n  b: 'c\n"), "x.yaml:6: ");
}

#[test]
fn a_list_that_is_read_as_a_whole_keeps_the_lines_of_its_members() {
    for (text, words) in [
        (
            format!("{LIST}- &p\n  apiVersion: v1\n  kind: A\n- *p\n{}", indented(WRONG)),
            "x.yaml:8: Pod: invalid type: integer `5`, expected a sequence",
        ),
        (format!("{}{}", indented(POD), indented(WRONG)), "x.yaml:5: Pod: invalid type: integer `5`"),
        (
            "kind: PodList\napiVersion: v1\nitems: [\n {metadata: {name: a}},\n {metadata: 5}]".to_owned(),
            "x.yaml:5: Pod: invalid type",
        ),
    ] {
        is_reported("x.yaml", &text, words);
    }
}

#[test]
fn a_fault_in_json_is_reported_with_the_line_of_the_file() {
    let inner = |kind: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"List","items":[{{"apiVersion":"v1","kind":"{kind}","items":[]}}]}}"#)
    };
    for (text, words) in [
        (TYPES.to_owned(), "give a list of instance types with --instance-types"),
        (format!("{}\n{}", pod_json("a"), "{\"kind\":"), "x.json:2: unexpected end of the JSON"),
        (format!("[{},\n{}]", pod_json("a"), pod_json("b").replace("\"b\"", "\n7")), "x.json:3: Pod: invalid type"),
        (
            "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[\n{\"metadata\":\n{\"name\":7}}]}".to_owned(),
            "x.json:3: Pod",
        ),
        ("// words\n{}".to_owned(), "x.json:1: expected value"),
        (
            pod_json("a").replace("\"spec\"", "\n\"metadata\":{\"name\":\"b\"},\"spec\""),
            "x.json:2: Pod: duplicate key `metadata`",
        ),
        (
            r#"{"apiVersion":"v1","kind":"List","items":[],"items":[]}"#.to_owned(),
            "x.json:1: duplicate key `items`; keep one",
        ),
        (inner("List"), "list within a list"),
        (inner("PodList"), "list within a list"),
    ] {
        is_reported("x.json", &text, words);
    }
    is_reported("standard input", "{\"apiVersion\": \"v1\",\n\"kind\" \"Pod\"}", "standard input:2: expected `:`");
}
