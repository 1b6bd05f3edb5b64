//! In which order do the keys of a map stand?
//!
//! As people count: `a2` before `a10`. Where two keys first differ, letters follow signs and digits, but a letter that
//! ends a number comes before one more digit. The relation is not a strict order for all strange keys, so the sorting
//! below is one that takes any relation.

use super::super::letters::{is_digit, is_letter};
use super::Entries;

/// The entries in the order of their keys.
pub(super) fn sorted(entries: Entries<'_>) -> Entries<'_> {
    let keyed = entries.into_iter().map(|entry| (runes(&entry.0), entry)).collect();
    merge_sort(keyed).into_iter().map(|(_, entry)| entry).collect()
}

type Keyed<'a> = Vec<(Vec<char>, (std::borrow::Cow<'a, [u8]>, std::borrow::Cow<'a, super::Value>))>;

fn merge_sort(mut entries: Keyed<'_>) -> Keyed<'_> {
    if entries.len() < 2 {
        return entries;
    }
    let right = merge_sort(entries.split_off(entries.len() / 2));
    let left = merge_sort(entries);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let mut right = right.into_iter().peekable();
    for entry in left {
        while let Some(next) = right.next_if(|next| is_before(&next.0, &entry.0)) {
            merged.push(next);
        }
        merged.push(entry);
    }
    merged.extend(right);
    merged
}

/// Whether one key stands before another.
#[cfg(test)]
pub(in crate::functions) fn is_key_before(one: &[u8], other: &[u8]) -> bool {
    is_before(&runes(one), &runes(other))
}

/// The characters of a key, one for each byte that is part of none.
fn runes(key: &[u8]) -> Vec<char> {
    let mut runes = Vec::new();
    for chunk in key.utf8_chunks() {
        runes.extend(chunk.valid().chars());
        runes.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    runes
}

fn is_before(one: &[char], other: &[char]) -> bool {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (head, one) = one.split_at(same);
    let other = other.get(same..).unwrap_or_default();
    let (Some(&a), Some(&b)) = (one.first(), other.first()) else { return one.len() < other.len() };
    match (is_letter(a), is_letter(b)) {
        (true, true) => a < b,
        (false, false) => is_number_before(head, one, other),
        (a_is_letter, _) => a_is_letter == head.last().is_some_and(|c| is_digit(*c)),
    }
}

/// Compares by the numbers that begin here, then by how many digits they have, then by the first character.
fn is_number_before(head: &[char], one: &[char], other: &[char]) -> bool {
    // A zero counts only when a digit that is not zero stands before it in the same number.
    let inside_number = head.iter().rev().take_while(|c| is_digit(**c)).any(|c| *c != '0');
    let has_zero = one.first() == Some(&'0') || other.first() == Some(&'0');
    let start = i64::from(inside_number && has_zero);
    let (a, a_length) = number(start, one);
    let (b, b_length) = number(start, other);
    (a, a_length, one.first()) < (b, b_length, other.first())
}

/// The number that begins here and how many digits it has. One that is too large wraps around, as the library's does.
fn number(start: i64, text: &[char]) -> (i64, usize) {
    let digits = text.iter().take_while(|c| is_digit(**c));
    digits.fold((start, 0), |(number, length), digit| {
        let value = i64::from(u32::from(*digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}
