//! What does cloud-init do with a seed?
//!
//! Of cloud-config it knows `hostname`, `fqdn` and `write_files`; commands are not run, and the log says so. What
//! user-data leaves open, vendor-data says. Files are written once per instance, as cloud-init does it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::data_kind::{DataKind, told_of_k3s};
use super::disk::Disk;
use super::network;
use super::talos;
use super::trouble::first_line;
use super::write_files::WriteFile;

/// Commands of which the simulator does the part that matters: units are started, settings change nothing here.
const NEEDLESS: [&str; 4] = ["systemctl", "sysctl", "systemd-tmpfiles", "echo"];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct MetaData {
    instance_id: Option<String>,
    local_hostname: Option<String>,
    hostname: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CloudConfig {
    hostname: Option<String>,
    fqdn: Option<String>,
    write_files: Option<Vec<WriteFile>>,
    bootcmd: Option<Value>,
    runcmd: Option<Value>,
    vendor_data: Option<Value>,
}

impl CloudConfig {
    /// This one, with what only the vendor says. Lists are not joined: cloud-init takes one of them as a whole.
    fn or(self, vendor: Self) -> Self {
        Self {
            hostname: self.hostname.or(vendor.hostname),
            fqdn: self.fqdn.or(vendor.fqdn),
            write_files: self.write_files.or(vendor.write_files),
            bootcmd: self.bootcmd.or(vendor.bootcmd),
            runcmd: self.runcmd.or(vendor.runcmd),
            vendor_data: self.vendor_data,
        }
    }

    fn refuses_vendor_data(&self) -> bool {
        let enabled = self.vendor_data.as_ref().map(|settings| &settings["enabled"]);
        enabled.is_some_and(|enabled| *enabled == false || enabled == "false")
    }

    fn name(&self) -> Option<String> {
        let of_fqdn = || self.fqdn.as_ref()?.split('.').next().map(str::to_owned);
        self.hostname.clone().or_else(of_fqdn)
    }
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
    let is_new = disk.instance.replace(instance.clone()).as_ref() != Some(&instance);
    if let Some(name) = meta.local_hostname.or(meta.hostname) {
        disk.hostname = name;
    }
    if let Some(config) = seed.get("network-config") {
        disk.addresses = network::of_seed(config);
    }
    if DataKind::of(user) == DataKind::Talos {
        return if is_new { talos::apply(&String::from_utf8_lossy(user), disk) } else { Vec::new() };
    }
    let mut told = Vec::new();
    let config = combined(user, seed.get("vendor-data"), &mut told);
    if let Some(name) = config.name() {
        disk.hostname = name;
    }
    if !is_new {
        return Vec::new();
    }
    let files = config.write_files.iter().flatten();
    told.extend(files.filter_map(|file| file.write_to(disk).err()));
    for (list, commands) in [("bootcmd", config.bootcmd.as_ref()), ("runcmd", config.runcmd.as_ref())] {
        told.extend(told_of_commands(list, commands));
        told.extend(printed(commands));
    }
    let both = seed.get("vendor-data").into_iter().chain([user]);
    told.extend(both.filter_map(|data| told_of_k3s(data)).next());
    told
}

/// User-data over vendor-data; what cannot be read of them is told.
fn combined(user: &[u8], vendor: Option<&Vec<u8>>, told: &mut Vec<String>) -> CloudConfig {
    let mut read = |name: &str, data: &[u8]| {
        let outcome = match DataKind::of(data) {
            DataKind::CloudConfig => parse(data).map_err(|why| format!("cannot read {name}: {why}")),
            DataKind::Empty => Ok(CloudConfig::default()),
            DataKind::Talos => Err(format!("{name} is a machine configuration of Talos, which belongs in user-data")),
            DataKind::PassedOver(what) => Err(format!("{name} {what}")),
        };
        outcome.unwrap_or_else(|why| {
            told.push(why);
            CloudConfig::default()
        })
    };
    let user = read("user-data", user);
    match vendor {
        Some(vendor) if !user.refuses_vendor_data() => user.or(read("vendor-data", vendor)),
        _ => user,
    }
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))
}

/// What `echo` prints, which ends up in the boot log.
fn printed(commands: Option<&Value>) -> Vec<String> {
    let line = |command: &Value| match command {
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.split_first().filter(|(program, _)| **program == "echo").map(|(_, rest)| rest.join(" "))
        }
        Value::String(line) => line.strip_prefix("echo ").map(str::to_owned),
        _ => None,
    };
    commands.and_then(Value::as_array).into_iter().flatten().filter_map(line).collect()
}

/// The programs that are not run. Arguments stay unsaid, since they may be secret.
fn told_of_commands(list: &str, commands: Option<&Value>) -> Option<String> {
    let mut programs: Vec<&str> = Vec::new();
    for command in commands?.as_array()? {
        let words = command.as_array().map_or(command, |words| words.first().unwrap_or(&Value::Null));
        let mut words = words.as_str().unwrap_or_default().split_whitespace();
        // A shell line may set variables first.
        let program = words.find(|word| !word.contains('=')).unwrap_or("sh");
        let program = program.rsplit('/').next().unwrap_or(program);
        if !NEEDLESS.contains(&program) && !programs.contains(&program) {
            programs.push(program);
        }
    }
    let programs = programs.join(", ");
    (!programs.is_empty()).then(|| format!("the simulator does not run the commands of {list}: {programs}"))
}

#[cfg(test)]
mod tests;
