//! Sizes of disks as Proxmox writes them: `30G`, `1536M`, plain bytes.

use std::fmt;
use std::str::FromStr;

/// Each unit is 1,024 of the one before. Only upper-case letters count.
const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];

/// A size in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PveSize {
    bytes: u64,
}

impl PveSize {
    /// So many bytes.
    pub fn from_bytes(bytes: u64) -> PveSize {
        PveSize { bytes }
    }

    /// So many GiB; more than can be counted in bytes is the most that can.
    pub fn from_gib(gib: u64) -> PveSize {
        PveSize { bytes: gib.saturating_mul(1 << 30) }
    }

    /// How many bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

impl FromStr for PveSize {
    type Err = PveSizeError;

    /// A fraction is fine; what is left of a byte is cut off, as Proxmox does.
    fn from_str(text: &str) -> Result<PveSize, PveSizeError> {
        let refused = || PveSizeError { text: text.to_owned() };
        let number = text.trim_end_matches(['K', 'M', 'G', 'T']);
        let power = UNITS.iter().position(|unit| *unit == &text[number.len()..]).ok_or_else(refused)?;
        let unit = 1_u128 << (10 * power);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return Err(refused());
        }
        // 25 digits are more than a tebibyte can be divided into.
        let fraction = &fraction[..fraction.len().min(25)];
        let scale = fraction.bytes().fold(1_u128, |scale, _| scale * 10);
        let part = fraction.parse::<u128>().map_err(|_| refused())? * unit / scale;
        let whole = whole.parse::<u128>().ok().and_then(|whole| whole.checked_mul(unit)).ok_or_else(refused)?;
        let bytes = whole.checked_add(part).and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(refused)?;
        Ok(PveSize { bytes })
    }
}

impl fmt::Display for PveSize {
    /// The largest unit that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut amount, mut unit) = (self.bytes, 0);
        while amount != 0 && amount % 1_024 == 0 && unit + 1 < UNITS.len() {
            amount /= 1_024;
            unit += 1;
        }
        write!(f, "{amount}{}", UNITS.get(unit).copied().unwrap_or_default())
    }
}

/// A text that is no [`PveSize`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a Proxmox size; use a number with an optional unit K, M, G or T (powers of 1,024)")]
pub struct PveSizeError {
    /// What was given.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_and_printed_as_proxmox_does() {
        for (text, bytes, printed) in [
            ("30G", 30 << 30, "30G"),
            ("8M", 8 << 20, "8M"),
            ("1T", 1 << 40, "1T"),
            ("1024G", 1 << 40, "1T"),
            ("1.5G", 1536 << 20, "1536M"),
            ("0.1G", 107_374_182, "107374182"),
            ("512", 512, "512"),
            ("528K", 528 << 10, "528K"),
            ("2048T", 2048 << 40, "2048T"),
            ("0", 0, "0"),
            ("007M", 7 << 20, "7M"),
        ] {
            let size: PveSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, printed), "{text}");
        }
        assert_eq!(PveSize::from_gib(30).to_string(), "30G");
        assert_eq!(PveSize::from_gib(u64::MAX), PveSize::from_bytes(u64::MAX));
    }

    #[test]
    fn what_proxmox_refuses_is_refused() {
        for text in
            ["", "G", "1g", "1Gi", "1GB", "+1G", "-1G", " 1G", "1 G", "1.G", ".5G", "1.2.3", "1GG", "1e3", "16777216T"]
        {
            assert!(text.parse::<PveSize>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(bytes in any::<u64>(), shift in 0_u32..40) {
            let size = PveSize::from_bytes(bytes >> shift << shift);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
