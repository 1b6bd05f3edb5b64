//! What version a program says it is, and whether that is near enough to the pinned one.

use std::fmt;

/// `major.minor.patch`; anything after the patch number is left out, and a missing patch number is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

impl Version {
    /// The first `N.N` or `N.N.N` in a text, with or without a leading `v`.
    ///
    /// Every program prints its version in a sentence of its own, so this looks for the numbers only.
    pub fn find_in(text: &str) -> Option<Version> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(Version::parse)
    }

    fn parse(word: &str) -> Option<Version> {
        let mut numbers = word.splitn(3, '.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        // A build without a version stamp may know its minor release only, and nobody asks for more.
        Some(Version { major, minor, patch: numbers.next().unwrap_or(Some(0))? })
    }

    /// Whether both are of one minor release. Patch releases of one minor behave alike; minors do not.
    pub fn same_minor(self, other: Version) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: u32, minor: u32, patch: u32) -> Option<Version> {
        Some(Version { major, minor, patch })
    }

    #[test]
    fn finds_the_version_in_what_each_program_prints() {
        assert_eq!(Version::find_in("Kubernetes v1.36.3\n"), version(1, 36, 3));
        assert_eq!(
            Version::find_in("etcd Version: 3.6.16\nGit SHA: Not provided\nGo Version: go1.26.8"),
            version(3, 6, 16)
        );
        assert_eq!(Version::find_in("Client Version: v1.36.3\nKustomize Version: v5.8.1"), version(1, 36, 3));
        assert_eq!(Version::find_in("v4.3.1+gabc1234"), version(4, 3, 1));
        assert_eq!(Version::find_in("v4.3"), version(4, 3, 0));
    }

    #[test]
    fn a_text_without_a_version_has_none() {
        for text in ["", "v4", "4.", "unknown flag: --version", "1..2", "99999999999.1.1"] {
            assert_eq!(Version::find_in(text), None, "{text}");
        }
    }

    #[test]
    fn patch_releases_are_alike_and_minor_releases_are_not() {
        let pinned = version(1, 36, 3).unwrap();
        assert!(pinned.same_minor(version(1, 36, 9).unwrap()));
        assert!(!pinned.same_minor(version(1, 35, 3).unwrap()));
        assert!(!pinned.same_minor(version(2, 36, 3).unwrap()));
    }
}
