//! Which command does systemd start for `kubelet.service`?
//!
//! The unit and its drop-ins, the latter sorted by file name over all folders; an empty `ExecStart=` takes away what
//! came before. `Environment=` is known, since packages hand the kubelet its flags that way.

use std::collections::BTreeMap;

use super::disk::Disk;
use super::trouble::Trouble;

/// Where units lie; an earlier folder wins over a later one for a file of the same name.
const FOLDERS: [&str; 4] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
const UNIT: &str = "kubelet.service";

/// The words of the command, its variables replaced.
pub(crate) fn kubelet_words(disk: &Disk) -> Result<Vec<String>, Trouble> {
    let mut service = Service::default();
    for text in sources(disk) {
        service.read(text);
    }
    match service.commands.as_slice() {
        [] => Err(Trouble::NoCommand),
        [command] => Ok(service.expand(command)),
        many => Err(Trouble::ManyCommands(many.len())),
    }
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
                _ => {}
            }
        }
    }

    /// `$NAME` as a word of its own becomes as many words as its value has; `${NAME}` is replaced in place.
    fn expand(&self, command: &str) -> Vec<String> {
        let value = |name: &str| self.environment.get(name).map(String::as_str).unwrap_or_default();
        let mut expanded = Vec::new();
        for word in words(command) {
            match word.strip_prefix('$').filter(|name| !name.starts_with('{')) {
                Some(name) => expanded.extend(value(name).split_whitespace().map(str::to_owned)),
                None => {
                    let replace = |word: String, (k, v): (&String, &String)| word.replace(&format!("${{{k}}}"), v);
                    expanded.push(self.environment.iter().fold(word, replace));
                }
            }
        }
        expanded
    }
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
    use super::super::disk::File;
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
}
