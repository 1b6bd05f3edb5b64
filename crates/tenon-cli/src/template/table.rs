//! Templates as text for people: a line for each VM template, and what is wrong below.

use std::fmt::Write as _;

use super::view::{Row, Shown};
use crate::plan::table_text::{lay_out, plain};

/// All of them, one after the other.
pub(super) fn table(all: &[Shown]) -> String {
    all.iter().map(page).collect::<Vec<_>>().join("\n")
}

fn page(shown: &Shown) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "{} {}: {}", shown.kind, plain(&shown.name), state(shown));
    if let Some(message) = shown.ready.as_ref().map(|ready| &ready.message).filter(|message| !message.is_empty()) {
        let _ = writeln!(page, "{}", plain(message));
    }
    if let Some(error) = &shown.error {
        let _ = writeln!(page, "{}", plain(error));
    }
    if let Some(image) = &shown.image {
        let _ = writeln!(page, "Image {}", plain(image));
    }
    if let Some(version) = &shown.version {
        let _ = writeln!(page, "Version {}", plain(version));
    }
    if shown.templates.is_empty() {
        let _ = writeln!(page, "\nThere are no VM templates.");
        return page;
    }
    let heads = ["REGION", "HOST", "VM ID", "VERSION", "STATE", "STORAGE", "NODECLAIMS", "CLONES"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(shown.templates.iter().map(cells));
    page.push('\n');
    lay_out(&rows).iter().for_each(|line| {
        let _ = writeln!(page, "{}", line.trim_start());
    });
    let errors: Vec<String> = shown.templates.iter().filter_map(error).collect();
    if !errors.is_empty() {
        let _ = writeln!(page, "\n{}", errors.join("\n"));
    }
    page
}

fn state(shown: &Shown) -> String {
    let ready = match shown.ready.as_ref() {
        None => "the controller has not looked at it yet; check that it runs".to_owned(),
        Some(ready) if ready.status == "True" => "Ready".to_owned(),
        Some(ready) => format!("Ready is {} ({})", ready.status, plain(&ready.reason)),
    };
    if shown.deleting { format!("{ready}; it is being deleted") } else { ready }
}

fn cells(row: &Row) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        row.region.clone(),
        row.host.clone(),
        row.vmid.to_string(),
        row.version.as_ref().map_or_else(dash, |version| match row.current {
            Some(true) => "current".to_owned(),
            _ => format!("old ({version})"),
        }),
        step(row),
        row.disk_storage.clone().map_or_else(
            dash,
            |storage| {
                if row.shared { format!("{storage} (shared)") } else { storage }
            },
        ),
        row.node_claims.len().to_string(),
        row.clones.map_or_else(dash, |clones| clones.to_string()),
    ]
}

/// How far it is, in a few words.
fn step(row: &Row) -> String {
    let step = match (row.step, row.progress) {
        (None, _) if row.in_use => "in use".to_owned(),
        (None, _) => "not used".to_owned(),
        (Some("Ready"), _) if row.in_use => "Ready, in use".to_owned(),
        (Some("Ready"), _) if row.retired => "Ready, retired".to_owned(),
        (Some(step), Some(percent)) => format!("{step} {percent} %"),
        (Some(step), None) => step.to_owned(),
    };
    match row.attempt {
        Some(1) => format!("{step}, failed once"),
        Some(attempt) => format!("{step}, failed {attempt} times"),
        None => step,
    }
}

fn error(row: &Row) -> Option<String> {
    let Row { region, host, vmid, .. } = row;
    Some(format!("VM {vmid} on host {host} (region {region}): {}", plain(row.error.as_ref()?)))
}
