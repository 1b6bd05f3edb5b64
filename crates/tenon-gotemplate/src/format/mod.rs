//! How does Go print a value?
//!
//! This is package `fmt` of Go 1.26 for the values of templates, to the byte. Everything is written through a bounded
//! [`Output`], whatever width, precision or value a template asks for.

mod compound;
mod directive;
mod float;
mod hex_float;
mod integer;
pub(crate) mod printable;
mod printer;
mod quote;
mod spec;
#[cfg(test)]
mod tests;
mod text;

use crate::{Failure, Output, Value};
use printer::Printer;
use spec::Spec;

pub use float::float;
pub use quote::quote;

/// `fmt.Sprint`: a space between two neighbours that are both no strings.
pub fn print(out: &mut Output, values: &[Value]) -> Result<(), Failure> {
    let mut is_after_string = true;
    for value in values {
        let is_string = matches!(value, Value::String(_));
        if !is_string && !is_after_string {
            out.push(" ")?;
        }
        plain(value, out)?;
        is_after_string = is_string;
    }
    Ok(())
}

/// `fmt.Sprintln`: a space between all, and a line end.
pub fn println(out: &mut Output, values: &[Value]) -> Result<(), Failure> {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(" ")?;
        }
        plain(value, out)?;
    }
    out.push("\n")
}

/// `fmt.Sprintf`.
pub fn printf(out: &mut Output, format: &[u8], values: &[Value]) -> Result<(), Failure> {
    directive::printf(out, format, values)
}

/// One value as `%v` prints it.
pub fn plain(value: &Value, out: &mut Output) -> Result<(), Failure> {
    Printer::new(out, Spec::default()).argument(value, 'v')
}
