//! What a built program consists of: its sections, and its functions with their sizes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use crate::run::run;

/// A program as it was linked, with its symbols.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Image {
    /// The size of the file.
    pub(crate) file_bytes: u64,
    /// The size of the file once its symbols are removed, as it is shipped.
    pub(crate) stripped_bytes: u64,
    /// Those with bytes in the file.
    pub(crate) sections: Vec<Section>,
    pub(crate) functions: Vec<Function>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    /// As the linker knows it.
    pub(crate) symbol: String,
    pub(crate) bytes: u64,
}

/// Reads a program; `stripped` is where a copy without symbols may be written.
pub(crate) fn read(program: &Path, stripped: &Path) -> anyhow::Result<Image> {
    let data = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let mut image = parse(&data).with_context(|| format!("cannot read {} as an ELF file", program.display()))?;
    let mut strip = Command::new("strip");
    strip.args(["--strip-all", "-o"]).arg(stripped).arg(program);
    run(&mut strip, "install binutils")?;
    image.file_bytes = size_of(program)?;
    image.stripped_bytes = size_of(stripped)?;
    Ok(image)
}

fn size_of(file: &Path) -> anyhow::Result<u64> {
    Ok(fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len())
}

fn parse(data: &[u8]) -> object::Result<Image> {
    let file = object::File::parse(data)?;
    let mut image = Image::default();
    for section in file.sections() {
        // Memory that begins as zeros has no bytes in the file.
        let bytes = section.file_range().map_or(0, |(_, size)| size);
        if bytes > 0 {
            image.sections.push(Section { name: section.name()?.to_owned(), bytes });
        }
    }
    // Functions with the same code may share it: an address counts once.
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
        let function = Function { symbol: symbol.name()?.to_owned(), bytes: symbol.size() };
        functions.entry(symbol.address()).or_insert(function);
    }
    image.functions = functions.into_values().collect();
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_code_and_functions_within_it() {
        let program = std::env::current_exe().unwrap();
        let image = parse(&fs::read(program).unwrap()).unwrap();
        let code = image.sections.iter().find(|section| section.name == ".text").unwrap().bytes;
        let functions: u64 = image.functions.iter().map(|function| function.bytes).sum();
        assert!(functions > code / 2 && functions <= code, "{functions} of {code}");
        assert!(image.sections.iter().all(|section| section.name != ".bss"), "zeroed memory has no bytes in the file");
    }

    #[test]
    fn a_file_that_is_no_program_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tenon");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        let error = format!("{:#}", read(&file, &folder.path().join("stripped")).unwrap_err());
        assert!(error.starts_with(&format!("cannot read {} as an ELF file: ", file.display())), "{error}");
    }
}
