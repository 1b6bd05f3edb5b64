//! What can the templates of first-boot data call, beside Go's built-in functions?
//!
//! Names, argument orders and results are those of existing templates. Where documents promise more than programs ever
//! did, both work: `toPrettyYaml`, `list` and `dict` exist, and what takes a list or map of strings also takes one that
//! `list` or `dict` made. Whatever grows by what a template says is bounded by [`Limits`].

mod arguments;
mod choice;
mod cidr;
mod collection;
mod digits;
mod encoding;
mod json;
mod letter_case;
mod letters;
mod pattern;
mod search;
mod text;
mod yaml;

use tenon_gotemplate::{Body, Failure, Function, Functions, Limits, Type, Value};

use Type::{Any, Bool, String};

const INT: Type = Type::INT;
/// The indentation of `toYaml`.
const YAML_INDENT: usize = 4;
/// The indentation of `toYamlPretty`.
const PRETTY_INDENT: usize = 2;

/// All of them, for a template.
pub fn library() -> Functions {
    Functions::new(FUNCTIONS.iter().copied())
}

const FUNCTIONS: &[Function] = &[
    // Choices.
    any_number("default", &[Any, Any], choice::default),
    any_number("coalesce", &[Any], choice::coalesce),
    exactly("ternary", &[Any, Any, Bool], choice::ternary),
    exactly("empty", &[Any], choice::empty),
    // Documents.
    exactly("toJson", &[Any], json::to_json),
    exactly("toPrettyJson", &[Any], json::to_pretty_json),
    exactly("toYaml", &[Any], to_yaml),
    exactly("toYamlPretty", &[Any], to_pretty_yaml),
    exactly("toPrettyYaml", &[Any], to_pretty_yaml),
    // Text.
    exactly("indent", &[INT, String], text::indent),
    exactly("nindent", &[INT, String], text::indent_on_new_line),
    any_number("quote", &[Any], text::quote),
    exactly("upper", &[String], letter_case::upper),
    exactly("lower", &[String], letter_case::lower),
    exactly("trim", &[String], text::trim),
    exactly("trimSuffix", &[String, String], text::trim_suffix),
    exactly("trimPrefix", &[String, String], text::trim_prefix),
    exactly("split", &[String, String], text::split),
    exactly("join", &[Any, String], text::join),
    exactly("replace", &[String, String, String], text::replace),
    exactly("contains", &[String, String], text::contains),
    exactly("hasPrefix", &[String, String], text::has_prefix),
    exactly("hasSuffix", &[String, String], text::has_suffix),
    exactly("regexFind", &[String, String], pattern::find),
    exactly("regexFindString", &[String, String, INT], pattern::find_group),
    exactly("regexReplaceAll", &[String, String, String], pattern::replace_all),
    exactly("b64enc", &[String], encoding::encode_base64),
    exactly("b64dec", &[String], encoding::decode_base64),
    // Lists and maps.
    any_number("list", &[Any], collection::list),
    any_number("dict", &[Any], collection::dict),
    exactly("get", &[Any, String], collection::get),
    exactly("getValue", &[String, String], collection::get_value),
    exactly("hasKey", &[Any, String], collection::has_key),
    exactly("hasTag", &[Any, String], collection::has_tag),
    // Networks.
    any_number("cidrhost", &[String, INT], cidr::host),
    exactly("cidrslaac", &[String, String], cidr::slaac),
];

const fn exactly(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: false, body }
}

const fn any_number(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: true, body }
}

fn to_yaml(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    yaml::to_yaml(limits, arguments::at(arguments, 0), YAML_INDENT)
}

fn to_pretty_yaml(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    yaml::to_yaml(limits, arguments::at(arguments, 0), PRETTY_INDENT)
}

#[cfg(test)]
mod tests;
