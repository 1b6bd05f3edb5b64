//! Texts that are almost right: a corpus, changed at random from a seed, for parsers that must take or refuse anything.
//!
//! The same corpus, seed and count give the same texts on every machine. `cargo xtask fuzz` runs the same tests with more
//! mutations, or with another seed.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// How many mutations a parser is shown in a normal test run.
pub const COUNT: usize = 10_000;

/// Sets how many mutations a parser is shown instead.
pub const RUNS_VARIABLE: &str = "TENON_FUZZ_RUNS";

/// Sets the seed of every fuzz test instead of the one it has.
pub const SEED_VARIABLE: &str = "TENON_FUZZ_SEED";

/// Names a file that always holds the text a parser was shown last: what is left to see after an abort or a hang. Its first
/// line says how many bytes the text has; what follows is of longer texts before it.
pub const LAST_VARIABLE: &str = "TENON_FUZZ_LAST";

/// How many mutations a parser is shown in this run.
pub fn runs() -> usize {
    number(RUNS_VARIABLE).and_then(|runs| usize::try_from(runs).ok()).unwrap_or(COUNT)
}

/// The seed of a test in this run; `usual` is the one it has by itself.
pub fn seed(usual: u64) -> u64 {
    number(SEED_VARIABLE).unwrap_or(usual)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// Tokens that tend to lie at the edge of a grammar.
const EDGES: &[&str] = &[
    "",
    " ",
    "\n",
    "\0",
    "-",
    "+",
    ".",
    "/",
    ":",
    "%",
    "0",
    "00",
    "9",
    "1e9",
    "e",
    "E",
    "i",
    "~",
    "\u{feff}",
    "é",
    "٣",
    "\u{1F600}",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "NaN",
    "null",
    "99999999999999999999999999999999999999999999999999",
];

/// A splitmix64 generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from((bits ^ (bits >> 31)) % bound).unwrap_or(0)
    }
}

/// Texts that a parser is known to meet, and from which mutations are made.
#[derive(Debug, Clone)]
pub struct Corpus {
    texts: Vec<Vec<char>>,
    letters: Vec<char>,
    tokens: Vec<String>,
}

/// What came of showing a corpus to a parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// All texts, changed or not.
    pub texts: usize,
    /// Those that the parser could read.
    pub readable: usize,
}

impl Corpus {
    /// Every line is a text of its own.
    pub fn of_lines(lines: &str) -> Corpus {
        Corpus::of_texts(lines.lines())
    }

    /// Texts that may have several lines.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Corpus {
        let texts: Vec<Vec<char>> = texts.into_iter().map(|text| text.chars().collect()).collect();
        let letters = texts.iter().flatten().copied().collect();
        Corpus { texts, letters, tokens: EDGES.iter().map(|token| (*token).to_owned()).collect() }
    }

    /// Adds tokens of the grammar, which mutations put anywhere.
    #[must_use]
    pub fn with_tokens(mut self, tokens: &[&str]) -> Corpus {
        self.tokens.extend(tokens.iter().map(|token| (*token).to_owned()));
        self
    }

    /// Every text as it is, and then so many of them changed.
    pub fn mutations(self, seed: u64, count: usize) -> impl Iterator<Item = String> {
        let plain: Vec<String> = self.texts.iter().map(|text| text.iter().collect()).collect();
        let mut chance = Chance(seed);
        let changed = (0..count).map(move |_| {
            let mut text = self.texts.get(chance.below(self.texts.len())).cloned().unwrap_or_default();
            for _ in 0..=chance.below(4) {
                self.change(&mut text, &mut chance);
            }
            text.into_iter().collect()
        });
        plain.into_iter().chain(changed)
    }

    /// Shows every text and [`runs`] mutations to a parser, which says whether it could read the text. A text that makes
    /// it panic is printed, with the seed.
    pub fn show(self, usual_seed: u64, mut body: impl FnMut(&str) -> bool) -> Shown {
        let seed = seed(usual_seed);
        let last = std::env::var_os(LAST_VARIABLE).and_then(|path| File::create(path).ok());
        let mut shown = Shown { texts: 0, readable: 0 };
        for text in self.mutations(seed, runs()) {
            if let Some(last) = &last {
                // In place, since making a file anew takes milliseconds. A parser without faults needs no file.
                let told = format!("seed {seed}, text {}, bytes {}\n{text}", shown.texts, text.len());
                let _ = last.write_all_at(told.as_bytes(), 0);
            }
            let watched = Watched { seed, number: shown.texts, text: &text };
            shown.readable += usize::from(body(watched.text));
            shown.texts += 1;
        }
        shown
    }
}

/// Every line of the corpus as it is, and then so many of them changed.
pub fn mutations(corpus: &str, seed: u64, count: usize) -> impl Iterator<Item = String> + use<> {
    Corpus::of_lines(corpus).mutations(seed, count)
}

/// Names the text that a parser is at, should the parser panic.
struct Watched<'a> {
    seed: u64,
    number: usize,
    text: &'a str,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("fuzz seed {}, text {}: {:?}", self.seed, self.number, self.text);
        }
    }
}

impl Corpus {
    fn change(&self, text: &mut Vec<char>, chance: &mut Chance) {
        let (texts, letters) = (&self.texts, &self.letters);
        let at = chance.below(text.len() + 1);
        let end = at + chance.below(text.len() - at + 1);
        let put = |text: &mut Vec<char>, what: Vec<char>| drop(text.splice(at..at, what));
        match chance.below(7) {
            0 => drop(text.drain(at..end)),
            1 => {
                let letter = letters.get(chance.below(letters.len())).copied();
                put(text, letter.into_iter().collect());
            }
            2 => {
                let token = self.tokens.get(chance.below(self.tokens.len())).map(String::as_str);
                put(text, token.unwrap_or_default().chars().collect());
            }
            3 => {
                let part = text[at..end].to_vec();
                put(text, part);
            }
            4 => {
                // The beginning of one text and the end of another.
                let other = texts.get(chance.below(texts.len())).cloned().unwrap_or_default();
                let from = chance.below(other.len() + 1);
                text.truncate(at);
                text.extend_from_slice(&other[from..]);
            }
            5 => {
                if let (Some(letter), Some(place)) = (letters.get(chance.below(letters.len())), text.get_mut(at)) {
                    *place = *letter;
                }
            }
            _ => text[at..end].reverse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_texts_and_another_one_others() {
        let texts = |seed| mutations("1Gi\n500m\n", seed, 200).collect::<Vec<_>>();
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
        assert_eq!(texts(7).len(), 202);
        assert_eq!(texts(7)[..2], ["1Gi", "500m"]);
        let distinct: std::collections::BTreeSet<String> = texts(7).into_iter().collect();
        assert!(distinct.len() > 100, "{} are different", distinct.len());
    }

    #[test]
    fn texts_of_several_lines_stay_whole_and_tokens_of_the_grammar_get_into_them() {
        let texts = ["{{if .A}}\na\n{{end}}", "b"];
        let all: Vec<String> = Corpus::of_texts(texts).with_tokens(&["<token>"]).mutations(3, 2000).collect();
        assert_eq!(all[..2], texts);
        assert!(all.iter().filter(|text| text.contains("<token>")).count() > 5);
    }

    #[test]
    fn a_parser_is_shown_every_text_and_the_readable_ones_are_counted() {
        let shown = Corpus::of_lines("1\n22\n").show(1, |text| text.parse::<u64>().is_ok());
        assert_eq!(shown.texts, 2 + runs());
        assert!(shown.readable > 2 && shown.readable < shown.texts, "{shown:?}");
    }

    #[test]
    fn an_empty_corpus_is_no_trouble() {
        assert_eq!(mutations("", 1, 50).count(), 50);
    }
}
