//! Do the functions give what Go gives?

mod behaviour;
mod bounds;
mod generate;
mod go;
mod nasty;
mod sample;
mod written;

use tenon_gotemplate::{Failure, Limits, Options, Template, Value};

use super::{FUNCTIONS, library};

/// Calls a function as the engine does once it has checked the arguments.
fn call(name: &str, arguments: &[Value]) -> Result<Value, Failure> {
    call_within(&Limits::default(), name, arguments)
}

fn call_within(limits: &Limits, name: &str, arguments: &[Value]) -> Result<Value, Failure> {
    let function = FUNCTIONS.iter().find(|function| function.name == name);
    (function.unwrap_or_else(|| panic!("no function `{name}`")).body)(limits, arguments)
}

/// What a template prints.
fn render(template: &str, data: &Value) -> Result<String, String> {
    let options = Options { functions: library(), ..Options::default() };
    let template = Template::parse("test", template.as_bytes(), &options).map_err(|error| error.to_string())?;
    let rendered = template.execute(data).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(rendered.bytes).unwrap())
}
