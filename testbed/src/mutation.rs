//! Texts that are almost right: a corpus, changed at random from a seed, for parsers that must take or refuse anything.
//!
//! The same corpus, seed and count give the same texts on every machine.

/// How many mutations a parser is shown in a normal test run.
pub const COUNT: usize = 10_000;

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

/// Every line of the corpus as it is, and then so many of them changed.
pub fn mutations(corpus: &str, seed: u64, count: usize) -> impl Iterator<Item = String> {
    let lines: Vec<Vec<char>> = corpus.lines().map(|line| line.chars().collect()).collect();
    let letters: Vec<char> = corpus.chars().filter(|letter| *letter != '\n').collect();
    let mut chance = Chance(seed);
    let plain: Vec<String> = lines.iter().map(|line| line.iter().collect()).collect();
    let changed = (0..count).map(move |_| {
        let mut text = lines.get(chance.below(lines.len())).cloned().unwrap_or_default();
        for _ in 0..=chance.below(4) {
            change(&mut text, &lines, &letters, &mut chance);
        }
        text.into_iter().collect()
    });
    plain.into_iter().chain(changed)
}

fn change(text: &mut Vec<char>, lines: &[Vec<char>], letters: &[char], chance: &mut Chance) {
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
            let edge = EDGES.get(chance.below(EDGES.len())).copied().unwrap_or_default();
            put(text, edge.chars().collect());
        }
        3 => {
            let part = text[at..end].to_vec();
            put(text, part);
        }
        4 => {
            // The beginning of one line and the end of another.
            let other = lines.get(chance.below(lines.len())).cloned().unwrap_or_default();
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
    fn an_empty_corpus_is_no_trouble() {
        assert_eq!(mutations("", 1, 50).count(), 50);
    }
}
