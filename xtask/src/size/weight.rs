//! Where the bytes of a program are: by kind of content, by crate, by function.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::image::Image;
use super::mangling::{Origin, origin};
use super::names::{trait_method, without_arguments};

/// The row of crates that come with the compiler, `core` and `gimli` alike: no choice of ours tells them apart.
const STD: &str = "std";

/// Functions whose name is not Rust's.
const FOREIGN: &str = "(C and assembly)";

/// Code that belongs to no symbol: padding between functions, and what the C library adds.
const NAMELESS: &str = "(no symbol)";

/// Kinds of content with the sections that hold each, by the beginning of the name. The first that fits counts.
const CONTENTS: [(&str, &[&str]); 5] = [
    ("code", &[".text"]),
    ("unwind tables", &[".eh_frame", ".gcc_except_table"]),
    ("constants with addresses", &[".data.rel.ro"]),
    ("read-only data", &[".rodata"]),
    ("relocations", &[".rel"]),
];

/// Everything else in the file: dynamic symbols, data that changes, headers.
const OTHER: &str = "other";

/// Where the bytes of a program are.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Weight {
    /// The size of the file with symbols, as it was built to be measured.
    pub(crate) file_bytes: u64,
    /// The size of the file as it is shipped. The contents add up to it.
    pub(crate) stripped_bytes: u64,
    pub(crate) contents: BTreeMap<String, u64>,
    pub(crate) crates: BTreeMap<String, Code>,
    /// Functions without their arguments, all instances together.
    pub(crate) functions: BTreeMap<String, Instances>,
    /// Methods of traits, all implementations together.
    pub(crate) methods: BTreeMap<String, Instances>,
}

/// Bytes of code that a crate accounts for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Code {
    /// Of functions whose source is in the crate, wherever they were compiled.
    pub(crate) written_bytes: u64,
    /// Of functions that were compiled with the crate, wherever they were written.
    pub(crate) compiled_bytes: u64,
}

/// All instances of a generic function, or all implementations of a method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Instances {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Instances {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// Attributes what a program consists of. `compiled` are the crates that were compiled for it; what is in it of others
/// came compiled.
pub(crate) fn weigh(image: &Image, compiled: &BTreeSet<&str>) -> Weight {
    let mut weight = Weight {
        file_bytes: image.file_bytes,
        stripped_bytes: image.stripped_bytes,
        contents: contents(image),
        ..Weight::default()
    };
    for function in &image.functions {
        let bytes = function.bytes;
        let origin = row_names(&function.symbol, compiled);
        weight.crates.entry(origin.written_in).or_default().written_bytes += bytes;
        weight.crates.entry(origin.compiled_in).or_default().compiled_bytes += bytes;
        let name = without_arguments(&format!("{:#}", rustc_demangle::demangle(&function.symbol)));
        if let Some(method) = trait_method(&name) {
            weight.methods.entry(method).or_default().add(bytes);
        }
        weight.functions.entry(name).or_default().add(bytes);
    }
    let named: u64 = image.functions.iter().map(|function| function.bytes).sum();
    let code = weight.contents.get("code").copied().unwrap_or_default();
    if let Some(bytes) = code.checked_sub(named).filter(|bytes| *bytes > 0) {
        weight.crates.insert(NAMELESS.to_owned(), Code { written_bytes: bytes, compiled_bytes: bytes });
    }
    weight
}

fn contents(image: &Image) -> BTreeMap<String, u64> {
    let mut contents: BTreeMap<String, u64> = BTreeMap::new();
    for section in &image.sections {
        let fits = |prefixes: &[&str]| prefixes.iter().any(|prefix| section.name.starts_with(prefix));
        if let Some((content, _)) = CONTENTS.iter().find(|(_, prefixes)| fits(prefixes)) {
            *contents.entry((*content).to_owned()).or_default() += section.bytes;
        }
    }
    let known: u64 = contents.values().sum();
    contents.insert(OTHER.to_owned(), image.stripped_bytes.saturating_sub(known));
    contents
}

/// The rows of the table of crates that a function counts for.
fn row_names(symbol: &str, compiled: &BTreeSet<&str>) -> Origin {
    let Some(Origin { written_in, compiled_in }) = origin(symbol) else {
        return Origin { written_in: FOREIGN.to_owned(), compiled_in: FOREIGN.to_owned() };
    };
    let row = |name: String| if compiled.contains(name.as_str()) { name } else { STD.to_owned() };
    Origin { written_in: row(written_in), compiled_in: row(compiled_in) }
}

#[cfg(test)]
mod tests {
    use super::super::image::{Function, Section};
    use super::*;

    fn image() -> Image {
        let section = |name: &str, bytes| Section { name: name.to_owned(), bytes };
        let function = |symbol: &str, bytes| Function { symbol: symbol.to_owned(), bytes };
        Image {
            file_bytes: 9000,
            stripped_bytes: 2000,
            sections: vec![
                section(".text", 1000),
                section(".eh_frame_hdr", 20),
                section(".eh_frame", 100),
                section(".gcc_except_table", 30),
                section(".rodata.cst16", 5),
                section(".data.rel.ro", 7),
                section(".relr.dyn", 11),
                section(".dynsym", 13),
            ],
            functions: vec![
                // `core::ptr::drop_in_place`, of types of `a` and of `b`.
                function("_RINvNtCs9_4core3ptr13drop_in_placeNtCs1_1a1TEBy_", 100),
                function("_RINvNtCs9_4core3ptr13drop_in_placeNtCs1_1a1TECs2_1b", 200),
                // `<alloc::string::String as c::Trait>::hi` and `<a::T as c::Trait>::hi`, implemented in `a`.
                function("_RNvXCs1_1aNtNtCs3_5alloc6string6StringNtCs4_1c5Trait2hi", 40),
                function("_RNvXs_Cs1_1aNtB4_1TNtCs4_1c5Trait2hi", 50),
                function("ring_core_0_17_14__aes_hw_encrypt", 600),
            ],
        }
    }

    #[test]
    fn contents_add_up_to_the_file_as_it_is_shipped() {
        let contents = weigh(&image(), &BTreeSet::from(["a", "b"])).contents;
        assert_eq!(contents.values().sum::<u64>(), 2000);
        assert_eq!(contents.get("unwind tables"), Some(&150));
        assert_eq!(contents.get("constants with addresses"), Some(&7));
        assert_eq!(contents.get("other"), Some(&(2000 - 1000 - 150 - 5 - 7 - 11)));
    }

    #[test]
    fn code_counts_for_the_crate_it_was_written_in_and_for_the_crate_that_compiled_it() {
        let crates = weigh(&image(), &BTreeSet::from(["a", "b"])).crates;
        let code = |written_bytes, compiled_bytes| Some(Code { written_bytes, compiled_bytes });
        assert_eq!(crates.get(STD).copied(), code(300, 0));
        assert_eq!(crates.get("a").copied(), code(90, 190));
        assert_eq!(crates.get("b").copied(), code(0, 200));
        assert_eq!(crates.get(FOREIGN).copied(), code(600, 600));
        assert_eq!(crates.get(NAMELESS).copied(), code(10, 10));
    }

    #[test]
    fn instances_and_implementations_are_added() {
        let weight = weigh(&image(), &BTreeSet::from(["a", "b"]));
        let instances = |count, bytes| Some(Instances { count, bytes });
        assert_eq!(weight.functions.get("core::ptr::drop_in_place").copied(), instances(2, 300));
        assert_eq!(weight.functions.get("<a::T as c::Trait>::hi").copied(), instances(1, 50));
        assert_eq!(weight.methods.get("<_ as c::Trait>::hi").copied(), instances(2, 90));
    }
}
