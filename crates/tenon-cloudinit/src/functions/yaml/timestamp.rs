//! Does a string look like a point in time?
//!
//! A date alone, a date and a time after spaces, or both after a `T` with a zone. Days that no calendar has are text.

/// Whether readers of YAML take the text for a point in time.
pub(super) fn is_timestamp(text: &str) -> bool {
    let mut rest = Reader(text.as_bytes());
    rest.date().is_some() && (rest.0.is_empty() || rest.time_after_date().is_some_and(|()| rest.0.is_empty()))
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn date(&mut self) -> Option<()> {
        let (year, rest) = self.0.split_at_checked(4)?;
        let year: u32 = year.iter().try_fold(0, |year, digit| Some(year * 10 + digit_of(*digit)?))?;
        self.0 = rest;
        self.sign(b"-")?;
        let month = self.number()?;
        self.sign(b"-")?;
        let day = self.number()?;
        (1..=days_in(year, month)?).contains(&day).then_some(())
    }

    fn time_after_date(&mut self) -> Option<()> {
        let with_zone = self.sign(b"Tt").is_some();
        if !with_zone {
            self.sign(b" ")?;
            while self.sign(b" ").is_some() {}
        }
        let mut below = |limit| self.number().filter(|number| *number < limit);
        below(24)?;
        self.sign(b":")?;
        let mut below = |limit| self.number().filter(|number| *number < limit);
        below(60)?;
        self.sign(b":")?;
        self.number().filter(|second| *second < 60)?;
        self.fraction();
        if with_zone { self.zone() } else { Some(()) }
    }

    /// A sign and digits after the seconds; without digits the sign stays unread.
    fn fraction(&mut self) {
        let [b'.' | b',', digits @ ..] = self.0 else { return };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 0 {
            self.0 = digits.get(count..).unwrap_or_default();
        }
    }

    fn zone(&mut self) -> Option<()> {
        if self.sign(b"Z").is_some() {
            return Some(());
        }
        self.sign(b"+-")?;
        // Some write an offset of 24 hours or 60 minutes.
        self.two_digits().filter(|hours| *hours <= 24)?;
        self.sign(b":")?;
        self.two_digits().filter(|minutes| *minutes <= 60)?;
        Some(())
    }

    fn sign(&mut self, signs: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        signs.contains(first).then(|| self.0 = rest)
    }

    /// One or two digits.
    fn number(&mut self) -> Option<u32> {
        let first = self.digit()?;
        Some(self.digit().map_or(first, |second| first * 10 + second))
    }

    fn two_digits(&mut self) -> Option<u32> {
        Some(self.digit()? * 10 + self.digit()?)
    }

    fn digit(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first()?;
        let digit = digit_of(*first)?;
        self.0 = rest;
        Some(digit)
    }
}

fn digit_of(byte: u8) -> Option<u32> {
    byte.is_ascii_digit().then(|| u32::from(byte - b'0'))
}

fn days_in(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    Some(match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    })
}
