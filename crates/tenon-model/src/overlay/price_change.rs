//! What does the text of a NodeOverlay do to a price?

use crate::price::Price;

/// What becomes of a price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PriceChange {
    /// It is this one.
    To(Price),
    /// So much is added, or taken away where it is negative.
    By(f64),
    /// So many percent are added, or taken away where it is negative.
    ByPercent(f64),
}

impl Eq for PriceChange {}

/// Why a text is no change of a price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceChangeError {
    /// It is no price.
    #[error("price {0:?} must be a decimal number, such as 1.25")]
    Price(String),
    /// It is no adjustment.
    #[error(
        "priceAdjustment {0:?} must be an amount with its sign, such as +0.5 or -0.5, or a percentage such as +10% or -15.5%, down to -100%"
    )]
    Adjustment(String),
}

impl PriceChange {
    /// Reads a price that stands in place of another.
    pub fn to(text: &str) -> Result<PriceChange, PriceChangeError> {
        let is_price = text.starts_with(|first: char| first.is_ascii_digit());
        let number = decimal(text).filter(|_| is_price);
        number.map(|number| PriceChange::To(Price::new(number))).ok_or_else(|| PriceChangeError::Price(text.to_owned()))
    }

    /// Reads an adjustment.
    pub fn by(text: &str) -> Result<PriceChange, PriceChangeError> {
        adjustment(text).ok_or_else(|| PriceChangeError::Adjustment(text.to_owned()))
    }

    /// What becomes of a price; it is never less than nothing.
    pub fn apply(self, price: Price) -> Price {
        let changed = match self {
            PriceChange::To(price) => return price,
            PriceChange::By(amount) => price.value() + amount,
            // In this order, 10 % more than 10 is 11 and not a little more.
            PriceChange::ByPercent(percent) => price.value() * (100.0 + percent) / 100.0,
        };
        if changed > 0.0 { Price::new(changed) } else { Price::FREE }
    }
}

fn adjustment(text: &str) -> Option<PriceChange> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1.0, &text[1..]),
        b'-' => (-1.0, &text[1..]),
        _ => return None,
    };
    match rest.strip_suffix('%') {
        Some(percent) => {
            let percent = decimal(percent).filter(|percent| sign > 0.0 || *percent <= 100.0)?;
            Some(PriceChange::ByPercent(sign * percent))
        }
        None => Some(PriceChange::By(sign * decimal(rest)?)),
    }
}

/// Digits with at most one point, which is not the last of them.
fn decimal(text: &str) -> Option<f64> {
    let is_decimal = text.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
        && text.ends_with(|last: char| last.is_ascii_digit())
        && text.matches('.').count() <= 1;
    text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i11_a_price_of_ten_is_adjusted_as_the_reference_does() {
        for (text, expected) in [
            ("+10%", 11.0),
            ("-15%", 8.5),
            ("-100%", 0.0),
            ("-20", 0.0),
            ("+5", 15.0),
            ("+.5", 10.5),
            ("-0.5", 9.5),
            ("+0%", 10.0),
            ("-12.5%", 8.75),
        ] {
            let change = PriceChange::by(text).unwrap();
            assert_eq!(change.apply(Price::new(10.0)), Price::new(expected), "{text}");
        }
        assert_eq!(PriceChange::to("3").unwrap().apply(Price::new(10.0)), Price::new(3.0));
        assert_eq!(PriceChange::to("0").unwrap().apply(Price::new(10.0)), Price::FREE);
    }

    #[test]
    fn i11_a_price_that_is_taken_below_nothing_is_nothing_and_not_minus_nothing() {
        for text in ["-100%", "-11", "-10"] {
            assert_eq!(PriceChange::by(text).unwrap().apply(Price::new(10.0)), Price::FREE, "{text}");
        }
        assert_eq!(PriceChange::by("-100%").unwrap().apply(Price::FREE), Price::FREE);
    }

    #[test]
    fn i11_what_the_schema_refuses_is_refused_in_files_too() {
        for text in
            ["10", "5%", "", "+", "+%", "-101%", "-100.5%", "+1.", "+1e3", "+inf", "++1", "+ 1", "-1 %", "+1.2.3"]
        {
            let said = PriceChange::by(text).unwrap_err().to_string();
            assert!(said.contains("must be an amount with its sign"), "{said}");
        }
        for text in ["", "+1", "-1", ".5", "1.", "1e3", "NaN", "1%", " 1"] {
            let said = PriceChange::to(text).unwrap_err().to_string();
            assert!(said.contains("must be a decimal number"), "{said}");
        }
    }
}
