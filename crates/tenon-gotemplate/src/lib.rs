//! Go's `text/template` language: the same text for the same data, to the byte.
//!
//! A template is read by `lexer` and `parser`, and run by `machine`, which keeps its own stack: however deep templates
//! call each other, the program's stack does not grow. Output, steps and nesting are bounded, so that a bad template
//! ends with an error that says where.

mod arguments;
mod builtin;
mod declared;
mod error;
mod evaluate;
mod failure;
pub mod format;
mod function;
mod go_type;
mod items;
mod letter;
mod lexer;
mod machine;
mod number;
mod output;
mod parser;
mod pipeline;
mod scanner;
mod scope;
mod structs;
mod template;
mod token;
mod tree;
mod unquote;
mod value;
mod words;

pub use error::{Running, Stage, TemplateError};
pub use failure::Failure;
pub use function::{Body, Function, Functions, Limits, MissingKey, Options};
pub use go_type::{Field, IntKind, StructType, Type, UintKind};
pub use lexer::Delimiters;
pub use output::Output;
pub use structs::{Pointer, Struct};
pub use template::{Rendered, Template};
pub use value::{List, MAX_NESTING, Map, Text, Value};
