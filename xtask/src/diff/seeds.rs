//! Which seeds a person means.

use std::str::FromStr;

use anyhow::{Context as _, ensure};

/// Seeds as they are written: `7`, `1-300`, `1-40,77`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seeds(pub(super) Vec<u64>);

impl FromStr for Seeds {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Seeds> {
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u64>().with_context(|| format!("`{text}` is not a seed"));
            let (first, last) = (number(first)?, number(last)?);
            ensure!(first <= last, "`{part}` ends before it begins");
            ensure!(last - first < 100_000, "`{part}` has more than 100000 seeds; use fewer");
            all.extend(first..=last);
        }
        Ok(Seeds(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_and_ranges() {
        assert_eq!("1-3,9".parse::<Seeds>().unwrap(), Seeds(vec![1, 2, 3, 9]));
        assert!("3-1".parse::<Seeds>().is_err());
        assert!("x".parse::<Seeds>().is_err());
    }
}
