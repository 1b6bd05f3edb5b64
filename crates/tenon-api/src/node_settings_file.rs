//! The file that says how the CPUs of hosts lie and what of them no VM gets: JSON by region and host, with keys in any case.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenon_model::{CpuSet, HostSettings, NodeSettings, NumaCell};

use crate::instance_types_file::{line_of, words};

/// Keys of a host. `cores` is accepted, since files of the reference have it, and follows from the others.
const HOST_KEYS: [&str; 7] = ["sockets", "threads", "uncorecaches", "cores", "nodes", "reservedcpus", "reservedmemory"];
/// Keys of a NUMA node. The reference's code reads `memsize`, its documentation calls it `memory`.
const CELL_KEYS: [&str; 3] = ["cpus", "memsize", "memory"];

/// What a file says, and what of it has no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSettingsFile {
    /// What it says of hosts.
    pub settings: NodeSettings,
    /// What should be told to whoever wrote it.
    pub notes: Vec<String>,
}

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeSettingsError {
    /// It is no JSON by region and host.
    #[error("line {line}: the file is not a JSON object of regions with hosts: {why}")]
    File {
        /// Where that shows.
        line: usize,
        /// What the JSON reader says.
        why: String,
    },
    /// What it says of a host cannot be.
    #[error("line {line}: region {region}, host {host}: {fault}")]
    Host {
        /// The line its entry begins on.
        line: usize,
        /// The region.
        region: String,
        /// The host, or `*`.
        host: String,
        /// The key, and what is wrong with its value.
        fault: String,
    },
}

/// Reads a file.
pub fn read(text: &str) -> Result<NodeSettingsFile, NodeSettingsError> {
    let no_file = |error: &serde_json::Error| NodeSettingsError::File { line: error.line().max(1), why: words(error) };
    let regions: BTreeMap<String, BTreeMap<String, &RawValue>> =
        serde_json::from_str(text).map_err(|error| no_file(&error))?;
    let mut file = NodeSettingsFile::default();
    for (region, hosts) in regions {
        for (host, raw) in hosts {
            let line = line_of(text, raw.get());
            let fail = |fault| NodeSettingsError::Host { line, region: region.clone(), host: host.clone(), fault };
            let read = Entry::read(raw.get()).and_then(|entry| Ok((entry.settings()?, entry.unknown())));
            let (settings, unknown) = read.map_err(fail)?;
            let note =
                |key: String| format!("line {line}: region {region}, host {host}: unknown key {key} has no effect");
            file.notes.extend(unknown.into_iter().map(note));
            file.settings.regions.entry(region.clone()).or_default().insert(host, settings);
        }
    }
    Ok(file)
}

/// An object of the file, its keys in lower case.
struct Entry {
    path: String,
    values: BTreeMap<String, Value>,
}

impl Entry {
    fn read(text: &str) -> Result<Entry, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Entry::of(&value, String::new())
    }

    fn of(value: &Value, path: String) -> Result<Entry, String> {
        let pairs: &Map<String, Value> = value
            .as_object()
            .ok_or_else(|| format!("{path}: {value} is not an object").trim_start_matches(": ").to_owned())?;
        let values = pairs.iter().filter(|(_, value)| !value.is_null());
        let values = values.map(|(key, value)| (key.to_lowercase(), value.clone())).collect();
        Ok(Entry { path, values })
    }

    fn settings(&self) -> Result<HostSettings, String> {
        let mut cells = BTreeMap::new();
        let mut seen = CpuSet::default();
        for (number, value) in
            self.values.get("nodes").map(|nodes| self.map("nodes", nodes)).transpose()?.into_iter().flatten()
        {
            let cell = Entry::of(value, format!("nodes.{number}"))?;
            let node =
                number.trim().parse().map_err(|_| format!("nodes: `{number}` is not the number of a NUMA node"))?;
            let (cell, twice) = (cell.cell()?, format!("nodes.{number}.cpus"));
            let shared = seen.shared_with(&cell.cpus);
            if !shared.is_empty() {
                return Err(format!("{twice}: CPU {shared} belongs to another NUMA node already"));
            }
            seen = seen.with(&cell.cpus);
            cells.insert(node, cell);
        }
        Ok(HostSettings {
            sockets: self.count("sockets")?,
            threads: self.count("threads")?,
            caches: self.count("uncorecaches")?,
            cells,
            reserved_cpus: self.cpus("reservedcpus")?.unwrap_or_default(),
            reserved_memory_bytes: self.bytes("reservedmemory")?.filter(|bytes| *bytes > 0),
        })
    }

    fn cell(&self) -> Result<NumaCell, String> {
        let missing = |key: &str| format!("{}: this field is required", self.path_of(key));
        let cpus = self.cpus("cpus")?.filter(|cpus| !cpus.is_empty()).ok_or_else(|| missing("cpus"))?;
        let memory = self.bytes("memsize")?.or(self.bytes("memory")?);
        Ok(NumaCell { cpus, memory_bytes: memory.filter(|bytes| *bytes > 0).ok_or_else(|| missing("memsize"))? })
    }

    /// Keys that nobody reads.
    fn unknown(&self) -> Vec<String> {
        let mut unknown: Vec<String> =
            self.values.keys().filter(|key| !HOST_KEYS.contains(&key.as_str())).cloned().collect();
        let cells = self.values.get("nodes").and_then(Value::as_object).into_iter().flatten();
        for (number, cell) in cells {
            let keys = cell.as_object().into_iter().flat_map(Map::keys);
            let odd = keys.filter(|key| !CELL_KEYS.contains(&key.to_lowercase().as_str()));
            unknown.extend(odd.map(|key| format!("nodes.{number}.{key}")));
        }
        unknown
    }

    fn map<'v>(&self, key: &str, value: &'v Value) -> Result<&'v Map<String, Value>, String> {
        value.as_object().ok_or_else(|| format!("{}: {value} is not an object of NUMA nodes", self.path_of(key)))
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A number; 0 says nothing, as in the reference.
    fn count(&self, key: &str) -> Result<Option<u32>, String> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        let count = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let bad = || format!("{}: {value} is not a number of {key}", self.path_of(key));
        count.map(|count| Some(count).filter(|count| *count > 0)).ok_or_else(bad)
    }

    fn bytes(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| format!("{}: {value} is not a number of bytes", self.path_of(key)))
    }

    /// CPUs as a text such as `0-3,8`, or as a list of numbers.
    fn cpus(&self, key: &str) -> Result<Option<CpuSet>, String> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        let at = self.path_of(key);
        let listed = |numbers: &Vec<Value>| {
            let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
            numbers.iter().map(number).collect::<Option<CpuSet>>()
        };
        let cpus = match value {
            Value::String(text) if text.trim().is_empty() => CpuSet::default(),
            Value::String(text) => text.parse().map_err(|error| format!("{at}: {error}"))?,
            Value::Array(numbers) => {
                listed(numbers).ok_or_else(|| format!("{at}: {value} is not a list of CPU numbers"))?
            }
            _ => return Err(format!("{at}: {value} is not a list of CPU numbers")),
        };
        cpus.of_machine().map(Some).map_err(|error| format!("{at}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_reference_is_read_as_it_is() {
        let text = r#"{"lab": {"*": {"sockets": 1, "threads": 2, "UncoreCaches": 4, "cores": 8, "reservedmemory": 2147483648},
            "pve2": {"nodes": {"0": {"cpus": "0-3,8-11", "memsize": 1073741824}, "1": {"cpus": "4-7,12-15", "memory": 2147483648}},
            "reservedcpus": [0, 8], "sockets": 0}}}"#;
        let file = read(text).unwrap();
        assert_eq!(file.notes, Vec::<String>::new());
        let any = &file.settings.regions["lab"]["*"];
        assert_eq!((any.sockets, any.threads, any.caches), (Some(1), Some(2), Some(4)));
        assert_eq!(any.reserved_memory_bytes, Some(2 << 30));
        let host = &file.settings.regions["lab"]["pve2"];
        assert_eq!((host.sockets, host.reserved_cpus.to_string()), (None, "0,8".to_owned()));
        assert_eq!((host.cells[&0].cpus.to_string(), host.cells[&0].memory_bytes), ("0-3,8-11".to_owned(), 1 << 30));
        assert_eq!(host.cells[&1].memory_bytes, 2 << 30);
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_line_key_and_value() {
        for (text, words) in [
            ("[]", "line 1: the file is not a JSON object of regions with hosts"),
            ("{\"lab\": {\n\"pve1\": {", "line 2: the file is not"),
            ("{\"lab\": {\n\"pve1\": 7}}", "line 2: region lab, host pve1: 7 is not an object"),
            (r#"{"lab":{"*":{"sockets":-1}}}"#, "host *: sockets: -1 is not a number of sockets"),
            (r#"{"lab":{"*":{"reservedmemory":"1Gi"}}}"#, "reservedmemory: \"1Gi\" is not a number of bytes"),
            (r#"{"lab":{"*":{"reservedcpus":["a"]}}}"#, "reservedcpus: [\"a\"] is not a list of CPU numbers"),
            (r#"{"lab":{"*":{"reservedcpus":"9000"}}}"#, "reservedcpus: CPU 9000 is more than the largest number"),
            (
                r#"{"lab":{"*":{"nodes":{"a":{"cpus":"0","memsize":1}}}}}"#,
                "nodes: `a` is not the number of a NUMA node",
            ),
            (
                r#"{"lab":{"*":{"nodes":{"0":{"cpus":"0-","memsize":1}}}}}"#,
                "nodes.0.cpus: `0-` is not a list of CPU numbers",
            ),
            (r#"{"lab":{"*":{"nodes":{"0":{"cpus":"0"}}}}}"#, "nodes.0.memsize: this field is required"),
            (r#"{"lab":{"*":{"nodes":{"0":{"memsize":1}}}}}"#, "nodes.0.cpus: this field is required"),
            (
                r#"{"lab":{"*":{"nodes":{"0":{"cpus":"0-3","memsize":1},"1":{"cpus":"3-4","memsize":1}}}}}"#,
                "nodes.1.cpus: CPU 3 belongs to another NUMA node already",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_that_nobody_knows_is_noted() {
        let file = read(
            "{\"lab\": {\n\"pve1\": {\"reservedcpu\": [0], \"nodes\": {\"0\": {\"cpus\": \"0\", \"memsize\": 1, \"mem\": 2}}}}}",
        );
        assert_eq!(
            file.unwrap().notes,
            [
                "line 2: region lab, host pve1: unknown key reservedcpu has no effect",
                "line 2: region lab, host pve1: unknown key nodes.0.mem has no effect"
            ]
        );
    }
}
