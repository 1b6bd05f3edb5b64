//! Whether two JSON values say the same, and the first place where they do not.

use serde_json::Value;

use crate::replay::names::Names;

/// Numbers that depend on the moment or the machine: only that they are numbers is compared.
const MEASURED: &[&str] = &[
    "available",
    "avail",
    "cpu",
    "ctime",
    "disk",
    "diskread",
    "diskwrite",
    "endtime",
    "free",
    "idle",
    "mem",
    "memhost",
    "netin",
    "netout",
    "pid",
    "pressurecpufull",
    "pressurecpusome",
    "pressureiofull",
    "pressureiosome",
    "pressurememoryfull",
    "pressurememorysome",
    "pstart",
    "rx-bytes",
    "rx-packets",
    "starttime",
    "tx-bytes",
    "tx-packets",
    "uptime",
    "used",
    "used_fraction",
    "wait",
];
/// What identifies a row of a list that has no order.
const IDENTITIES: &[&str] = &[
    "volid", "vmid", "key", "iface", "storage", "roleid", "poolid", "ugid", "name", "group", "cidr", "id", "node",
    "type",
];

/// `Err` names the place and both values.
pub(crate) fn same(names: &mut Names, theirs: &Value, ours: &Value, path: &str) -> Result<(), String> {
    let key = path.rsplit('.').next().unwrap_or("");
    let differ = || Err(format!("{path}: recorded {theirs}, here {ours}"));
    match (theirs, ours) {
        (Value::Number(_), Value::Number(_)) if is_measured(path, key) => Ok(()),
        (Value::String(a), Value::String(b)) if is_sum(a) && is_sum(b) => {
            // The checksum of an empty file is known.
            let empty = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
            if (a == empty) == (b == empty) { Ok(()) } else { differ() }
        }
        (Value::String(a), Value::String(b)) if key == "content" || key == "privs" => {
            let sorted = |text: &str| {
                let mut words: Vec<String> = text.split(',').map(str::to_owned).collect();
                words.sort();
                words
            };
            if sorted(a) == sorted(b) { Ok(()) } else { differ() }
        }
        (Value::String(a), Value::String(b)) if is_measured(path, key) && a.parse::<f64>().is_ok() => {
            if b.parse::<f64>().is_ok() { Ok(()) } else { differ() }
        }
        // Whether the recorded machine could virtualise is no rule.
        (Value::String(_), Value::String(_)) if key == "hvm" => Ok(()),
        (Value::String(a), Value::String(b)) => {
            if names.same(a, b) {
                Ok(())
            } else {
                differ()
            }
        }
        (Value::Object(a), Value::Object(b)) => {
            if let Some(missing) = a.keys().find(|key| !b.contains_key(*key)) {
                return Err(format!("{path}.{missing}: recorded {}, here nothing", a[missing]));
            }
            if let Some(extra) = b.keys().find(|key| !a.contains_key(*key)) {
                return Err(format!("{path}.{extra}: recorded nothing, here {}", b[extra]));
            }
            a.iter().try_for_each(|(key, value)| same(names, value, &b[key], &format!("{path}.{key}")))
        }
        (Value::Array(a), Value::Array(b)) => same_rows(names, a, b, path),
        _ if theirs == ours => Ok(()),
        _ => differ(),
    }
}

/// A checksum over a config file.
fn is_sum(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_measured(path: &str, key: &str) -> bool {
    // The machine's own file system, the count of all tasks so far, load and clock.
    MEASURED.contains(&key)
        || path.contains(".rootfs.")
        || path.contains("loadavg")
        || path == "body.total"
        || path.contains("node/") && key == "maxdisk"
        || matches!(key, "mhz" | "cores" | "sockets" | "family") && path.contains("cpuinfo")
}

/// Rows in an order that means something.
fn is_ordered(rows: &[Value]) -> bool {
    rows.iter().all(|row| ["n", "pos", "upid"].iter().any(|key| row.get(*key).is_some()) || !row.is_object())
}

fn identity(row: &Value) -> String {
    let parts = IDENTITIES.iter().filter_map(|key| Some(format!("{key}={}", row.get(*key)?)));
    parts.collect::<Vec<_>>().join(",")
}

fn same_rows(names: &mut Names, theirs: &[Value], ours: &[Value], path: &str) -> Result<(), String> {
    let list = |rows: &[Value]| rows.iter().map(identity).collect::<Vec<_>>().join(" | ");
    if theirs.len() != ours.len() {
        return Err(format!(
            "{path}: recorded {} rows [{}], here {} [{}]",
            theirs.len(),
            list(theirs),
            ours.len(),
            list(ours)
        ));
    }
    if is_ordered(theirs) {
        let mut pairs = theirs.iter().zip(ours).enumerate();
        return pairs.try_for_each(|(n, (a, b))| same(names, a, b, &format!("{path}[{n}]")));
    }
    let mut left: Vec<&Value> = ours.iter().collect();
    for row in theirs {
        let wanted = identity(row);
        let Some(at) = left.iter().position(|other| identity(other) == wanted) else {
            return Err(format!("{path}: recorded a row {wanted}, here [{}]", list(ours)));
        };
        same(names, row, left.remove(at), &format!("{path}[{wanted}]"))?;
    }
    Ok(())
}

/// Lines of a task's log that only tell how far a copy is.
fn is_progress(line: &str) -> bool {
    let counted = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    line.contains("transferred ") && line.contains('%') || counted.starts_with("K ") && line.contains('%')
}

pub(crate) fn same_log(names: &mut Names, theirs: &[String], ours: &[String]) -> Result<(), String> {
    let told = |lines: &[String]| lines.iter().filter(|line| !is_progress(line)).cloned().collect::<Vec<_>>();
    let (theirs, ours) = (told(theirs), told(ours));
    let equal = theirs.len() == ours.len() && theirs.iter().zip(&ours).all(|(a, b)| same_line(names, a, b));
    if equal { Ok(()) } else { Err(format!("log: recorded {theirs:#?}, here {ours:#?}")) }
}

fn same_line(names: &mut Names, theirs: &str, ours: &str) -> bool {
    let pending = "found pending changes for '";
    match (theirs.strip_prefix(pending), ours.strip_prefix(pending)) {
        // These come in the order of a hash.
        (Some(a), Some(b)) => {
            let sorted = |text: &str| {
                let mut keys: Vec<char> = text.chars().collect();
                keys.sort_unstable();
                keys
            };
            sorted(a) == sorted(b)
        }
        _ => names.same(theirs, ours) || is_length(theirs) && is_length(ours),
    }
}

/// The size of what our own web server serves instead of the recorded image.
fn is_length(line: &str) -> bool {
    line.starts_with("Length: ") || line.contains(" saved [")
}
