//! One run of the compiler: for which package, what it made, what it cost. Written by the wrapper, a line of JSON each.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// What a run of the compiler made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Lib,
    ProcMacro,
    Bin,
    /// A test binary: unit tests of a library or program, or a file below `tests`.
    Test,
    /// Only the compilation of the build script. What it does when it runs is not the compiler's time.
    BuildScript,
    /// A build script that tries what the compiler can do.
    Probe,
}

/// One run of the compiler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit {
    #[serde(flatten)]
    pub(crate) what: Product,
    /// Processor time of the compiler and of the linker it started.
    pub(crate) cpu_s: f64,
    /// Seconds since 1970.
    pub(crate) begin_s: f64,
    pub(crate) end_s: f64,
}

/// What one run of the compiler is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Product {
    pub(crate) package: String,
    /// The name of the target with underscores; of a test binary, the name of its file.
    #[serde(rename = "crate")]
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Product {
    /// Reads it from the compiler's arguments and the variables cargo set. Of a question to the compiler, such as
    /// `-vV`, there is no product.
    pub(crate) fn read(arguments: &[String], variable: impl Fn(&str) -> Option<String>) -> Option<Product> {
        let name = value(arguments, "--crate-name")?;
        // Cargo asks for names of files and for `cfg` by pretending to compile a crate of this name.
        if name == "___" || value(arguments, "--print").is_some() {
            return None;
        }
        let kind = match value(arguments, "--crate-type").as_deref() {
            // Cargo tells the compiler for which target it runs, and a build script not.
            _ if variable("CARGO_CRATE_NAME").is_none() => Kind::Probe,
            _ if name.starts_with("build_script_") => Kind::BuildScript,
            _ if arguments.iter().any(|argument| argument == "--test") => Kind::Test,
            Some("proc-macro") => Kind::ProcMacro,
            Some("bin") => Kind::Bin,
            _ => Kind::Lib,
        };
        let package = variable("CARGO_PKG_NAME").unwrap_or_else(|| name.clone());
        Some(Product { package, name, kind })
    }
}

/// The value of an option written as two words or as one with `=`.
fn value(arguments: &[String], option: &str) -> Option<String> {
    let as_one = |word: &String| word.strip_prefix(option)?.strip_prefix('=').map(str::to_owned);
    let at = arguments.iter().position(|word| word == option);
    at.and_then(|at| arguments.get(at + 1).cloned()).or_else(|| arguments.iter().find_map(as_one))
}

/// As the tables name it. Versions are left out, so that an update still compares.
impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Lib => "lib",
            Kind::ProcMacro => "proc-macro",
            Kind::Bin => "bin",
            Kind::Test => "test",
            Kind::BuildScript => "build script",
            Kind::Probe => "probe",
        };
        write!(f, "{} {kind}", self.package)?;
        let is_told = self.name == self.package.replace('-', "_");
        match self.kind {
            Kind::Bin | Kind::Test if !is_told => write!(f, " {}", self.name),
            _ => Ok(()),
        }
    }
}

/// Every run that was written to a file, none if no compiler ran.
pub(crate) fn read_log(file: &Path) -> anyhow::Result<Vec<Unit>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let units = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    units.with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(line: &str, variables: &[(&str, &str)]) -> Option<String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let find = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
        Product::read(&arguments, find).map(|product| product.to_string())
    }

    #[test]
    fn a_product_is_named_by_package_kind_and_for_programs_by_target() {
        let cases = [
            ("--crate-name tenon_engine --crate-type lib", "tenon-engine", "tenon-engine lib"),
            ("--crate-name tenon_engine --test", "tenon-engine", "tenon-engine test"),
            ("--crate-name end_to_end --test", "tenon", "tenon test end_to_end"),
            ("--crate-name tenon --crate-type bin", "tenon", "tenon bin"),
            ("--crate-name=serde_derive --crate-type=proc-macro", "serde_derive", "serde_derive proc-macro"),
            ("--crate-name build_script_build --crate-type bin", "ring", "ring build script"),
        ];
        for (line, package, expected) in cases {
            let told = [("CARGO_PKG_NAME", package), ("CARGO_CRATE_NAME", "x")];
            assert_eq!(product(line, &told).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_question_to_the_compiler_is_no_product() {
        assert_eq!(product("-vV", &[]), None);
        assert_eq!(product("- --crate-name ___ --print=file-names --crate-type bin", &[]), None);
        assert_eq!(product("--crate-name x --print cfg", &[]), None);
    }

    #[test]
    fn what_a_build_script_tries_is_told_apart() {
        let told = [("CARGO_PKG_NAME", "anyhow")];
        assert_eq!(product("--crate-name=anyhow --crate-type=lib", &told).as_deref(), Some("anyhow probe"));
    }
}
