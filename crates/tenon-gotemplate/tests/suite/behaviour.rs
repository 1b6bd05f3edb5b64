//! What does Go do that one would not expect? Each was found by comparing with Go, and is held here without it.

use tenon_gotemplate::{Delimiters, Functions, Options, Template};

use crate::template_data::dots;
use crate::typed_functions;

fn run(source: &[u8]) -> Result<String, String> {
    let options = Options { functions: Functions::new(typed_functions::functions()), ..Options::default() };
    run_with(source, &options)
}

fn run_with(source: &[u8], options: &Options) -> Result<String, String> {
    let outcome = Template::parse("t", source, options).and_then(|template| template.execute(&dots()[0]));
    outcome.map(|rendered| String::from_utf8(rendered.bytes).unwrap()).map_err(|error| error.to_string())
}

fn printed(source: &str) -> String {
    run(source.as_bytes()).unwrap()
}

#[test]
fn a_break_behind_the_else_of_a_range_ends_only_that_range() {
    assert_eq!(printed("{{range 2}}a{{range $.LE}}{{else}}b{{break}}c{{end}}d{{end}}"), "abdabd");
    assert_eq!(printed("{{range 2}}a{{range $.Nil}}{{else}}b{{continue}}c{{end}}d{{end}}"), "abab");
}

#[test]
fn the_slash_that_opens_a_comment_does_not_close_it() {
    assert!(run(b"{{/*/}}").unwrap_err().ends_with("unclosed comment"));
    assert_eq!(printed("a{{/*/*/}}b"), "ab");
}

#[test]
fn a_constant_too_large_for_its_parameter_loses_bits() {
    assert_eq!(printed("{{uint32 4294967297}} {{uint8 257}} {{int32 2147483648}}"), "1 1 -2147483648");
}

#[test]
fn a_struct_with_a_text_has_it_as_a_method() {
    assert_eq!(printed("{{.Named.String}} {{.NamedP.String | len}}"), "<ann> 5");
    assert!(run(b"{{.Named.String 1}}").unwrap_err().contains("wrong number of args for String"));
    assert!(run(b"{{.NilNamedP.String}}").is_err());
}

#[test]
fn bytes_that_are_no_text_become_the_replacement_character_in_quotes_only() {
    assert_eq!(run(b"{{\"\xff\" | len}} {{`\xff` | len}} {{'\xff'}}"), Ok("3 1 65533".to_owned()));
}

#[test]
fn an_error_names_the_word_that_was_evaluated_last() {
    let place = |source: &str| run(source.as_bytes()).unwrap_err().split(':').take(4).collect::<Vec<_>>().join(":");
    assert_eq!(place("{{range $i, $x := add 1\n 20}}{{end}}"), "template: t:2:1");
    assert_eq!(place("{{template \"no\" .Name.x}}"), "template: t:1:11");
    assert_eq!(place("{{(index .M \"a\").x}}"), "template: t:1:12");
    assert_eq!(place("{{.Name}}\n{{template \"t\" fail \"why\"}}"), "template: t:2:15");
}

#[test]
fn structs_are_equal_when_type_and_fields_are() {
    assert_eq!(printed("{{eq .Pair .Pair2}} {{eq .Pair (older .Pair)}} {{eq .Pair .Named}}"), "true false false");
    assert!(run(b"{{eq .Hold .Hold}}").unwrap_err().contains("non-comparable type main.Holder"));
}

#[test]
fn empty_delimiters_are_the_usual_ones() {
    let delimiters = Delimiters { left: String::new(), right: "]]".to_owned() };
    assert_eq!(run_with(b"{{.N]] }}", &Options { delimiters, ..Options::default() }), Ok("42 }}".to_owned()));
}
