//! Flags as Go's flag package takes them: `-cloud-config x` means `--cloud-config x`, for one verb.
//!
//! Manifests written for the reference spell them so, and clap would read each as a row of one-letter flags.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// The command line with the second dash put in where the verb `verb` of `root` stands first and has such a flag.
/// Values of flags and everything after `--` stay as they are.
pub fn rewrite(args: impl IntoIterator<Item = OsString>, root: &Command, verb: &str) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut written: Vec<OsString> = args.by_ref().take(2).collect();
    let flags = match (written.get(1), root.find_subcommand(verb)) {
        (Some(given), Some(command)) if given == verb => flags(command),
        _ => BTreeMap::new(),
    };
    while let Some(arg) = args.next() {
        if arg == "--" {
            written.push(arg);
            break;
        }
        let Some((name, dashes, has_value)) = flag(&arg) else {
            written.push(arg);
            continue;
        };
        let Some(takes_value) = flags.get(name) else {
            written.push(arg);
            continue;
        };
        let awaits_value = *takes_value && !has_value;
        written.push(if dashes == 1 { with_dash(&arg) } else { arg });
        written.extend(awaits_value.then(|| args.next()).flatten());
    }
    written.extend(args);
    written
}

/// The long flags of a verb, and whether the next word is the value of each.
fn flags(command: &Command) -> BTreeMap<String, bool> {
    let mut command = command.clone();
    // Fills in `--help`, which Go knows as well.
    command.build();
    // The value of a flag that can do without one stands behind a `=` or nowhere, as in Go.
    let awaits = |arg: &Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    let longs = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, awaits(arg))));
    longs.map(|(name, takes_value)| (name.to_owned(), takes_value)).collect()
}

/// The name of a flag, how many dashes stand before it, and whether its value stands in the same word.
fn flag(arg: &OsStr) -> Option<(&str, usize, bool)> {
    // The value behind the `=` may be any bytes; a name is text.
    let (word, has_value) = match arg.as_encoded_bytes().iter().position(|byte| *byte == b'=') {
        Some(at) => (arg.as_encoded_bytes().get(..at)?, true),
        None => (arg.as_encoded_bytes(), false),
    };
    let word = str::from_utf8(word).ok()?;
    let name = word.trim_start_matches('-');
    let dashes = word.len() - name.len();
    (matches!(dashes, 1 | 2) && name.len() > 1).then_some((name, dashes, has_value))
}

fn with_dash(arg: &OsStr) -> OsString {
    let mut long = OsString::from("-");
    long.push(arg);
    long
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn root() -> Command {
        let option = |name: &'static str| Arg::new(name).long(name);
        let switch = option("disable-x").num_args(0..=1).require_equals(true).default_missing_value("true");
        let verb = Command::new("controller").arg(option("cloud-config")).arg(option("metrics-port")).arg(switch);
        Command::new("tenon").subcommand(verb).subcommand(Command::new("version").arg(option("output")))
    }

    fn rewritten(line: &str) -> String {
        let args = line.split(' ').map(OsString::from);
        let args: Vec<String> =
            rewrite(args, &root(), "controller").into_iter().flat_map(OsString::into_string).collect();
        args.join(" ")
    }

    #[test]
    fn a_flag_of_the_verb_gets_its_second_dash() {
        for (given, expected) in [
            ("tenon controller -cloud-config=x", "tenon controller --cloud-config=x"),
            ("tenon controller -cloud-config x -metrics-port 0", "tenon controller --cloud-config x --metrics-port 0"),
            ("tenon controller -cloud-config=a=-metrics-port", "tenon controller --cloud-config=a=-metrics-port"),
            ("tenon controller -disable-x -metrics-port 0", "tenon controller --disable-x --metrics-port 0"),
            ("tenon controller -disable-x=true -metrics-port 0", "tenon controller --disable-x=true --metrics-port 0"),
            ("tenon controller --disable-x -metrics-port 0", "tenon controller --disable-x --metrics-port 0"),
            ("tenon controller -help", "tenon controller --help"),
            ("tenon controller -help -metrics-port 0", "tenon controller --help --metrics-port 0"),
        ] {
            assert_eq!(rewritten(given), expected);
        }
    }

    #[test]
    fn everything_else_stays() {
        for line in [
            "tenon",
            "tenon version -output json",
            "tenon -cloud-config controller",
            "tenon controller --cloud-config x",
            "tenon controller -h -c -x=y",
            "tenon controller -unknown -output json",
            "tenon controller --cloud-config -metrics-port",
            "tenon controller ---cloud-config x",
            "tenon controller - -- -cloud-config x",
            "tenon controller --cloud-config -- x",
        ] {
            assert_eq!(rewritten(line), line);
        }
        assert_eq!(
            rewritten("tenon controller -cloud-config -metrics-port"),
            "tenon controller --cloud-config -metrics-port"
        );
    }

    #[test]
    fn a_value_may_be_any_bytes() {
        let odd = OsString::from_vec(b"-cloud-config=\xff".to_vec());
        let args = ["tenon".into(), "controller".into(), odd];
        let expected = OsString::from_vec(b"--cloud-config=\xff".to_vec());
        assert_eq!(rewrite(args, &root(), "controller").last(), Some(&expected));
    }
}
