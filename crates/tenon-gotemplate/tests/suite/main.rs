//! Does a template give what Go gives? Where Go is installed, it answers itself.

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod case_functions;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod format;
#[cfg(test)]
mod format_cases;
#[cfg(test)]
mod format_values;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod go;
#[cfg(test)]
mod letters;
#[cfg(test)]
mod operands;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod seeded;
#[cfg(test)]
mod template_cases;
#[cfg(test)]
mod template_data;
#[cfg(test)]
mod typed_functions;
#[cfg(test)]
mod vocabulary;
