//! A template from its text to its output.

use crate::error::{Stage, TemplateError, Wrong};
use crate::machine::Machine;
use crate::tree::Definitions;
use crate::{Options, Value, parser};

/// A template that was read.
#[derive(Debug)]
pub struct Template<'o> {
    name: String,
    source: Vec<u8>,
    options: &'o Options,
    definitions: Definitions,
}

/// What a template printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The first place that printed `<no value>`, if one did. Go takes that for no error.
    pub no_value: Option<TemplateError>,
}

impl<'o> Template<'o> {
    /// Reads a template. `name` is what errors call it.
    pub fn parse(name: &str, source: &[u8], options: &'o Options) -> Result<Template<'o>, TemplateError> {
        let definitions = parser::parse(name, source, options).map_err(|Wrong { span, message }| {
            let (line, column) = span.position(source);
            TemplateError { stage: Stage::Parse, template: name.to_owned(), line, column, running: None, message }
        })?;
        Ok(Template { name: name.to_owned(), source: source.to_vec(), options, definitions })
    }

    /// What it prints for this data.
    pub fn execute(&self, data: &Value) -> Result<Rendered, TemplateError> {
        Machine::new(&self.definitions, self.options).run(&self.name, &self.source, data)
    }
}
