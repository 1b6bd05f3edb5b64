//! How are floating-point numbers printed in powers of two?

/// The bits of a `float64` that hold the digits.
const MANTISSA_BITS: u32 = 52;
/// What is added to exponents, so that they are stored without a sign.
const BIAS: i32 = 1023;
/// The hexadecimal digits behind the point that hold all bits.
const ALL_PLACES: usize = 13;

/// The number is `mantissa` times two to the power of `exponent`.
struct Parts {
    mantissa: u64,
    exponent: i32,
}

fn parts(number: f64) -> Parts {
    let bits = number.abs().to_bits();
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    let scale = 1 - BIAS - MANTISSA_BITS as i32;
    match i32::try_from(bits >> MANTISSA_BITS).unwrap_or_default() {
        // Numbers this small have no leading one.
        0 => Parts { mantissa, exponent: scale },
        stored => Parts { mantissa: mantissa | 1 << MANTISSA_BITS, exponent: scale + stored - 1 },
    }
}

/// `%b`: the mantissa as a whole number, and the exponent.
pub(super) fn with_binary_exponent(number: f64) -> String {
    let Parts { mantissa, exponent } = parts(number);
    format!("{mantissa}p{exponent:+}")
}

/// `%x`: one digit, a point, hexadecimal digits, and the exponent. Without `places`, as many as there are.
pub(super) fn hexadecimal(number: f64, places: Option<usize>) -> String {
    let Parts { mut mantissa, mut exponent } = parts(number);
    if mantissa == 0 {
        exponent = 0;
    } else {
        let shift = mantissa.leading_zeros() - (u64::BITS - 1 - MANTISSA_BITS);
        mantissa <<= shift;
        exponent += MANTISSA_BITS as i32 - shift as i32;
    }
    if let Some(places) = places.filter(|places| *places < ALL_PLACES) {
        mantissa = rounded(mantissa, places);
        if mantissa >> (MANTISSA_BITS + 1) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let fraction = format!("{:013x}", mantissa & ((1 << MANTISSA_BITS) - 1));
    let fraction = match places {
        None => fraction.trim_end_matches('0').to_owned(),
        Some(places) if places <= ALL_PLACES => fraction.get(..places).unwrap_or_default().to_owned(),
        Some(places) => format!("{fraction}{}", "0".repeat(places - ALL_PLACES)),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{fraction}p{sign}{:02}", mantissa >> MANTISSA_BITS, exponent.unsigned_abs())
}

/// Rounds to so many hexadecimal digits behind the point; what lies in the middle goes to the even neighbour.
fn rounded(mantissa: u64, places: usize) -> u64 {
    let dropped = MANTISSA_BITS - 4 * places as u32;
    let (kept, rest, half) = (mantissa >> dropped, mantissa & ((1 << dropped) - 1), 1 << (dropped - 1));
    let is_up = rest > half || rest == half && kept % 2 == 1;
    (kept + u64::from(is_up)) << dropped
}
