//! Where does one text occur in another?
//!
//! In time that grows with the sum of their lengths, whatever they are: both come from templates.

/// The places of `part` in `text` from left to right; they do not overlap. `part` is not empty.
pub(super) fn occurrences<'a>(text: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let borders = borders(part);
    let (mut at, mut matched) = (0, 0);
    std::iter::from_fn(move || {
        while let Some(byte) = text.get(at) {
            while matched > 0 && part.get(matched) != Some(byte) {
                matched = borders.get(matched - 1).copied().unwrap_or_default();
            }
            matched += usize::from(part.get(matched) == Some(byte));
            at += 1;
            if matched == part.len() {
                matched = 0;
                return Some(at - part.len());
            }
        }
        None
    })
}

/// Whether `part` occurs in `text`. Nothing occurs everywhere.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || occurrences(text, part).next().is_some()
}

/// For each beginning of `part`, how long a shorter beginning is that is also its end.
fn borders(part: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; part.len()];
    let mut length = 0;
    for (at, byte) in part.iter().enumerate().skip(1) {
        while length > 0 && part.get(length) != Some(byte) {
            length = borders.get(length - 1).copied().unwrap_or_default();
        }
        length += usize::from(part.get(length) == Some(byte));
        if let Some(border) = borders.get_mut(at) {
            *border = length;
        }
    }
    borders
}

/// The characters of a text; a byte that is part of none stands for itself.
pub(super) fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().split_inclusive(|_| true).map(str::as_bytes);
        valid.chain(chunk.invalid().chunks(1))
    })
}
