//! Does a template give what Go gives? Where Go is installed, it answers itself.

#[cfg(test)]
mod format;
#[cfg(test)]
mod format_cases;
#[cfg(test)]
mod format_values;
#[cfg(test)]
mod go;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod seeded;
