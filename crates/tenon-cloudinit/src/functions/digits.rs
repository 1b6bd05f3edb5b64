//! Which digits does a float have?

/// The shortest digits that give a float back.
pub(super) struct Digits {
    negative: bool,
    /// At least one.
    digits: String,
    /// The power of ten of the first digit.
    pub(super) exponent: i32,
}

impl Digits {
    /// Of a float that is finite.
    pub(super) fn of(number: f64) -> Digits {
        let mut text = format!("{:e}", number.abs());
        // Of two that are equally short and equally near Go takes the even one.
        let places = text.find('e').unwrap_or(1).saturating_sub(2);
        let even = format!("{:.places$e}", number.abs());
        if even.parse() == Ok(number.abs()) {
            text = even;
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        Digits {
            negative: number.is_sign_negative(),
            digits: mantissa.replace('.', ""),
            exponent: exponent.parse().unwrap_or_default(),
        }
    }

    /// Without an exponent.
    pub(super) fn decimal(&self) -> String {
        let mut text = self.sign();
        if self.exponent < 0 {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', usize::try_from(-self.exponent - 1).unwrap_or_default()));
            text.push_str(&self.digits);
            return text;
        }
        let whole = usize::try_from(self.exponent).unwrap_or_default() + 1;
        let (before, after) = self.digits.split_at(whole.min(self.digits.len()));
        text.push_str(before);
        text.extend(std::iter::repeat_n('0', whole - before.len()));
        if !after.is_empty() {
            text.push('.');
            text.push_str(after);
        }
        text
    }

    /// With an exponent of at least that many digits.
    pub(super) fn scientific(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("{}{first}{point}{rest}e{sign}{:0width$}", self.sign(), self.exponent.abs())
    }

    fn sign(&self) -> String {
        if self.negative { "-" } else { "" }.to_owned()
    }
}
