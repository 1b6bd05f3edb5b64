//! Which command does systemd start for `kubelet.service`?
//!
//! The unit and its drop-ins, the latter sorted by file name over all folders; an empty `ExecStart=` takes away what
//! came before. `Environment=` and `EnvironmentFile=` are known, since packages and users hand the kubelet its flags that
//! way.

use std::collections::BTreeMap;

use super::disk::{Disk, File};
use super::trouble::Trouble;

/// Where units lie; an earlier folder wins over a later one for a file of the same name.
const FOLDERS: [&str; 4] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
const UNIT: &str = "kubelet.service";
const NAMED_BY: &str = "EnvironmentFile of kubelet.service";

/// The words of the command, its variables replaced.
pub(crate) fn kubelet_words(disk: &Disk) -> Result<Vec<String>, Trouble> {
    let mut service = Service::default();
    for text in sources(disk) {
        service.read(text);
    }
    service.read_environment_files(disk)?;
    match service.commands.as_slice() {
        [] => Err(Trouble::NoCommand),
        [command] => Ok(service.expand(command)),
        many => Err(Trouble::ManyCommands(many.len())),
    }
}

/// Makes `kubelet.service` run with these flags only, whatever packages brought.
pub(crate) fn install(disk: &mut Disk, flags: &[String]) {
    // A quote of the other kind holds together what has one inside.
    let quoted = |flag: &String| if flag.contains('"') { format!("'{flag}'") } else { format!("\"{flag}\"") };
    let flags: Vec<String> = flags.iter().map(quoted).collect();
    let text = format!("[Service]\nExecStart=\nExecStart=/usr/bin/kubelet {}\n", flags.join(" "));
    disk.write(&format!("/etc/systemd/system/{UNIT}.d/90-image.conf"), File::public(text));
}

/// The unit first, then its drop-ins.
fn sources(disk: &Disk) -> Vec<&str> {
    let unit = FOLDERS.iter().find_map(|folder| disk.text(&format!("{folder}/{UNIT}")));
    let mut drop_ins: BTreeMap<&str, &str> = BTreeMap::new();
    for folder in FOLDERS {
        let folder = format!("{folder}/{UNIT}.d");
        for (name, path) in disk.folder(&folder).filter(|(name, _)| name.ends_with(".conf")) {
            if let Some(text) = disk.text(path) {
                drop_ins.entry(name).or_insert(text);
            }
        }
    }
    unit.into_iter().chain(drop_ins.into_values()).collect()
}

#[derive(Debug, Default)]
struct Service {
    commands: Vec<String>,
    environment: BTreeMap<String, String>,
    /// With a leading `-` where the file may be missing.
    environment_files: Vec<String>,
}

impl Service {
    fn read(&mut self, text: &str) {
        let mut section = "";
        let joined = text.replace("\\\n", " ");
        for line in joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| section == "Service") else { continue };
            match (key.trim(), value.trim()) {
                ("ExecStart", "") => self.commands.clear(),
                ("ExecStart", command) => self.commands.push(command.to_owned()),
                ("Environment", "") => self.environment.clear(),
                ("Environment", pairs) => {
                    let pairs = words(pairs).into_iter();
                    let pairs = pairs.filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.into(), v.into())));
                    self.environment.extend(pairs);
                }
                ("EnvironmentFile", "") => self.environment_files.clear(),
                ("EnvironmentFile", path) => self.environment_files.push(path.to_owned()),
                _ => {}
            }
        }
    }

    /// Files win over `Environment=`, wherever in the unit they are named.
    fn read_environment_files(&mut self, disk: &Disk) -> Result<(), Trouble> {
        for named in &self.environment_files {
            let path = named.trim_start_matches('-');
            match disk.text(path) {
                Some(text) => self.environment.extend(variables(text)),
                None if named.starts_with('-') => {}
                None => return Err(Trouble::NoFile { path: path.to_owned(), named_by: NAMED_BY }),
            }
        }
        Ok(())
    }

    /// `$NAME` as a word of its own becomes as many words as its value has; `${NAME}` is replaced in place.
    fn expand(&self, command: &str) -> Vec<String> {
        let value = |name: &str| self.environment.get(name).map(String::as_str).unwrap_or_default();
        let mut expanded = Vec::new();
        for word in words(command) {
            match word.strip_prefix('$').filter(|name| !name.starts_with('{')) {
                Some(name) => expanded.extend(words(value(name))),
                None => expanded.push(replaced(&word, value)),
            }
        }
        expanded
    }
}

/// The word with every `${NAME}` replaced; one that is not set becomes nothing.
fn replaced<'a>(word: &str, value: impl Fn(&str) -> &'a str) -> String {
    let mut parts = word.split("${");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((name, rest)) => whole.extend([value(name), rest]),
            None => whole.extend(["${", part]),
        }
    }
    whole
}

/// Lines of `NAME=value`, the value with or without quotes around it.
fn variables(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", "");
    let lines = joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let unquoted = |value: &str| {
        let quote = value.chars().next().filter(|c| ['"', '\''].contains(c));
        let inside = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        inside.unwrap_or(value).to_owned()
    };
    pairs.map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim()))).collect()
}

/// Words divided by white space; quotes hold words together.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => all.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(drop_ins: &[(&str, &str)]) -> Disk {
        let mut disk = Disk::from_image("image");
        for (path, text) in drop_ins {
            disk.write(path, File::public(*text));
        }
        disk
    }

    const TENON: &str = "/etc/systemd/system/kubelet.service.d/20-tenon.conf";
    const PACKAGE: &str = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf";

    #[test]
    fn the_command_after_the_reset_counts() {
        let package = "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --old\n";
        let tenon = "[Service]\n# a note\nExecStart=\nExecStart=/usr/bin/kubelet --new=1 \\\n  --more\n";
        let words = kubelet_words(&disk(&[(PACKAGE, package), (TENON, tenon)])).unwrap();
        assert_eq!(words, ["/usr/bin/kubelet", "--new=1", "--more"]);
    }

    #[test]
    fn two_commands_without_a_reset_are_refused() {
        let refused = kubelet_words(&disk(&[(TENON, "[Service]\nExecStart=/usr/bin/kubelet --new\n")]));
        assert!(matches!(refused, Err(Trouble::ManyCommands(2))), "{refused:?}");
        let refused = kubelet_words(&disk(&[(TENON, "[Service]\nExecStart=\n")]));
        assert!(matches!(refused, Err(Trouble::NoCommand)), "{refused:?}");
    }

    #[test]
    fn variables_become_words() {
        let text =
            "[Service]\nEnvironment=\"ARGS=--a=1 --b=2\" X=y\nExecStart=\nExecStart=kubelet $ARGS --x=${X} $NONE\n";
        assert_eq!(kubelet_words(&disk(&[(TENON, text)])).unwrap(), ["kubelet", "--a=1", "--b=2", "--x=y"]);
    }

    #[test]
    fn a_file_of_variables_gives_flags_and_wins_over_the_unit() {
        let unit = "[Service]\nEnvironmentFile=-/etc/default/kubelet\nEnvironmentFile=-/etc/none\nEnvironment=A=unit \
                    B=unit\nExecStart=\nExecStart=kubelet $KUBELET_EXTRA_ARGS --a=${A} --b=${B}${NONE}\n";
        let file = "# flags\nKUBELET_EXTRA_ARGS=\"--node-labels=a=b \\\n--max-pods=7\"\nA=file\n";
        let words = kubelet_words(&disk(&[(TENON, unit), ("/etc/default/kubelet", file)])).unwrap();
        assert_eq!(words, ["kubelet", "--node-labels=a=b", "--max-pods=7", "--a=file", "--b=unit"]);
    }

    #[test]
    fn a_file_of_variables_that_must_be_there_and_is_not_stops_the_kubelet() {
        let unit = "[Service]\nEnvironmentFile=/etc/sysconfig/kubelet\nExecStart=\nExecStart=kubelet\n";
        let told = kubelet_words(&disk(&[(TENON, unit)])).unwrap_err().story();
        assert_eq!(told, "/etc/sysconfig/kubelet, named by EnvironmentFile of kubelet.service, does not exist");
    }

    #[test]
    fn the_drop_in_of_kubeadm_finds_the_files_of_a_user() {
        let words =
            kubelet_words(&disk(&[("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--v=2 --max-pods=7\n")])).unwrap();
        let expected = [
            "/usr/bin/kubelet",
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
            "--config=/var/lib/kubelet/config.yaml",
            "--v=2",
            "--max-pods=7",
        ];
        assert_eq!(words, expected);
    }
}
