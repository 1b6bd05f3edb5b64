//! Does every text, however broken, end as text or as an error? Mutations of known templates, from a seed.
//!
//! `TENON_FUZZ_RUNS` and `TENON_FUZZ_SEED` ask for more mutations or for others. `TENON_FUZZ_LAST` names a file that holds
//! the text which was tried last, should one never end.

use tenon_gotemplate::{Functions, Limits, MissingKey, Options, Template, Value};

use crate::cases::recorded;
use crate::damage::damage_bytes;
use crate::seeded::{Seeded, note, runs, seed};
use crate::template_data::dots;
use crate::typed_functions;
use crate::vocabulary::vocabulary;

const SEED: u64 = 4;
const RUNS: usize = 10_000;
/// Fewer than usual: a text that goes on for long shows no more than one that goes on for a while.
const LIMITS: Limits = Limits { output: 1 << 16, steps: 20_000, depth: 1000 };

/// Templates of first-boot data, as people write them.
const FIRST_BOOT: [&str; 3] = [
    include_str!("corpus/cloud-config.tmpl"),
    include_str!("corpus/network.tmpl"),
    include_str!("corpus/helpers.tmpl"),
];

/// Reads and runs a text. Says whether that worked.
fn fuzz(bytes: &[u8], options: &Options, dot: &Value) -> bool {
    let Ok(template) = Template::parse("t", bytes, options) else { return false };
    let outcome = template.execute(dot);
    if let Ok(rendered) = &outcome {
        assert!(rendered.bytes.len() <= LIMITS.output);
    }
    if let Err(error) = &outcome {
        assert!(error.line > 0 && error.column > 0 && !error.to_string().is_empty());
    }
    // A function that sets an entry changes the data for the second time.
    if !bytes.windows(3).any(|word| word == b"set") {
        assert_eq!(outcome, template.execute(dot));
    }
    outcome.is_ok()
}

fn corpus() -> Vec<Vec<u8>> {
    let all = recorded();
    let cases = all["Cases"].as_array().unwrap().iter().map(|case| case["tmpl"].as_str().unwrap());
    cases.chain(FIRST_BOOT).map(|text| text.as_bytes().to_vec()).collect()
}

/// A text of the corpus with a few changes.
fn mutated(corpus: &[Vec<u8>], seeded: &mut Seeded) -> Vec<u8> {
    let mut text = corpus[seeded.below(corpus.len())].clone();
    for _ in 0..=seeded.below(4) {
        let at = seeded.below(text.len() + 1);
        let end = at + seeded.below(text.len() - at + 1);
        match seeded.below(8) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, seeded.one_of(&vocabulary("scraps")).bytes())),
            2 => drop(text.splice(at..at, seeded.one_of(&vocabulary("numbers")).bytes())),
            3 => {
                let part = text[at..end].to_vec();
                text.splice(at..at, part);
            }
            4 => {
                let other = &corpus[seeded.below(corpus.len())];
                text.splice(at..end, other[seeded.below(other.len() + 1)..].iter().copied());
            }
            5 => text[at..end].reverse(),
            _ => damage_bytes(seeded, &mut text),
        }
        text.truncate(1 << 14);
    }
    text
}

/// Names the text, should it make the parser panic.
struct Watched<'a>(&'a [u8]);

impl Drop for Watched<'_> {
    #[expect(clippy::disallowed_macros, reason = "the crate prints nothing, but a failing test does")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the text was {:?}", String::from_utf8_lossy(self.0));
        }
    }
}

#[test]
fn the_templates_of_first_boot_data_run() {
    let options = Options { functions: Functions::new(typed_functions::functions()), ..Options::default() };
    for text in FIRST_BOOT {
        let rendered = Template::parse("t", text.as_bytes(), &options).unwrap().execute(&dots()[0]).unwrap();
        assert!(rendered.bytes.len() > 40 && rendered.no_value.is_none(), "{:?}", rendered.no_value);
    }
}

#[test]
fn templates_survive_anything() {
    let (corpus, mut seeded) = (corpus(), Seeded::new(seed(SEED)));
    let dots = dots();
    let options = |missing_key| Options {
        functions: Functions::new(typed_functions::functions()),
        missing_key,
        limits: LIMITS,
        ..Options::default()
    };
    let options = [MissingKey::Missing, MissingKey::Zero, MissingKey::Error].map(options);
    let changed = (0..runs(RUNS)).map(|_| mutated(&corpus, &mut seeded)).collect::<Vec<_>>();
    let mut good = 0;
    for (number, text) in corpus.iter().chain(&changed).enumerate() {
        note(text);
        let _watched = Watched(text);
        let dot = if number % 8 == 7 { &dots[number / 8 % dots.len()] } else { &dots[0] };
        good += usize::from(fuzz(text, &options[number % 3], dot));
    }
    assert!(good > changed.len() / 50, "only {good} of {} ran", changed.len());
}
