//! Are names made of the characters that Go makes them of?

use serde_json::json;
use tenon_gotemplate::{Options, Template};

use crate::go;
use crate::samples::hex;

/// Characters that lie between boundaries are looked at in steps, which keeps the test short.
const STEP: usize = 7;

/// Whether it can stand inside a name.
fn is_in_name(number: u32, options: &Options) -> bool {
    let Some(letter) = char::from_u32(number).filter(|letter| *letter != '_') else { return false };
    Template::parse("t", format!("{{{{$x{letter}x := 1}}}}").as_bytes(), options).is_ok()
}

#[test]
fn every_letter_and_digit_of_go_can_stand_in_a_name_and_nothing_else() {
    let input = json!([{"Call": "unicode"}, {"Call": "letters"}]);
    let Some(told) = go::run("format.go", input.to_string().as_bytes()) else { return };
    let lines: Vec<&str> = told.lines().collect();
    if lines[0] != hex(b"15.0.0") {
        // Another release of Go knows more characters; the table is Go 1.26's.
        return;
    }
    let text: Vec<u8> =
        (0..lines[1].len()).step_by(2).map(|at| u8::from_str_radix(&lines[1][at..at + 2], 16).unwrap()).collect();
    let changes: Vec<u32> = String::from_utf8(text).unwrap().split(' ').map(|number| number.parse().unwrap()).collect();
    let expected = |number: u32| changes.partition_point(|change| *change <= number) % 2 == 1;
    let boundaries = changes.iter().flat_map(|change| [change - 1, *change]);
    let options = Options::default();
    for number in boundaries.chain((0..0x11_0000).step_by(STEP)).filter(|number| *number != u32::from('_')) {
        assert_eq!(is_in_name(number, &options), expected(number), "U+{number:04X}");
    }
}
