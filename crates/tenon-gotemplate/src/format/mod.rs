//! How does Go print a value?

use crate::{Failure, Output, Value};

/// `fmt.Sprint`: a space between two neighbours that are both no strings.
pub fn print(_out: &mut Output, _values: &[Value]) -> Result<(), Failure> {
    Ok(())
}

/// `fmt.Sprintln`: a space between all, and a line end.
pub fn println(_out: &mut Output, _values: &[Value]) -> Result<(), Failure> {
    Ok(())
}

/// `fmt.Sprintf`.
pub fn printf(_out: &mut Output, _format: &[u8], _values: &[Value]) -> Result<(), Failure> {
    Ok(())
}
