//! Names of functions without what differs between their instances.

/// A readable name without arguments: `a::f::<u8>` and `a::f::<u16>` are both `a::f`, and
/// `<Vec<u8> as Drop>::drop` is `<Vec as Drop>::drop`.
pub(crate) fn without_arguments(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut depth = 0_usize;
    let mut last = ' ';
    for letter in name.chars() {
        let is_arrow = last == '-' && letter == '>';
        match letter {
            '<' if depth > 0 => depth += 1,
            '<' if takes_arguments(&kept) => {
                kept.truncate(kept.trim_end_matches(':').len());
                depth = 1;
            }
            '>' if depth > 0 && !is_arrow => depth -= 1,
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
        last = letter;
    }
    kept
}

/// Whether a `<` after this text opens arguments. After a name it does; elsewhere it opens `<Type as Trait>`.
fn takes_arguments(before: &str) -> bool {
    before.ends_with("::") || before.ends_with(|letter: char| letter.is_alphanumeric() || "_}]".contains(letter))
}

/// The method of a trait that a name without arguments is an implementation of: `<Vec as Drop>::drop` is
/// `<_ as Drop>::drop`.
pub(crate) fn trait_method(name: &str) -> Option<String> {
    let inner = name.strip_prefix('<')?;
    let mut depth = 1_usize;
    let mut split = None;
    for (at, letter) in inner.char_indices() {
        let is_arrow = inner.get(..at).is_some_and(|before| before.ends_with('-'));
        match letter {
            '<' => depth += 1,
            '>' if !is_arrow => depth -= 1,
            _ => {}
        }
        let rest = inner.get(at..)?;
        if depth == 1 && rest.starts_with(" as ") {
            split = Some(rest);
        }
        if depth == 0 {
            break;
        }
    }
    split.map(|rest| format!("<_{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_left_out_at_every_place() {
        let cases = [
            ("core::ptr::drop_in_place::<alloc::vec::Vec<a::B>>", "core::ptr::drop_in_place"),
            ("a::f::<u8>::{closure#0}", "a::f::{closure#0}"),
            ("<alloc::vec::Vec<u8> as a::Trait<b::C>>::hi::<d::E>", "<alloc::vec::Vec as a::Trait>::hi"),
            ("<<a::B<u8> as c::D>::E as f::G>::h", "<<a::B as c::D>::E as f::G>::h"),
            ("<a::B<fn(u8) -> u16>>::c", "<a::B>::c"),
            ("<&mut [u8] as a::B>::c", "<&mut [u8] as a::B>::c"),
            (
                "<a::f::{closure#1}<u8> as core::ops::FnOnce<()>>::call_once",
                "<a::f::{closure#1} as core::ops::FnOnce>::call_once",
            ),
            ("main", "main"),
        ];
        for (name, expected) in cases {
            assert_eq!(without_arguments(name), expected);
        }
    }

    #[test]
    fn implementations_of_one_method_have_one_name() {
        assert_eq!(trait_method("<alloc::vec::Vec as a::Trait>::hi").as_deref(), Some("<_ as a::Trait>::hi"));
        assert_eq!(trait_method("<<a::B as c::D>::E as f::G>::h").as_deref(), Some("<_ as f::G>::h"));
        assert_eq!(trait_method("<dyn a::Fn(u8) -> u16 as f::G>::h").as_deref(), Some("<_ as f::G>::h"));
        assert_eq!(trait_method("<a::B>::c"), None);
        assert_eq!(trait_method("a::b"), None);
    }
}
