//! Which formats and arguments may a template bring together?

use crate::format_values::{argument, count, number, text, without_address};
use crate::samples::{Sample, float};
use crate::seeded::Seeded;

const VERBS: &[u8] = b"vvvvvvsssddddtbcoOqqxXUeEfFgGTTwz!";

/// A call and its arguments.
pub(crate) struct Case {
    pub(crate) call: &'static str,
    pub(crate) format: Vec<u8>,
    pub(crate) values: Vec<Sample>,
}

/// Any case.
pub(crate) fn case(seeded: &mut Seeded) -> Case {
    let values = (0..seeded.below(4)).map(|_| argument(seeded)).collect();
    match seeded.below(20) {
        0 => Case { call: "print", format: Vec::new(), values },
        1 => Case { call: "println", format: Vec::new(), values },
        2 => Case { call: "quote", format: text(seeded), values },
        3 => Case { call: "float", format: Vec::new(), values: vec![float(number(seeded))] },
        4..8 => format_of(seeded, values),
        _ => one_directive(seeded),
    }
}

/// One directive that fits its argument, or nearly.
fn one_directive(seeded: &mut Seeded) -> Case {
    let mut format = vec![b'%'];
    flags(seeded, &mut format);
    if seeded.once_in(2) {
        format.extend(seeded.below(14).to_string().bytes());
    }
    if seeded.once_in(3) {
        format.extend(format!(".{}", seeded.below(12)).bytes());
    }
    if seeded.once_in(20) {
        format.push(b'p');
        return Case { call: "printf", format, values: vec![without_address(seeded)] };
    }
    format.push(seeded.one_of(VERBS));
    Case { call: "printf", format, values: vec![argument(seeded)] }
}

/// A format with anything in it, also what is wrong.
fn format_of(seeded: &mut Seeded, mut values: Vec<Sample>) -> Case {
    let mut format = Vec::new();
    for _ in 0..=seeded.below(3) {
        if seeded.once_in(2) {
            format.extend(text(seeded).into_iter().filter(|byte| *byte != b'%'));
        }
        directive(seeded, &mut format);
    }
    if seeded.once_in(3) {
        values.insert(seeded.below(values.len() + 1), count(seeded));
    }
    if seeded.once_in(12) {
        format.push(b'%');
    }
    Case { call: "printf", format, values }
}

fn directive(seeded: &mut Seeded, format: &mut Vec<u8>) {
    format.push(b'%');
    flags(seeded, format);
    index(seeded, format);
    number_or_star(seeded, format);
    if seeded.once_in(4) {
        format.push(b'.');
        index(seeded, format);
        number_or_star(seeded, format);
    }
    index(seeded, format);
    match seeded.below(24) {
        0 => format.push(b'%'),
        1 => format.extend("é".bytes()),
        2 => format.push(0xff),
        _ => format.push(seeded.one_of(VERBS)),
    }
}

fn flags(seeded: &mut Seeded, format: &mut Vec<u8>) {
    while seeded.once_in(2) {
        format.push(seeded.one_of(b"+-# 0"));
    }
}

fn index(seeded: &mut Seeded, format: &mut Vec<u8>) {
    if seeded.once_in(8) {
        let choices: [&[u8]; 12] =
            [b"[1]", b"[1]", b"[2]", b"[2]", b"[3]", b"[4]", b"[0]", b"[]", b"[x]", b"[-1]", b"[1", b"[99999999]"];
        format.extend(seeded.one_of(&choices));
    }
}

fn number_or_star(seeded: &mut Seeded, format: &mut Vec<u8>) {
    match seeded.below(8) {
        0 => format.push(b'*'),
        1..4 => format.extend(seeded.below(14).to_string().bytes()),
        4 if seeded.once_in(8) => format.extend(b"1500"),
        5 if seeded.once_in(8) => format.extend(b"123456789"),
        _ => {}
    }
}
