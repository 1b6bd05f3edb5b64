//! Which variables are declared at a place of the source?

use std::collections::BTreeMap;

/// Names with their dollar, in the order of their declarations. A name may be declared many times.
pub(crate) struct Declared {
    names: Vec<String>,
    counts: BTreeMap<String, usize>,
}

impl Declared {
    /// What a template sees at its beginning: its data.
    pub(crate) fn of_template() -> Declared {
        let mut declared = Declared { names: Vec::new(), counts: BTreeMap::new() };
        declared.add("$".to_owned());
        declared
    }

    pub(crate) fn add(&mut self, name: String) {
        *self.counts.entry(name.clone()).or_default() += 1;
        self.names.push(name);
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 0)
    }

    /// How many there are, to come back to.
    pub(crate) fn mark(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        for name in self.names.drain(mark.min(self.names.len())..) {
            if let Some(count) = self.counts.get_mut(&name) {
                *count -= 1;
            }
        }
    }
}
