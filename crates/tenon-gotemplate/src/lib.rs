//! Go's `text/template` language: the same text for the same data, to the byte.
//!
//! A template is read by `lexer` and `parser`, and run by `machine`, which keeps its own stack: however deep templates
//! call each other, the program's stack does not grow. Output, steps and nesting are bounded, so that a bad template
//! ends with an error that says where.

mod failure;
pub mod format;
mod function;
mod output;
mod types;
mod value;

pub use failure::Failure;
pub use function::{Body, Function, Functions, Limits};
pub use output::Output;
pub use types::{Field, IntKind, StructType, Type, UintKind};
pub use value::{List, MAX_NESTING, Map, Pointer, Struct, Text, Value};
