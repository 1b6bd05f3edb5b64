//! Which variables can be seen here?

use crate::Value;
use crate::tree::Pipe;

/// A variable, its name with its dollar.
#[derive(Debug)]
pub(crate) struct Variable<'t> {
    name: &'t str,
    value: Value,
}

/// Variables, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Scope<'t>(Vec<Variable<'t>>);

/// A variable that was looked for.
pub(crate) struct Found {
    pub(crate) value: Value,
    /// How many others were looked at.
    pub(crate) distance: usize,
}

impl<'t> Scope<'t> {
    /// The scope of a template that begins: it sees only its data.
    pub(crate) fn of_template(dot: Value) -> Scope<'t> {
        Scope(vec![Variable { name: "$", value: dot }])
    }

    /// How many variables there are, to come back to.
    pub(crate) fn mark(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Found> {
        let (distance, variable) = self.0.iter().rev().enumerate().find(|(_, variable)| variable.name == name)?;
        Some(Found { value: variable.value.clone(), distance })
    }

    /// Gives the variables of a pipeline its value. Says how many variables it looked at, or which one is not there.
    pub(crate) fn bind(&mut self, pipe: &'t Pipe, value: &Value) -> Result<usize, &'t str> {
        let mut looked_at = 0;
        for name in &pipe.variables {
            if pipe.assigns {
                looked_at += self.assign(name, value)?;
            } else {
                self.0.push(Variable { name, value: value.clone() });
            }
        }
        Ok(looked_at)
    }

    /// The same for a range: its variables, which are the last ones, get the index and the item.
    pub(crate) fn set_range(&mut self, pipe: &'t Pipe, index: &Value, item: &Value) -> Result<usize, &'t str> {
        let values: &[&Value] = if pipe.variables.len() > 1 { &[index, item] } else { &[item] };
        let mut looked_at = 0;
        for (place, (name, value)) in pipe.variables.iter().zip(values).enumerate() {
            if pipe.assigns {
                looked_at += self.assign(name, value)?;
                continue;
            }
            let from_top = pipe.variables.len() - place;
            let at = self.0.len().checked_sub(from_top);
            if let Some(variable) = at.and_then(|at| self.0.get_mut(at)) {
                variable.value = (*value).clone();
            }
        }
        Ok(looked_at)
    }

    fn assign(&mut self, name: &'t str, value: &Value) -> Result<usize, &'t str> {
        let found = self.0.iter_mut().rev().enumerate().find(|(_, variable)| variable.name == name);
        let (distance, variable) = found.ok_or(name)?;
        variable.value = value.clone();
        Ok(distance)
    }
}
