//! Reads from a function's symbol in which crate it was written, and in which crate it was compiled.
//!
//! A symbol of Rust's v0 scheme holds a path, and for a generic function the crate that asked for the instance. The
//! path of an `impl` block says where the block is, which the readable form of the name leaves out. The scheme is in
//! the reference of rustc, "v0 symbol format"; a rule of its grammar is a function here.

/// Where a function comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The crate with the function's source: of a method, the one with its `impl` block; of a method that a trait
    /// provides, the trait's.
    pub(crate) written_in: String,
    /// The crate whose compilation made this instance. For what is not generic, the crate it was written in.
    pub(crate) compiled_in: String,
}

/// Types and paths nest. Deeper than this, a symbol is not one a compiler made.
const DEPTH: usize = 400;

/// The origin of a function, unless its name is not Rust's.
pub(crate) fn origin(symbol: &str) -> Option<Origin> {
    let text = symbol.strip_prefix("_R")?.as_bytes();
    let mut reader = Reader { text, at: 0, depth: 0 };
    let written_in = reader.owner()?;
    let mut reader = Reader { text, at: 0, depth: 0 };
    let compiled_in = reader.skip_path().and_then(|()| reader.owner());
    Some(Origin { compiled_in: compiled_in.unwrap_or_else(|| written_in.clone()), written_in })
}

struct Reader<'a> {
    /// The symbol after `_R`, which references back into it count from.
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    /// The crate of the path that begins here. Does not go on to the path's end.
    fn owner(&mut self) -> Option<String> {
        // Each turn goes deeper into the path, or back to an earlier one.
        for _ in 0..DEPTH {
            match self.next()? {
                b'C' => {
                    self.disambiguator()?;
                    return self.identifier();
                }
                b'M' | b'X' => self.disambiguator()?,
                b'Y' => self.skip_type()?,
                b'N' => self.at += 1,
                b'I' => {}
                b'B' => self.at = self.number()?,
                _ => return None,
            }
        }
        None
    }

    fn skip_path(&mut self) -> Option<()> {
        self.deeper(|reader| match reader.next()? {
            b'C' => {
                reader.disambiguator()?;
                reader.identifier().map(drop)
            }
            b'M' => {
                reader.disambiguator()?;
                reader.skip_path()?;
                reader.skip_type()
            }
            b'X' => {
                reader.disambiguator()?;
                reader.skip_path()?;
                reader.skip_type()?;
                reader.skip_path()
            }
            b'Y' => {
                reader.skip_type()?;
                reader.skip_path()
            }
            b'N' => {
                reader.at += 1;
                reader.skip_path()?;
                reader.disambiguator()?;
                reader.identifier().map(drop)
            }
            b'I' => {
                reader.skip_path()?;
                reader.skip_until_end(Reader::skip_argument)
            }
            b'B' => reader.number().map(drop),
            _ => None,
        })
    }

    fn skip_argument(&mut self) -> Option<()> {
        match self.peek()? {
            b'L' => self.skip_lifetime(),
            b'K' => {
                self.at += 1;
                self.skip_const()
            }
            _ => self.skip_type(),
        }
    }

    fn skip_type(&mut self) -> Option<()> {
        self.deeper(|reader| match reader.peek()? {
            b'C' | b'M' | b'X' | b'Y' | b'N' | b'I' => reader.skip_path(),
            tag => {
                reader.at += 1;
                reader.skip_type_after(tag)
            }
        })
    }

    fn skip_type_after(&mut self, tag: u8) -> Option<()> {
        match tag {
            // A basic type is one letter.
            b'a'..=b'z' => Some(()),
            b'B' => self.number().map(drop),
            b'S' | b'P' | b'O' => self.skip_type(),
            b'A' => {
                self.skip_type()?;
                self.skip_const()
            }
            b'R' | b'Q' => {
                self.skip_lifetime()?;
                self.skip_type()
            }
            b'T' => self.skip_until_end(Reader::skip_type),
            b'F' => self.skip_signature(),
            b'D' => {
                self.skip_binder()?;
                self.skip_until_end(Reader::skip_bound)?;
                self.skip_lifetime()
            }
            _ => None,
        }
    }

    fn skip_signature(&mut self) -> Option<()> {
        self.skip_binder()?;
        self.eat(b'U');
        if self.eat(b'K') && !self.eat(b'C') {
            self.identifier()?;
        }
        self.skip_until_end(Reader::skip_type)?;
        self.skip_type()
    }

    /// A trait of a trait object, with the types that belong to it.
    fn skip_bound(&mut self) -> Option<()> {
        self.skip_path()?;
        while self.eat(b'p') {
            self.identifier()?;
            self.skip_argument()?;
        }
        Some(())
    }

    fn skip_const(&mut self) -> Option<()> {
        self.deeper(|reader| match reader.next()? {
            b'p' => Some(()),
            b'B' => reader.number().map(drop),
            b'R' | b'Q' => reader.skip_const(),
            b'A' | b'T' => reader.skip_until_end(Reader::skip_const),
            // The type's letter, then hexadecimal digits, a sign before them.
            b'a'..=b'z' => {
                while reader.next()? != b'_' {}
                Some(())
            }
            _ => None,
        })
    }

    fn skip_lifetime(&mut self) -> Option<()> {
        if self.eat(b'L') { self.number().map(drop) } else { Some(()) }
    }

    fn skip_binder(&mut self) -> Option<()> {
        if self.eat(b'G') { self.number().map(drop) } else { Some(()) }
    }

    fn disambiguator(&mut self) -> Option<()> {
        if self.eat(b's') { self.number().map(drop) } else { Some(()) }
    }

    fn identifier(&mut self) -> Option<String> {
        self.eat(b'u');
        let mut length = usize::from(self.next().filter(u8::is_ascii_digit)? - b'0');
        // No length begins with 0: of two closures, each without a name, this is the first one's end.
        while let Some(digit) = self.peek().filter(|byte| length > 0 && byte.is_ascii_digit()) {
            length = length.checked_mul(10)?.checked_add(usize::from(digit - b'0'))?;
            self.at += 1;
        }
        // Stands between the length and a name that begins with a digit or with itself.
        self.eat(b'_');
        let name = self.text.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        String::from_utf8(name.to_vec()).ok()
    }

    /// A number in base 62 that ends with `_`; `_` alone is 0, `0_` is 1.
    fn number(&mut self) -> Option<usize> {
        if self.eat(b'_') {
            return Some(0);
        }
        let mut number = 0_usize;
        loop {
            let digit = match self.next()? {
                b'_' => return number.checked_add(1),
                digit @ b'0'..=b'9' => digit - b'0',
                letter @ b'a'..=b'z' => letter - b'a' + 10,
                letter @ b'A'..=b'Z' => letter - b'A' + 36,
                _ => return None,
            };
            number = number.checked_mul(62)?.checked_add(usize::from(digit))?;
        }
    }

    fn skip_until_end(&mut self, skip: fn(&mut Self) -> Option<()>) -> Option<()> {
        while !self.eat(b'E') {
            skip(self)?;
        }
        Some(())
    }

    fn deeper(&mut self, f: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        let done = if self.depth > DEPTH { None } else { f(self) };
        self.depth -= 1;
        done
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(symbol: &str, written_in: &str, compiled_in: &str) {
        let expected = Origin { written_in: written_in.to_owned(), compiled_in: compiled_in.to_owned() };
        assert_eq!(origin(symbol), Some(expected), "{symbol}");
    }

    #[test]
    fn a_plain_function_was_compiled_where_it_was_written() {
        check("_RNvCs6xxl1lAjzDf_1a4main", "a", "a");
        check("_RNvNtCs6xxl1lAjzDf_1a1b4main.llvm.366555074948356753", "a", "a");
    }

    #[test]
    fn an_instance_was_compiled_in_the_crate_that_asked_for_it() {
        check(
            "_RINvMNtCsgEmfK2I1SDS_4core3stre18trim_start_matchesReECsgY6Mt91CT9J_14rustc_demangle",
            "core",
            "rustc_demangle",
        );
        check("_RINvCs6xxl1lAjzDf_1a5applyNCNvB2_4mains_0EB2_", "a", "a");
    }

    #[test]
    fn a_method_was_written_in_the_crate_of_its_impl_block_not_of_its_type() {
        // `impl b::Trait for alloc::string::String` in crate `a`.
        check("_RNvXCs1_1aNtNtCs2_5alloc6string6StringNtCs3_1b5Trait2hi", "a", "a");
        // A second block of the same module.
        check("_RNvXs_Cs1_1aNtNtCs2_5alloc6string6StringNtCs3_1b5Trait2hi", "a", "a");
    }

    #[test]
    fn a_method_that_a_trait_provides_was_written_in_the_crate_of_the_trait() {
        check("_RNvYINtNtCs2_5alloc3vec3VeclENtCs3_1b5Trait2hiCs1_1a", "b", "a");
    }

    #[test]
    fn arguments_of_every_form_are_passed_over() {
        // Trait object with an associated type, in a tuple, and a suffix of the linker's plug-in.
        let table = "_RINvMs6_NtCsgvbsrvnw3yD_9hashbrown3rawINtB6_8RawTableTNtNtCslNYArtu3iFV_5alloc6string6String\
                     INtNtBU_5boxed3BoxDINtNtNtCsgEmfK2I1SDS_4core3ops8function2FnThEEp6OutputtNtNtB1S_6marker4Send\
                     EL_EEE14reserve_rehashNCINvNtB8_3map11make_hasherBQ_B1s_NtNtNtCsjrHSEGnQ3l9_3std4hash6random11\
                     RandomStateE0ECs6xxl1lAjzDf_1a.llvm.366555074948356753";
        check(table, "hashbrown", "a");
        // A closure in a closure, both without a name.
        check("_RINvMNtCs1_4core3stre12trim_matchesNCNCNvCs2_1a7bracket00ECs3_1b", "core", "b");
        // `fn(&mut [u8], *const i32) -> (i8, u8)`, `[u8; 7]`, a lifetime, a constant, `unsafe extern "C" fn()`.
        check("_RINvCs1_1a5applyFQShPlETahEAhj7_L_Kb1_KRe61_FUKCEuECs2_1b", "a", "b");
    }

    #[test]
    fn other_names_have_no_origin() {
        for symbol in
            ["main", "ring_core_0_17_14__aes_hw_encrypt", "_ZN4core3fmt", "_R", "_RNvC", "_RB_", "_RNvC99999_a"]
        {
            assert_eq!(origin(symbol), None, "{symbol}");
        }
    }
}
