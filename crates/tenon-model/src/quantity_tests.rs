//! Quantities: tables taken from what Kubernetes answers, and laws.

use proptest::prelude::*;

use crate::quantity::{NANO, Quantity, QuantityFormat};

fn read(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn suffixes_mean_what_kubernetes_means() {
    for (text, milli) in [
        ("0", 0),
        ("500m", 500),
        ("0.5", 500),
        (".5", 500),
        ("5.", 5_000),
        ("+1", 1_000),
        ("-1", -1_000),
        ("2k", 2_000_000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1e+3", 1_000_000),
        ("1e-3", 1),
        ("1Ki", 1_024_000),
        ("1.5Ki", 1_536_000),
        ("0.5Mi", 524_288_000),
        ("1e4294967296", 1_000),
        ("Gi", 0),
        ("Ti", 0),
        ("0Ei", 0),
        ("e-9", 0),
        ("-", 0),
        (".", 0),
    ] {
        assert_eq!(read(text).milli_value(), milli, "{text}");
    }
    assert_eq!(read("1E").value(), 1_000_000_000_000_000_000);
    assert_eq!(read("2Gi").value(), 2_147_483_648);
}

#[test]
fn what_is_finer_than_a_billionth_is_rounded_up() {
    assert_eq!(read("0.0000000001"), read("1n"));
    assert_eq!(read("1.1n"), read("2n"));
    assert_eq!(read("9.9999999999"), read("10"));
    assert_eq!(read("-1.1n"), read("-2n"));
    assert_eq!(read("1n").milli_value(), 1);
    assert_eq!(read("1.0000000001").value(), 2);
    assert_eq!(read("0.00000000001Ki"), read("11n"));
    assert_eq!(read("1e-2147483648"), read("1n"));
}

#[test]
fn only_binary_amounts_end_at_64_bits() {
    for text in ["8Ei", "99999999999999999999Ki", "9223372036854775808.5Ki", "1e3", "7.9999999999999999999999Ei"] {
        assert!(read(text).value() > 0, "{text}");
    }
    assert_eq!(read("8Ei").to_string(), "9223372036854775807");
    assert_eq!(read("-8Ei").to_string(), "-9223372036854775807");
    assert!(read("10E") > read("9E") && read("9223372036854775808") > read("8Ei"));
    assert_eq!(read("10E").to_string(), "10E");
    assert_eq!(read("10E") - read("9E"), read("1E"));
    assert_eq!(read("1e100"), read("1e99"), "beyond what can be counted, all is the same");
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        " ",
        "1.2.3",
        "1 Gi",
        "1gi",
        "1K",
        "1e",
        "1e+",
        "1e1.5",
        "0x10",
        "1Gi ",
        "NaN",
        "1ee3",
        "--1",
        "+-1",
        "1mm",
        "1Kii",
        "1e9223372036854775808",
        "١",
        "1µ",
        "1,5",
        "1_000",
        "inf",
        "1E1E1",
        "Ei",
        "-Pi",
        ".Ei",
        "e-10",
    ] {
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
}

/// Each line is what the API server writes back; `crates/tenon/tests/conformance` asks a real one for the same.
#[test]
fn an_amount_is_stored_as_the_server_stores_it() {
    for (text, stored) in [
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("00.00e9", "0"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1Ki", "1Ki"),
        ("1023Ki", "1023Ki"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("1.5Gi", "1536Mi"),
        ("0.0001Ki", "102400u"),
        ("-1Ki", "-1Ki"),
        ("0.1m", "100u"),
        ("-0.5", "-500m"),
        ("1.1n", "2n"),
        ("1e-100", "1e-9"),
        ("1e100", "10e99"),
        ("1.5e3", "1500"),
        ("1500e-3", "1500e-3"),
        ("9223372036854775808", "9223372036854775808"),
        ("8Ei", "9223372036854775807"),
        ("123456789012345678901234567890123456789012", "123456789012345678901234567890123456789012"),
        // Spellings the server takes for canonical.
        ("+1", "+1"),
        ("007", "007"),
        ("1.500", "1.500"),
        ("1E3", "1E3"),
        ("1e03", "1e03"),
        ("1e0", "1e0"),
        ("1.Gi", "1.Gi"),
        (" 1 ", "1"),
        // Powers the server has no suffix for.
        ("1000E", "1"),
        ("10000000000000000000000", "10"),
    ] {
        assert_eq!(Quantity::as_stored(text).as_deref(), Ok(stored), "{text}");
    }
}

#[test]
fn sums_are_written_like_their_first_part() {
    assert_eq!((read("1Gi") + read("512Mi")).to_string(), "1536Mi");
    assert_eq!((read("1Gi") + read("1")).to_string(), "1073741825");
    assert_eq!((read("1Gi") + read("1m")).to_string(), "1073741824001m");
    assert_eq!((read("1") + read("1Gi")).to_string(), "1073741825");
    assert_eq!((read("0") + read("1Gi")).to_string(), "1Gi");
    assert_eq!((read("0") - read("1Gi")).to_string(), "-1Gi");
    assert_eq!((read("1e3") + read("500m")).to_string(), "1000500e-3");
    assert_eq!(Quantity::bytes(2 << 30).to_string(), "2Gi");
    assert_eq!(read("1000E").to_string(), "1000E");
}

#[test]
fn the_way_of_writing_is_no_part_of_the_amount() {
    assert_eq!(read("1Ki"), read("1024"));
    assert_eq!(read("1Ki").format(), QuantityFormat::BinarySi);
    assert_eq!(read("0.5Ki").format(), QuantityFormat::BinarySi);
    assert_eq!(read("0.0001Ki").format(), QuantityFormat::DecimalSi);
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let format = prop_oneof![
        Just(QuantityFormat::DecimalSi),
        Just(QuantityFormat::BinarySi),
        Just(QuantityFormat::DecimalExponent)
    ];
    let nanos = prop_oneof![
        -1_000_000_000_000_000_000_000_i128..1_000_000_000_000_000_000_000,
        (-1_000_000_i128..1_000_000).prop_map(|whole| whole * NANO),
        (-1_000_000_i128..1_000_000).prop_map(|kib| kib * 1024 * NANO),
    ];
    (nanos, format).prop_map(|(nanos, format)| Quantity::of_nanos(nanos, format))
}

proptest! {
    #[test]
    fn printing_and_reading_agree(quantity in any_quantity()) {
        let printed = quantity.to_string();
        prop_assert_eq!(printed.parse::<Quantity>(), Ok(quantity));
        prop_assert_eq!(printed.parse::<Quantity>().unwrap().to_string(), printed);
    }

    #[test]
    fn what_is_stored_is_the_same_amount(text in "[-+]?[0-9]{0,9}(\\.[0-9]{0,6})?(|n|u|m|k|M|G|Ki|Mi|Gi|e[0-9])") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let stored = Quantity::as_stored(&text).unwrap();
            prop_assert_eq!(stored.parse::<Quantity>(), Ok(quantity), "{} is stored as {}", text, stored);
            prop_assert_eq!(Quantity::as_stored(&stored).unwrap(), stored);
        }
    }

    #[test]
    fn adding_is_the_undoing_of_subtracting(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a + b - b, a);
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!(a - b, -(b - a));
        prop_assert_eq!(a < b, (a - b).is_negative());
    }
}
