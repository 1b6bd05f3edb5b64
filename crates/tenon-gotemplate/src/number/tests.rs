//! Which constants are numbers, and which ones?

use super::*;

fn ideal(text: &str) -> Result<Value, String> {
    read(text, text.as_bytes(), Kind::Number)?.ideal()
}

fn int(text: &str) -> Option<i64> {
    match ideal(text) {
        Ok(Value::Int(number, _)) => Some(number),
        _ => None,
    }
}

fn float(text: &str) -> Option<u64> {
    match ideal(text) {
        Ok(Value::Float(number)) => Some(number.to_bits()),
        _ => None,
    }
}

#[test]
fn whole_numbers_have_many_spellings() {
    let spellings = [("42", 42), ("0x_2A", 42), ("0b101", 5), ("0o17", 15), ("017", 15), ("1_000", 1000), ("-0", 0)];
    for (text, number) in spellings {
        assert_eq!(int(text), Some(number), "{text}");
    }
    for malformed in ["1__0", "1_", "0x", "08", "0b2", "1_e3", "9223372036854775808", "18446744073709551616"] {
        assert!(ideal(malformed).is_err(), "{malformed}");
    }
}

#[test]
fn a_point_or_an_exponent_makes_a_float_and_so_does_an_e_behind_a_sign() {
    for (text, number) in [("1.5", 1.5_f64), ("1e3", 1000.0), (".5", 0.5), ("0x1.8p3", 12.0), ("+0xe", 14.0)] {
        assert_eq!(float(text), Some(number.to_bits()), "{text}");
    }
    assert_eq!(int("0xe"), Some(14));
}

#[test]
fn hexadecimal_floats_are_rounded_once() {
    for (text, number) in [
        ("0x1p-1074", f64::from_bits(1)),
        ("0x1p-1075", 0.0),
        ("0x3p-1075", f64::from_bits(2)),
        ("0x1.fffffffffffff8p1", 4.0),
        ("0x1.fffffffffffff7p1", 3.999_999_999_999_999_6),
        ("0x1.00000000000008000000000000000001p0", 1.000_000_000_000_000_2),
        ("0x1p-99999999999", 0.0),
    ] {
        assert_eq!(float(text), Some(number.to_bits()), "{text}");
    }
    assert!(ideal("0x1p1024").is_err() && ideal("0x1p99999999999").is_err() && ideal("0xp1").is_err());
}

#[test]
fn a_constant_fits_every_type_that_can_hold_it() {
    let two = read("2.0", b"2.0", Kind::Number).unwrap();
    assert_eq!((two.int, two.uint, two.float, two.complex), (Some(2), Some(2), Some(2.0), None));
    let minus = read("-1", b"-1", Kind::Number).unwrap();
    assert_eq!((minus.int, minus.uint), (Some(-1), None));
    let complex = read("1+0i", b"1+0i", Kind::Complex).unwrap();
    assert_eq!((complex.int, complex.complex), (Some(1), Some((1.0, 0.0))));
}
