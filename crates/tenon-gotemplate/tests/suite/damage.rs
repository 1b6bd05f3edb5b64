//! How do templates break?

use crate::seeded::Seeded;
use crate::vocabulary::vocabulary;

/// Changes one token of a template.
pub(crate) fn damage(seeded: &mut Seeded, tokens: &mut Vec<String>) {
    let at = seeded.below(tokens.len().max(1));
    match seeded.below(6) {
        _ if tokens.is_empty() => {}
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, seeded.one_of(&vocabulary("scraps")).to_owned()),
        2 => {
            let other = seeded.below(tokens.len());
            tokens.swap(at, other);
        }
        3 => tokens[at] = seeded.one_of(&vocabulary("scraps")).to_owned(),
        4 => {
            let copy = tokens[seeded.below(tokens.len())].clone();
            tokens.insert(at, copy);
        }
        _ => tokens.truncate(at + 1),
    }
}

/// Changes one byte of a template, or cuts it off.
pub(crate) fn damage_bytes(seeded: &mut Seeded, source: &mut Vec<u8>) {
    let at = seeded.below(source.len().max(1));
    match seeded.below(4) {
        _ if source.is_empty() => {}
        0 => drop(source.remove(at)),
        1 => source.insert(at, seeded.one_of(b"\xff\xc3\x80\x00\x7f\xed{}\"'`().|$:= \n\t-/*,1e0x_")),
        2 => source[at] = seeded.bits().to_le_bytes()[0],
        _ => source.truncate(at),
    }
}
