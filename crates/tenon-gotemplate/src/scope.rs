//! Which variables can be seen here?

use crate::Value;
use crate::error::Wrong;
use crate::tree::Pipe;

/// A variable, its name with its dollar.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// Variables, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Scope(Vec<Variable>);

impl Scope {
    pub(crate) fn of(variables: Vec<Variable>) -> Scope {
        Scope(variables)
    }

    pub(crate) fn into_variables(self) -> Vec<Variable> {
        self.0
    }

    /// How many there are, to come back to.
    pub(crate) fn mark(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().rev().find(|variable| variable.name == name).map(|variable| &variable.value)
    }

    /// Gives the variables of a pipeline its value.
    pub(crate) fn bind(&mut self, pipe: &Pipe, value: &Value) -> Result<(), Wrong> {
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(pipe, name, value)?;
            } else {
                self.0.push(Variable { name: name.clone(), value: value.clone() });
            }
        }
        Ok(())
    }

    /// Gives the variables of a range, which are the last ones, its index and its item.
    pub(crate) fn set_range(&mut self, pipe: &Pipe, index: &Value, item: &Value) -> Result<(), Wrong> {
        let values: &[&Value] = if pipe.variables.len() > 1 { &[index, item] } else { &[item] };
        for (place, (name, value)) in pipe.variables.iter().zip(values).enumerate() {
            if pipe.assigns {
                self.assign(pipe, name, value)?;
                continue;
            }
            let from_top = pipe.variables.len() - place;
            let at = self.0.len().checked_sub(from_top);
            if let Some(variable) = at.and_then(|at| self.0.get_mut(at)) {
                variable.value = (*value).clone();
            }
        }
        Ok(())
    }

    fn assign(&mut self, pipe: &Pipe, name: &str, value: &Value) -> Result<(), Wrong> {
        match self.0.iter_mut().rev().find(|variable| variable.name == name) {
            Some(variable) => variable.value = value.clone(),
            None => return Err(Wrong::at(pipe.spot(), format!("undefined variable: {name}"))),
        }
        Ok(())
    }
}
