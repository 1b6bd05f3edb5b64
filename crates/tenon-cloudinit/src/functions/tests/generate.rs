//! Which calls are compared with Go's? The same ones in every run.

use serde_json::{Value as Json, json};

use super::super::yaml::order::is_key_before;
use super::nasty::{BYTES, KEYS, PATTERNS, STRINGS};
use super::written::bytes;

/// A call: the function and its arguments as they are written.
pub(super) type Call = (&'static str, Vec<Json>);

/// A small generator of numbers that look random.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Something nasty, or a few such things in a row.
    pub(super) fn text(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => self.one_of(BYTES).to_vec(),
            1..=9 => self.one_of(STRINGS).as_bytes().to_vec(),
            10..=14 => [self.one_of(STRINGS), self.one_of(STRINGS)].concat().into_bytes(),
            15 => [self.text(), self.one_of(BYTES).to_vec(), self.text()].concat(),
            16 => self.one_of(STRINGS).repeat(1 + self.below(60)).into_bytes(),
            17 => (0..self.below(90)).map(|_| self.one_of(&[b'a', b' ', b'\n', b':', 0xc3, 0xa9])).collect(),
            _ => (0..1 + self.below(6)).map(|_| self.one_of(&ALPHABET)).collect::<String>().into_bytes(),
        }
    }

    /// Keys of which each two have an order. Go sorts others by chance, so that nothing can be compared with it.
    fn keys(&mut self, count: usize) -> Vec<Json> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for _ in 0..count {
            let key = if self.below(3) == 0 { self.text() } else { self.one_of(KEYS).as_bytes().to_vec() };
            keys.push(key);
            if !are_ordered(&keys) {
                keys.pop();
            }
        }
        keys.iter().map(|key| bytes(key)).collect()
    }

    fn number(&mut self) -> Json {
        match self.below(6) {
            0 => json!({ "int": (self.next() as i64 >> self.below(60)).to_string() }),
            1 => json!({ "uint64": self.next().to_string() }),
            2 => json!({ "int32": (self.next() as i32).to_string() }),
            3 => json!({ "float": self.next().to_string() }),
            4 => json!({ "float": self.one_of(&FLOATS).to_bits().to_string() }),
            _ => json!({ "float": ((self.below(1 << 20) as f64) / 64.0).to_bits().to_string() }),
        }
    }

    /// A value that nests at most that deep.
    pub(super) fn value(&mut self, depth: usize) -> Json {
        if depth == 0 || self.below(3) == 0 {
            return match self.below(8) {
                0 => json!(null),
                1 => json!(self.below(2) == 0),
                2 => self.number(),
                _ => bytes(&self.text()),
            };
        }
        let length = self.below(5);
        match self.below(9) {
            0..=2 => json!({ "list": (0..length).map(|_| self.value(depth - 1)).collect::<Vec<_>>() }),
            3..=5 => {
                let keys = self.keys(length * 2).into_iter();
                json!({ "map": keys.map(|key| json!([key, self.value(depth - 1)])).collect::<Vec<_>>() })
            }
            6 => json!({ "strings": (0..length).map(|_| bytes(&self.text())).collect::<Vec<_>>() }),
            7 => self.one_of_nils(),
            _ => self.sample(),
        }
    }

    fn one_of_nils(&mut self) -> Json {
        let name = self.one_of(&["strings", "list", "stringMap", "map", "pInner", "pBool", "inners"]);
        json!({ name: null })
    }

    fn inner(&mut self) -> Json {
        let key = if self.below(2) == 0 { json!("") } else { bytes(&self.text()) };
        json!({ "inner": [key, self.below(2) == 0, { "uint32": self.below(3).to_string() }] })
    }

    fn sample(&mut self) -> Json {
        let text = |random: &mut Random| bytes(&random.text());
        let tags: Vec<Json> = (0..self.below(3)).map(|_| text(self)).collect();
        let count = self.below(4);
        let extra: Vec<Json> = self.keys(count).into_iter().map(|key| json!([key, text(self)])).collect();
        let inners: Vec<Json> = (0..self.below(3)).map(|_| self.inner()).collect();
        let next = self.inner();
        let maybe = |random: &mut Random, json: Json| if random.below(2) == 0 { json!(null) } else { json };
        json!({ "sample": [
            text(self),
            maybe(self, json!({ "strings": tags })),
            { "int64": self.below(3).to_string() },
            maybe(self, json!({ "pBool": self.0 & 1 == 0 })),
            maybe(self, json!({ "pInt32": { "int32": "0" } })),
            { "stringMap": extra },
            { "float": self.one_of(&FLOATS).to_bits().to_string() },
            self.inner(),
            { "inners": inners },
            maybe(self, json!({ "pInner": next })),
            self.value(1),
        ] })
    }

    /// A pattern; about half of them are wrong.
    pub(super) fn pattern(&mut self) -> Json {
        let pieces: String = (0..1 + self.below(4)).map(|_| self.one_of(PATTERNS)).collect();
        json!(pieces)
    }

    pub(super) fn short(&mut self) -> Json {
        let pieces: Vec<u8> = (0..self.below(7)).flat_map(|_| self.one_of(&SUBJECTS).to_vec()).collect();
        bytes(&pieces)
    }
}

/// Whether sorting the keys has one result only.
fn are_ordered(keys: &[Vec<u8>]) -> bool {
    let before = |one: &Vec<u8>, other: &Vec<u8>| is_key_before(one, other);
    keys.iter().enumerate().all(|(at, a)| {
        keys[at + 1..].iter().all(|b| before(a, b) != before(b, a))
            && keys.iter().all(|b| !before(a, b) || keys.iter().all(|c| !before(b, c) || before(a, c)))
    })
}

const ALPHABET: [char; 24] = [
    'a', '1', '0', ' ', '\n', '\t', ':', '-', '#', '.', '_', 'e', '+', 'x', '?', '\'', '"', '\u{2028}', '\r', 'é', 'T',
    '😀', '{', '\u{85}',
];

const FLOATS: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    0.1,
    1e6,
    123_456.0,
    1_234_567.0,
    1e20,
    1e21,
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    5e-324,
    f64::MAX,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

const SUBJECTS: [&[u8]; 20] = [
    b"a",
    b"b",
    b"ab",
    b"aab",
    b"A",
    b"1",
    b" ",
    b"\n",
    "é".as_bytes(),
    "É".as_bytes(),
    b"\xff",
    b"\xe2\x82",
    b".",
    b"-",
    b"_",
    "α".as_bytes(),
    "\u{212a}".as_bytes(),
    "ſ".as_bytes(),
    b"]",
    b"a.b",
];
