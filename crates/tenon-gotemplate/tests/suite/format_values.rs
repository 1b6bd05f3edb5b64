//! Which values may a template print? Addresses are left out: Go's differ from run to run.

use tenon_gotemplate::{IntKind, Type, UintKind};

use crate::samples::{
    A_HOLDER, A_NAMED, A_PAIR, HOLDER, NAMED, PAIR, POINTER_TO_NAMED, POINTER_TO_PAIR, Sample, bool, complex, float,
    int, list, map, nil, nil_of, pointer, string, struct_, uint,
};
use crate::seeded::Seeded;

const TEXTS: [&[u8]; 18] = [
    b"",
    b"a",
    b"hello",
    b"two words",
    b"<&>\"'`\\",
    b"tab\tline\n\r",
    b"\x00\x07\x08\x0b\x0c\x1b\x7f",
    "héllo wörld".as_bytes(),
    "日本語".as_bytes(),
    "\u{1f600}\u{fffd}\u{feff}".as_bytes(),
    "a\u{301}\u{200b}\u{a0}\u{ad}\u{2028}".as_bytes(),
    "\u{10ffff}\u{e000}\u{378}".as_bytes(),
    b"\xff\xfe",
    b"a\xe6\x97z\xc3",
    b"\xed\xa0\x80\xf4\x90\x80\x80",
    b"`back`",
    b"C:\\dir",
    b"%d",
];

const INTS: [i64; 20] =
    [0, 1, -1, 7, 8, 10, -42, 65, 127, 128, 255, 1000, 0x20ac, 0xd800, 0x1f600, 0x10_ffff, 0x11_0000, 34, 39, 92];

const FLOATS: [f64; 30] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    0.25,
    0.125,
    -2.675,
    1.005,
    3.15,
    100_000.0,
    999_999.5,
    1e6,
    123_456_789.0,
    1e20,
    1e21,
    1e22,
    1e-4,
    1e-5,
    1e-7,
    1e100,
    5e-324,
    f64::MAX,
    f64::MIN_POSITIVE,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.1,
];

/// Any argument.
pub(crate) fn argument(seeded: &mut Seeded) -> Sample {
    match seeded.below(14) {
        0 => nil(),
        1 => pointer_to(seeded),
        2..8 => compound(seeded),
        _ => scalar(seeded),
    }
}

fn pointer_to(seeded: &mut Seeded) -> Sample {
    match seeded.below(7) {
        0 => nil_of(Type::Pointer(&Type::INT)),
        1 => nil_of(POINTER_TO_NAMED),
        2 => pointer(&A_NAMED, &named(seeded)),
        3 => pointer(&A_HOLDER, &holder(seeded)),
        4 => pointer(&Type::STRINGS, &strings(seeded)),
        5 => pointer(&Type::ANY_MAP, &any_map(seeded)),
        _ => pointer(&A_PAIR, &pair(seeded)),
    }
}

fn scalar(seeded: &mut Seeded) -> Sample {
    match seeded.below(8) {
        0 => bool(seeded.once_in(2)),
        1 => int(integer(seeded), seeded.one_of(&[IntKind::Int, IntKind::Int64])),
        2 => int(i64::from(integer(seeded) as i32), IntKind::Int32),
        3 => unsigned(seeded),
        4 | 5 => float(number(seeded)),
        6 if seeded.once_in(2) => complex(number(seeded), number(seeded)),
        _ => string(&text(seeded)),
    }
}

fn unsigned(seeded: &mut Seeded) -> Sample {
    let number = integer(seeded) as u64;
    match seeded.below(4) {
        0 => uint(number & 0xff, UintKind::Uint8),
        1 => uint(number & 0xffff_ffff, UintKind::Uint32),
        2 => uint(number, UintKind::Uint64),
        _ => uint(number, UintKind::Uint),
    }
}

fn compound(seeded: &mut Seeded) -> Sample {
    match seeded.below(13) {
        0 => list(&Type::INT, &several(seeded, |seeded| int(integer(seeded), IntKind::Int))),
        1 => list(&Type::Float, &several(seeded, |seeded| float(number(seeded)))),
        2 => bytes(seeded),
        3 => list(&Type::List(&BYTE), &several(seeded, bytes)),
        4 => list(&A_PAIR, &several(seeded, pair)),
        5 => list(&POINTER_TO_NAMED, &[nil_of(POINTER_TO_NAMED)]),
        6 => nil_of(seeded.one_of(&[Type::STRINGS, Type::ANYS, Type::STRING_MAP, Type::ANY_MAP, Type::List(&BYTE)])),
        7 => map(&Type::INT, &entries(seeded, |seeded| int(integer(seeded), IntKind::Int))),
        8 => any_map(seeded),
        9 => list(&Type::Any, &several(seeded, held)),
        10 => holder(seeded),
        11 => named(seeded),
        _ => strings(seeded),
    }
}

const BYTE: Type = Type::Uint(UintKind::Uint8);

/// What stands in a list or a map: mostly small, sometimes another list or map.
fn held(seeded: &mut Seeded) -> Sample {
    match seeded.below(8) {
        0 => nil(),
        1 => compound(seeded),
        2 => nil_of(Type::Pointer(&Type::INT)),
        _ => scalar(seeded),
    }
}

fn several(seeded: &mut Seeded, make: fn(&mut Seeded) -> Sample) -> Vec<Sample> {
    (0..seeded.below(4)).map(|_| make(seeded)).collect()
}

fn entries(seeded: &mut Seeded, make: fn(&mut Seeded) -> Sample) -> Vec<(Vec<u8>, Sample)> {
    (0..seeded.below(4)).map(|_| (text(seeded), make(seeded))).collect()
}

fn any_map(seeded: &mut Seeded) -> Sample {
    map(&Type::Any, &entries(seeded, held))
}

fn strings(seeded: &mut Seeded) -> Sample {
    list(&Type::String, &several(seeded, |seeded| string(&text(seeded))))
}

fn bytes(seeded: &mut Seeded) -> Sample {
    let bytes: Vec<Sample> = text(seeded).into_iter().map(|byte| uint(u64::from(byte), UintKind::Uint8)).collect();
    list(&BYTE, &bytes)
}

fn pair(seeded: &mut Seeded) -> Sample {
    struct_(&PAIR, &[string(&text(seeded)), int(integer(seeded), IntKind::Int)])
}

fn named(seeded: &mut Seeded) -> Sample {
    struct_(&NAMED, &[string(seeded.one_of(&["", "ann", "bob \"the\" builder", "é"]).as_bytes())])
}

fn holder(seeded: &mut Seeded) -> Sample {
    let labels = map(&Type::String, &entries(seeded, |seeded| string(&text(seeded))));
    let next = nil_of(POINTER_TO_PAIR);
    struct_(&HOLDER, &[held(seeded), strings(seeded), labels, pair(seeded), next])
}

fn integer(seeded: &mut Seeded) -> i64 {
    match seeded.below(8) {
        0 => seeded.bits() as i64,
        1 => seeded.one_of(&[i64::MAX, i64::MIN, i64::from(i32::MIN)]),
        2 => seeded.below(5000) as i64 - 2000,
        _ => seeded.one_of(&INTS),
    }
}

pub(crate) fn number(seeded: &mut Seeded) -> f64 {
    match seeded.below(4) {
        0 => f64::from_bits(seeded.bits()),
        // A few places in binary: many of these lie in the middle between two decimals.
        1 => (seeded.below(20_000) as f64 - 10_000.0) / f64::from(1 << seeded.below(12)),
        _ => seeded.one_of(&FLOATS),
    }
}

pub(crate) fn text(seeded: &mut Seeded) -> Vec<u8> {
    match seeded.below(6) {
        0 => (0..seeded.below(5)).flat_map(|_| seeded.bits().to_le_bytes()[..2].to_vec()).collect(),
        1 => {
            let char = char::from_u32(seeded.below(0x11_0000) as u32).unwrap_or('x');
            format!("{char}{}", seeded.below(100)).into_bytes()
        }
        _ => seeded.one_of(&TEXTS).to_vec(),
    }
}

/// What has no address.
pub(crate) fn without_address(seeded: &mut Seeded) -> Sample {
    match seeded.below(4) {
        0 => nil_of(seeded.one_of(&[Type::STRINGS, Type::ANY_MAP, POINTER_TO_PAIR, POINTER_TO_NAMED])),
        1 => seeded.one_of(&[nil as fn() -> Sample, || bool(true)])(),
        2 => holder(seeded),
        _ => scalar(seeded),
    }
}

/// What `*` may take.
pub(crate) fn count(seeded: &mut Seeded) -> Sample {
    match seeded.below(6) {
        0 => uint(seeded.below(9) as u64, UintKind::Uint8),
        1 => int(seeded.one_of(&[1_000_001, -1_000_001, i64::MAX, i64::MIN]), IntKind::Int),
        2 => uint(u64::MAX, UintKind::Uint64),
        _ => int(seeded.below(20) as i64 - 8, IntKind::Int),
    }
}
