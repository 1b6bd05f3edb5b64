//! Rule: every reason of an event or a condition is in its table, and in the page that is generated from the table.
//!
//! The tables define constants of types whose fields are private, so rustc refuses most other reasons already. This rule
//! refuses the ways around them: a second place that constructs such a value, a reason written as text where an event or
//! a condition is made, and a reason inside `json!`. Tests may write reasons as text: they say what they expect.

use std::path::Path;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprLit, ExprStruct, Item, Lit, Macro, Member};

use super::Problem;
use super::module_tree::{is_cfg_test, product_files};
use crate::tree::Tree;

/// A type of reasons, and the one file that may construct its values.
const TABLES: [(&str, &str); 2] = [
    ("EventReason", "crates/tenon-api/src/event_reasons.rs"),
    ("ConditionReason", "crates/tenon-api/src/condition_reasons.rs"),
];

/// Functions whose first argument is a reason.
const EMITTERS: [(&str, &str); 5] = [
    ("Event", "new"),
    ("Verdict", "holds"),
    ("Verdict", "holds_because"),
    ("Verdict", "fails"),
    ("Verdict", "unknown"),
];

/// Structs whose field `reason` people read.
const CARRIERS: [&str; 4] = ["Condition", "Event", "Statement", "Verdict"];

/// Crates that write conditions and events; others answer as a Kubernetes API server does, with reasons of its own.
const WRITERS: [&str; 2] = ["crates/tenon-api/src", "crates/tenon-controllers/src"];

/// Publishes events, whatever their reason is.
const PUBLISHER: &str = "crates/tenon-controllers/src/events";

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let product = product_files(tree);
    let sources = tree.sources.iter().filter(|(path, _)| path.starts_with("crates") && product.contains(*path));
    Ok(sources.flat_map(|(path, source)| problems(path, source)).collect())
}

fn problems(path: &Path, source: &syn::File) -> Vec<Problem> {
    let is_publisher = path.with_extension("").starts_with(PUBLISHER);
    let is_writer = WRITERS.iter().any(|folder| path.starts_with(folder)) && !is_publisher;
    let mut scan = Scan { path, is_writer, problems: Vec::new() };
    scan.visit_file(source);
    scan.problems
}

/// Walks one file.
struct Scan<'a> {
    path: &'a Path,
    /// Whether `reason` as a key of JSON is a condition's or an event's.
    is_writer: bool,
    problems: Vec<Problem>,
}

impl Scan<'_> {
    /// `type_name` is the struct that carries the reason, or the type of the reason itself.
    fn refuse(&mut self, type_name: &str, span: Span, what: &str) {
        let [(_, events), (_, conditions)] = TABLES;
        let table = if type_name.starts_with("Event") { events } else { conditions };
        let message = format!("{what}; add the reason to {table} and use its constant");
        self.problems.push(Problem::new(self.path, span.start().line, message));
    }

    /// A value of a table's type is made in the table and nowhere else.
    fn construction(&mut self, type_name: &str, span: Span) {
        let table = TABLES.iter().find(|(name, _)| *name == type_name);
        if table.is_some_and(|(_, table)| self.path != Path::new(table)) {
            self.refuse(type_name, span, &format!("`{type_name}` is constructed outside its table"));
        }
    }

    fn call(&mut self, (type_name, function): (&str, &str), span: Span, has_text: bool) {
        if function == "new" {
            self.construction(type_name, span);
        }
        if EMITTERS.contains(&(type_name, function)) && has_text {
            self.refuse(type_name, span, &format!("`{type_name}::{function}` gets its reason as text"));
        }
    }

    /// The same questions inside a macro, whose content is only tokens.
    fn tokens(&mut self, stream: TokenStream) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            let rest = trees.get(at..).unwrap_or_default();
            let before = at.checked_sub(1).and_then(|before| trees.get(before));
            match rest {
                [TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if body.delimiter() == Delimiter::Brace && !introduces_a_type(before) =>
                {
                    self.construction(&name.to_string(), name.span());
                }
                [
                    TokenTree::Ident(name),
                    colon,
                    second,
                    TokenTree::Ident(function),
                    TokenTree::Group(arguments),
                    ..,
                ] if is_punct(colon, ':') && is_punct(second, ':') => {
                    let first = arguments.stream().into_iter().take_while(|token| !is_punct(token, ','));
                    let has_text = first.collect::<Vec<_>>().into_iter().any(holds_text);
                    self.call((&name.to_string(), &function.to_string()), name.span(), has_text);
                }
                [key, colon, value, ..]
                    if self.is_writer
                        && text_of(key).is_some_and(|key| key == "reason")
                        && is_punct(colon, ':')
                        && text_of(value).is_some() =>
                {
                    self.refuse("Condition", key.span(), "`reason` is written as text in JSON");
                }
                _ => {}
            }
            if let TokenTree::Group(group) = tree {
                self.tokens(group.stream());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Scan<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            _ => &Vec::new(),
        };
        if !attributes.iter().any(is_cfg_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = call.func.as_ref() {
            let names: Vec<String> = function.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            match names.as_slice() {
                [.., type_name, function] => {
                    let has_text = call.args.first().is_some_and(contains_text);
                    self.call((type_name, function), call.span(), has_text);
                }
                [type_name] => self.construction(type_name, call.span()),
                [] => {}
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_struct(&mut self, value: &'ast ExprStruct) {
        let name = value.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        self.construction(&name, value.span());
        let is_reason = |member: &Member| matches!(member, Member::Named(field) if field == "reason");
        let reason = value.fields.iter().find(|field| is_reason(&field.member));
        if self.is_writer && CARRIERS.contains(&name.as_str()) && reason.is_some_and(|field| contains_text(&field.expr))
        {
            self.refuse(&name, value.span(), &format!("`reason` of `{name}` is written as text"));
        }
        visit::visit_expr_struct(self, value);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(call.tokens.clone());
    }
}

/// Whether a brace after a name opens a definition or a function's body: `impl X {`, `-> X {`.
fn introduces_a_type(before: Option<&TokenTree>) -> bool {
    match before {
        Some(TokenTree::Ident(word)) => ["enum", "for", "impl", "struct"].iter().any(|keyword| word == keyword),
        Some(TokenTree::Punct(sign)) => sign.as_char() == '>',
        _ => false,
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// The text of a string literal.
fn text_of(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    match Lit::new(literal.clone()) {
        Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}

fn holds_text(token: TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.stream().into_iter().any(holds_text),
        token => text_of(&token).is_some(),
    }
}

/// Whether a string literal is anywhere in an expression: `"a"`, `&"a"`, `if b { "a" } else { "c" }`, `concat!("a", "c")`.
fn contains_text(expression: &Expr) -> bool {
    struct Search(bool);
    impl<'ast> Visit<'ast> for Search {
        fn visit_expr_lit(&mut self, literal: &'ast ExprLit) {
            self.0 |= matches!(literal.lit, Lit::Str(_));
        }
        fn visit_macro(&mut self, call: &'ast Macro) {
            self.0 |= call.tokens.clone().into_iter().any(holds_text);
        }
    }
    let mut search = Search(false);
    search.visit_expr(expression);
    search.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROLLER: &str = "crates/tenon-controllers/src/claim/drain.rs";

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = syn::parse_file(text).expect("the sample parses");
        problems(Path::new(path), &source).iter().map(|problem| problem.line).collect()
    }

    fn body(expression: &str) -> String {
        format!("fn f() {{\n    {expression};\n}}")
    }

    #[test]
    fn a_reason_as_text_is_refused_wherever_an_event_or_condition_is_made() {
        for emitter in
            ["Event::new", "Verdict::holds", "Verdict::holds_because", "Verdict::fails", "status::Verdict::unknown"]
        {
            for reason in ["\"Drained\"", "&\"Drained\"", "if a { \"A\" } else { B }", "concat!(\"A\", \"B\")"] {
                assert_eq!(lines(CONTROLLER, &body(&format!("{emitter}({reason}, note)"))), [2], "{emitter}({reason})");
            }
        }
        assert_eq!(lines(CONTROLLER, &body("vec![Verdict::fails(\"A\", why), Verdict::fails(B, \"why\")]")), [2]);
        assert_eq!(lines(CONTROLLER, &body("Condition { reason: \"A\".to_owned(), ..old }")), [2]);
    }

    #[test]
    fn constants_of_the_tables_and_free_text_as_message_are_fine() {
        for fine in [
            "Event::new(event_reasons::DRAINED, \"drained\")",
            "Verdict::fails(condition_reasons::DRAINED, format!(\"{} pods\", 1))",
            "Verdict::holds(reason)",
            "Statement { reason: reason.as_str(), message: \"text\" }",
            "Created { reason: \"provisioned\".to_owned() }",
        ] {
            assert_eq!(lines(CONTROLLER, &body(fine)), [0; 0], "{fine}");
        }
    }

    #[test]
    fn a_reason_is_constructed_in_its_own_table_only() {
        let [(_, events), (_, conditions)] = TABLES;
        for made in
            ["EventReason { name: x }", "EventReason::new(x)", "EventReason(x)", "table!(EventReason { name: x })"]
        {
            assert_eq!(lines(CONTROLLER, &body(made)), [2], "{made}");
            assert_eq!(lines(conditions, &body(made)), [2], "{made}");
            assert_eq!(lines(events, &body(made)), [0; 0], "{made}");
        }
        assert_eq!(lines(events, &body("ConditionReason::new(x)")), [2]);
        let uses = "fn f(reason: EventReason) -> EventReason { reason }\nimpl Tell for EventReason { }\n\
                    m! { fn f() -> EventReason { x } impl EventReason { } }";
        assert_eq!(lines(CONTROLLER, uses), [0; 0]);
    }

    #[test]
    fn a_reason_as_text_in_json_is_refused_where_conditions_are_written() {
        let text = body("json!({\"type\": \"Ready\", \"list\": [{\"reason\": \"Why\"}]})");
        assert_eq!(lines(CONTROLLER, &text), [2]);
        assert_eq!(lines("crates/tenon-api/src/drift.rs", &text), [2]);
        assert_eq!(lines("crates/tenon-sim/src/cluster/evict.rs", &text), [0; 0], "the server's reasons are not ours");
        assert_eq!(lines("crates/tenon-controllers/src/events.rs", &text), [0; 0], "it publishes events");
        assert_eq!(lines(CONTROLLER, &body("json!({\"reason\": verdict.reason})")), [0; 0]);
    }

    #[test]
    fn tests_say_the_reasons_they_expect() {
        let text = "#[cfg(test)]\nmod tests {\n    fn f() { Verdict::holds(\"Drained\"); }\n}";
        assert_eq!(lines(CONTROLLER, text), [0; 0]);
    }
}
