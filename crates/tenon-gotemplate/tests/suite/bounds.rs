//! Does every template end, with little memory and little stack?
//!
//! Threads of a server have 2 MiB of stack, and a debug build needs the most of it.

use tenon_gotemplate::{Functions, Options, Rendered, Template, TemplateError, Value};

use crate::typed_functions;

const STACK: usize = 2 << 20;

/// Reads and runs a template in a thread with a small stack.
#[expect(clippy::disallowed_types, reason = "the crate starts no threads, but this test chooses their stack")]
fn run(source: impl Into<String>) -> Result<String, String> {
    let source = source.into();
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let outcome = here(&source);
        outcome
            .map(|rendered| String::from_utf8(rendered.bytes).unwrap())
            .map_err(|error| error.message.chars().take(100).collect::<String>())
    });
    thread.unwrap().join().unwrap()
}

fn here(source: &str) -> Result<Rendered, TemplateError> {
    let options = Options { functions: Functions::new(typed_functions::functions()), ..Options::default() };
    Template::parse("t", source.as_bytes(), &options)?.execute(&Value::int(0))
}

fn message(source: impl Into<String>) -> String {
    run(source).map(|text| text.chars().take(100).collect::<String>()).unwrap_err()
}

const STEPS: &str = "the template takes more than 2000000 steps";
const OUTPUT: &str = "the output is larger than 1048576 bytes";

#[test]
fn a_recursion_of_fifty_thousand_templates_works() {
    let source = r#"{{define "r"}}{{if gt . 0}}{{template "r" dec .}}{{else}}end{{end}}{{end}}{{template "r" 50000}}"#;
    assert_eq!(run(source), Ok("end".to_owned()));
}

#[test]
fn a_recursion_without_end_is_an_error() {
    let endless = r#"{{define "r"}}{{template "r"}}{{end}}{{template "r"}}"#;
    assert_eq!(message(endless), "exceeded maximum template depth (100000)");
    let branching = r#"{{define "r"}}{{template "r"}}{{template "r"}}{{end}}{{block "r" .}}{{end}}"#;
    assert_eq!(message(branching), "exceeded maximum template depth (100000)");
    let deep = r#"{{define "r"}}{{range 3}}{{template "r" (list $)}}{{end}}{{end}}{{template "r"}}"#;
    assert_eq!(message(deep), "error calling list: lists and maps nest deeper than 100 levels");
}

#[test]
fn recursion_that_branches_ends_by_its_steps() {
    let source =
        r#"{{define "r"}}{{if .}}{{template "r" dec .}}{{template "r" dec .}}{{end}}{{end}}{{template "r" 60}}"#;
    assert_eq!(message(source), STEPS);
}

#[test]
fn long_ranges_end_by_their_steps() {
    assert_eq!(message("{{range 9223372036854775807}}{{end}}"), STEPS);
    assert_eq!(message("{{range 1000000}}{{range 1000000}}{{break}}{{end}}{{continue}}{{end}}"), STEPS);
    assert_eq!(message("{{range $i := 1000000000}}{{$x := $i}}{{end}}"), STEPS);
    assert_eq!(message("{{range 100000000}}text{{end}}"), OUTPUT);
}

#[test]
fn texts_that_grow_are_bounded() {
    let doubling = r#"{{$x := "0123456789"}}{{range 100}}{{$x = print $x $x}}{{end}}"#;
    assert_eq!(message(doubling), format!("error calling print: {OUTPUT}"));
    let many = r#"{{define "r"}}{{$x := printf "%1000000d" .}}{{template "r" dec .}}{{end}}{{template "r" 1}}"#;
    assert_eq!(message(many), STEPS);
    let compared =
        r#"{{$x := printf "%1000000d" 1}}{{$y := printf "%1000000d" 1}}{{range 1000000}}{{$z := eq $x $y}}{{end}}"#;
    assert_eq!(message(compared), STEPS);
    for function in ["html", "js", "urlquery", "printf \"%q\"", "printf \"%x\"", "println"] {
        let escaped = format!(r#"{{{{$x := "<é\x00>"}}}}{{{{range 100}}}}{{{{$x = {function} $x $x}}}}{{{{end}}}}"#);
        assert!(message(&escaped).contains(OUTPUT) || run(&escaped).is_ok(), "{function}");
    }
}

#[test]
fn lists_that_grow_are_bounded() {
    let nested = "{{$x := list}}{{range 200}}{{$x = list $x}}{{end}}";
    assert_eq!(message(nested), "error calling list: lists and maps nest deeper than 100 levels");
    let keys = r#"{{define "r"}}{{template "r" dict . 1}}{{end}}{{template "r"}}"#;
    assert_eq!(message(keys), STEPS);
    let items = r#"{{define "r"}}{{template "r" list . (print .)}}{{end}}{{template "r" list "0123456789"}}"#;
    assert!(message(items).contains(OUTPUT));
    // Ninety levels hold more items than there are atoms, in ninety lists.
    let doubled = "{{$x := list}}{{range 90}}{{$x = list $x $x}}{{end}}";
    assert_eq!(run(format!("{doubled}{{{{len $x}}}}")), Ok("2".to_owned()));
    assert_eq!(message(format!("{doubled}{{{{$x}}}}")), OUTPUT);
    for function in ["print", "html", "printf \"%v\"", "printf \"%d\"", "printf \"%#v\"", "printf \"%x\""] {
        let printed = message(format!("{doubled}{{{{len ({function} $x)}}}}"));
        assert!(printed.ends_with(OUTPUT), "{function}: {printed}");
    }
}

#[test]
fn widths_and_precisions_are_bounded() {
    assert_eq!(run(r#"{{len (printf "%1000000d" 1)}}"#), Ok("1000000".to_owned()));
    for format in
        ["%9999999d", "%09999999d", "%.9999999d", "%9999999s", "%9999999v", "%+9999999q", "%9999999x", "%.9999999x"]
    {
        for value in ["1", "\"a\"", "1.5", "1i", "nil", "(list 1 2)"] {
            let _ = run(format!(r#"{{{{printf "{format}" {value}}}}}"#));
        }
    }
    for format in ["%.999999f", "%.999999e", "%.999999g", "%.999999x", "%.70000f", "%70000.70000e", "%0999999.99999f"] {
        let printed = run(format!(r#"{{{{len (printf "{format}" 1e300)}}}}"#));
        assert!(printed.is_ok(), "{format}: {printed:?}");
    }
    assert_eq!(message(r#"{{printf "%1000000d%1000000d" 1 2}}"#), format!("error calling printf: {OUTPUT}"));
    assert_eq!(run(r#"{{printf "%*d" 2000000 1}}"#), Ok("%!(BADWIDTH)1".to_owned()));
}

#[test]
fn a_long_template_is_read_and_run() {
    let actions = "{{.}}".repeat(200_000);
    assert_eq!(run(actions), Ok("0".repeat(200_000)));
    assert_eq!(run(format!("{{{{1{}}}}}", " | print".repeat(100_000))), Ok("1".to_owned()));
    assert_eq!(run(format!("{{{{len (list {})}}}}", ". ".repeat(500_000))), Ok("500000".to_owned()));
    let declared: String = (0..20_000).map(|at| format!("{{{{$v{at} := 1}}}}")).collect();
    assert_eq!(run(format!("{declared}{}", "{{$v0}}".repeat(2000))), Ok("1".repeat(2000)));
    assert_eq!(message(format!("{declared}{{{{range 2000000}}}}{{{{$z := $v0}}}}{{{{end}}}}")), STEPS);
    let name = "n".repeat(500_000);
    assert_eq!(run(format!(r#"{{{{define "{name}"}}}}x{{{{end}}}}{{{{template "{name}"}}}}"#)), Ok("x".to_owned()));
    let long = format!("{{{{range 1000000}}}}{{{{${name} := 1}}}}{{{{$z := ${name}}}}}{{{{end}}}}");
    assert_eq!(message(long), STEPS);
    let definitions: String = (0..20_000).map(|at| format!(r#"{{{{define "{at}"}}}}x{{{{end}}}}"#)).collect();
    assert_eq!(run(definitions + r#"{{template "777"}}"#), Ok("x".to_owned()));
}

#[test]
fn blocks_may_nest_deep_but_not_without_end() {
    for (open, depth) in [("{{if 1}}", 1000), ("{{with 1}}", 1000), ("{{range 1}}", 1000), ("{{if 0}}{{else}}", 1000)] {
        assert_eq!(run(open.repeat(depth) + "x" + &"{{end}}".repeat(depth)), Ok("x".to_owned()), "{open}");
        let deeper = open.repeat(100_000) + &"{{end}}".repeat(100_000);
        assert_eq!(message(deeper), "blocks nest deeper than 1000 levels", "{open}");
        assert_eq!(message(open.repeat(900)), "unexpected EOF", "{open}");
    }
    let blocks: String = (0..900).map(|at| format!(r#"{{{{block "{at}" .}}}}"#)).collect();
    assert_eq!(run(blocks + "x" + &"{{end}}".repeat(900)), Ok("x".to_owned()));
}

#[test]
fn a_chain_of_thousands_of_conditions_works() {
    let chain = "{{else if 0}}a".repeat(50_000);
    assert_eq!(run(format!("{{{{if 0}}}}a{chain}{{{{else}}}}b{{{{end}}}}")), Ok("b".to_owned()));
    let chain = "{{else with $x}}a{{$x}}".repeat(5_000);
    assert_eq!(run(format!("{{{{with $x := 0}}}}{chain}{{{{else with 7}}}}{{{{.}}}}{{{{end}}}}")), Ok("7".to_owned()));
}

#[test]
fn parentheses_may_nest_deep_but_not_without_end() {
    assert_eq!(run("{{".to_owned() + &"(".repeat(10_000) + "7" + &")".repeat(10_000) + "}}"), Ok("7".to_owned()));
    assert_eq!(run("{{".to_owned() + &"(not ".repeat(99) + "1" + &")".repeat(99) + "}}"), Ok("false".to_owned()));
    assert_eq!(run("{{".to_owned() + &"(not ".repeat(100) + "1" + &")".repeat(100) + "}}"), Ok("true".to_owned()));
    let most = "{{".to_owned() + &"(".repeat(10_001) + "7" + &")".repeat(10_001) + "}}";
    assert_eq!(message(most), "max expression depth exceeded");
    let too_deep = "{{".to_owned() + &"(not ".repeat(201) + "1" + &")".repeat(201) + "}}";
    assert_eq!(message(too_deep), "parentheses nest deeper than 100 levels");
    for open in ["(", "(not ", "(1|", "((1).x ", "($x:=", "(print (1) ", "(list "] {
        assert!(!message("{{".to_owned() + &open.repeat(200_000)).is_empty(), "{open}");
        assert!(!message("{{".to_owned() + &open.repeat(200_000) + "1}}").is_empty(), "{open}");
    }
    for (open, close) in
        [("(", ").x"), ("(print 1 ", ").x"), ("(list ", ")|print"), ("($x := ", ")"), ("(1|print ", ")")]
    {
        let _ = run("{{".to_owned() + &open.repeat(150) + "1" + &close.repeat(150) + "}}");
        let _ = run("{{".to_owned() + &open.repeat(100_000) + "1" + &close.repeat(100_000) + "}}");
    }
}

#[test]
fn what_is_not_closed_is_an_error_however_long() {
    let long = "x".repeat(1 << 20);
    for open in [
        "{{",
        "{{\"",
        "{{`",
        "{{'",
        "{{/*",
        "{{- ",
        "{{.",
        "{{$",
        "{{|",
        "{{if ",
        "{{(\"",
        "{{range $x",
        "{{template \"",
    ] {
        assert!(!message(format!("{open}{long}")).is_empty(), "{open}");
        let _ = run(open.repeat((1 << 20) / open.len()));
    }
    let spaces = " ".repeat(1 << 20);
    assert_eq!(run(format!("{spaces}{{{{- 1 -}}}}{spaces}")), Ok("1".to_owned()));
    assert_eq!(message(format!("{{{{{spaces}")), "unclosed action");
    let _ = run(format!("{{{{1{spaces}-}}}}"));
    let _ = run(format!("{{{{{}}}}}", "1".repeat(1 << 20)));
    let _ = run(format!("{{{{0x{}p1}}}}", "f".repeat(1 << 20)));
    let _ = run(format!("{{{{.{}}}}}", ".x".repeat(1 << 19)));
}
