//! What does cloud-init do with a seed?
//!
//! Of user-data it knows `#cloud-config` with `hostname`, `fqdn` and `write_files`; the rest changes nothing here.
//! Files are written once per instance, as cloud-init does it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::disk::{Disk, File};
use super::trouble::first_line;

const FIRST_LINE: &str = "#cloud-config";
/// What cloud-init gives a file that names no mode.
const USUAL_MODE: u32 = 0o644;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct MetaData {
    instance_id: Option<String>,
    local_hostname: Option<String>,
    hostname: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UserData {
    hostname: Option<String>,
    fqdn: Option<String>,
    write_files: Vec<WriteFile>,
}

#[derive(Debug, Deserialize)]
struct WriteFile {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    permissions: Option<String>,
    #[serde(default)]
    append: bool,
}

/// Applies a seed to a disk and tells what went wrong with it.
pub(crate) fn apply(seed: &BTreeMap<String, Vec<u8>>, disk: &mut Disk) -> Vec<String> {
    let Some(meta) = seed.get("meta-data") else {
        return vec!["the seed has no meta-data, so cloud-init passes it over".into()];
    };
    let Some(user) = seed.get("user-data") else {
        return vec!["the seed has no user-data, so cloud-init passes it over".into()];
    };
    let meta: MetaData = match parse(meta) {
        Ok(meta) => meta,
        Err(why) => return vec![format!("cannot read meta-data: {why}")],
    };
    let instance = meta.instance_id.clone().unwrap_or_else(|| "nocloud".into());
    let is_new = disk.instance.as_ref() != Some(&instance);
    if let Some(name) = meta.local_hostname.or(meta.hostname) {
        disk.hostname = name;
    }
    let text = String::from_utf8_lossy(user);
    if text.lines().next().map(str::trim_end) != Some(FIRST_LINE) {
        return vec![format!("user-data does not begin with {FIRST_LINE}, so cloud-init ignores it")];
    }
    let user: UserData = match parse(user) {
        Ok(user) => user,
        Err(why) => return vec![format!("cannot read user-data: {why}")],
    };
    if let Some(name) = user.hostname.or(user.fqdn.and_then(|f| f.split('.').next().map(str::to_owned))) {
        disk.hostname = name;
    }
    disk.instance = Some(instance);
    if !is_new {
        return Vec::new();
    }
    user.write_files.iter().filter_map(|file| write(file, disk).err()).collect()
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))
}

fn write(entry: &WriteFile, disk: &mut Disk) -> Result<(), String> {
    let path = &entry.path;
    if !path.starts_with('/') {
        return Err(format!("cannot write {path}: the path is not absolute"));
    }
    let content = match entry.encoding.as_deref().unwrap_or("text/plain") {
        "" | "text/plain" => entry.content.clone().into_bytes(),
        "b64" | "base64" => {
            let joined: String = entry.content.split_whitespace().collect();
            STANDARD.decode(joined).map_err(|error| format!("cannot decode {path}: {error}"))?
        }
        other => return Err(format!("cannot write {path}: the simulator does not know encoding {other}")),
    };
    let given = entry.permissions.as_deref();
    let mode = given.map_or(Ok(USUAL_MODE), |text| u32::from_str_radix(text.trim_start_matches("0o"), 8));
    let mode = mode.map_err(|_| format!("cannot write {path}: its permissions are not octal"))?;
    let owner = entry.owner.clone().unwrap_or_else(|| "root:root".into());
    let file = File { mode, owner, content };
    if entry.append {
        disk.append(path, file);
    } else {
        disk.write(path, file);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(user_data: &str) -> BTreeMap<String, Vec<u8>> {
        let meta = "instance-id: '7'\nlocal-hostname: from-meta\n";
        [("user-data", user_data), ("meta-data", meta)].map(|(k, v)| (k.to_owned(), v.as_bytes().to_vec())).into()
    }

    #[test]
    fn files_are_written_with_mode_owner_and_decoded_content() {
        let mut disk = Disk::from_image("image");
        let text = "#cloud-config\nwrite_files:\n- path: /a\n  permissions: '0600'\n  content: |\n    one\n- path: /b\n  \
                    owner: x:y\n  encoding: b64\n  content: dHdv\n- {path: /c, permissions: 0640, content: ''}\n";
        assert_eq!(apply(&seed(text), &mut disk), Vec::<String>::new());
        assert_eq!(disk.file("/a"), Some(&File::secret("one\n")));
        assert_eq!(disk.file("/b"), Some(&File { mode: 0o644, owner: "x:y".into(), content: b"two".into() }));
        assert_eq!(disk.file("/c").map(|f| f.mode), Some(0o640));
        assert_eq!(disk.hostname, "from-meta");
    }

    #[test]
    fn the_same_instance_is_set_up_once() {
        let mut disk = Disk::from_image("image");
        apply(&seed("#cloud-config\nhostname: h\nwrite_files: [{path: /a, content: one}]\n"), &mut disk);
        apply(&seed("#cloud-config\nwrite_files: [{path: /a, content: two}]\n"), &mut disk);
        assert_eq!(disk.text("/a"), Some("one"));
    }

    #[test]
    fn what_cloud_init_would_not_read_is_told() {
        for (text, word) in [
            ("hostname: a\n", "does not begin"),
            ("#cloud-config\nwrite_files: [\n", "cannot read user-data"),
            ("#cloud-config\nwrite_files: [{path: a}]\n", "not absolute"),
            ("#cloud-config\nwrite_files: [{path: /a, encoding: b64, content: '!'}]\n", "cannot decode /a"),
            ("#cloud-config\nwrite_files: [{path: /a, permissions: rw}]\n", "not octal"),
        ] {
            let told = apply(&seed(text), &mut Disk::from_image("image"));
            assert!(told.len() == 1 && told[0].contains(word), "{text}: {told:?}");
        }
    }
}
