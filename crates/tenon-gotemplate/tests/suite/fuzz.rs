//! Does every text, however broken, end as text or as an error? Mutations of known templates, from a seed.

use tenon_gotemplate::{Functions, Limits, MissingKey, Options, Template, Value};
use testbed::mutation::Corpus;

use crate::cases::recorded;
use crate::damage::damage_bytes;
use crate::seeded::{Seeded, seed};
use crate::template_data::dots;
use crate::typed_functions;
use crate::vocabulary::vocabulary;

const SEED: u64 = 4;
/// A longer text shows no more.
const LONGEST: usize = 1 << 14;
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
    let (all, dots) = (recorded(), dots());
    let cases = all["Cases"].as_array().unwrap().iter().map(|case| case["tmpl"].as_str().unwrap());
    let tokens = [vocabulary("scraps"), vocabulary("numbers")].concat();
    let options = |missing_key| Options {
        functions: Functions::new(typed_functions::functions()),
        missing_key,
        limits: LIMITS,
        ..Options::default()
    };
    let options = [MissingKey::Missing, MissingKey::Zero, MissingKey::Error].map(options);
    let (mut seeded, mut number) = (Seeded::new(seed(SEED)), 0);
    let shown = Corpus::of_texts(cases.chain(FIRST_BOOT)).with_tokens(&tokens).show(SEED, |text| {
        let mut bytes = text.as_bytes()[..text.len().min(LONGEST)].to_vec();
        // A text may be cut inside a character, and a template need not be text at all.
        if number % 4 == 3 {
            damage_bytes(&mut seeded, &mut bytes);
        }
        number += 1;
        let dot = if number % 8 == 7 { &dots[number / 8 % dots.len()] } else { &dots[0] };
        fuzz(&bytes, &options[number % 3], dot)
    });
    assert!(shown.readable > shown.texts / 50, "{shown:?}");
}
