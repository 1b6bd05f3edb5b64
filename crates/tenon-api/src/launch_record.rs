//! The launch record as it stands in a NodeClaim's annotation: JSON, with names that stay.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tenon_model::{
    AddressError, CardAddresses, CpuSetError, GivenAddress, LaunchRecord, LaunchStep, PinnedCell, Pinning, Place,
    Seconds, VmId,
};

/// The record on the wire. A field that a later version adds is kept out of the way of an earlier one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    region: String,
    host: String,
    vmid: u32,
    template: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed_storage: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<WireCard>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pinning: Vec<WireCell>,
    #[serde(default, skip_serializing_if = "is_false")]
    full_clone: bool,
    step: Step,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    started_at: i64,
    last_progress_at: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retired: Vec<u32>,
    /// Missing in records of earlier versions, in which every retired id was that of an incomplete clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incomplete: Option<Vec<u32>>,
}

/// The addresses of a card, by the names Proxmox gives them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct WireCard {
    card: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gw: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ip6: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gw6: Option<IpAddr>,
}

impl WireCard {
    fn of(card: &CardAddresses) -> WireCard {
        let text = |given: &Option<GivenAddress>| given.as_ref().map(|given| given.address.to_string());
        let gateway = |given: &Option<GivenAddress>| given.as_ref().and_then(|given| given.gateway);
        WireCard {
            card: card.card,
            ip: text(&card.v4),
            gw: gateway(&card.v4),
            ip6: text(&card.v6),
            gw6: gateway(&card.v6),
        }
    }

    fn read(&self) -> Result<CardAddresses, LaunchRecordError> {
        let given = |text: &Option<String>, gateway| {
            let read = |text: &String| {
                let address = text.parse().map_err(|error: AddressError| LaunchRecordError { why: error.to_string() });
                address.map(|address| GivenAddress { address, gateway })
            };
            text.as_ref().map(read).transpose()
        };
        Ok(CardAddresses { card: self.card, v4: given(&self.ip, self.gw)?, v6: given(&self.ip6, self.gw6)? })
    }
}

/// What the VM is bound to of a NUMA node of its host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCell {
    node: u32,
    cpus: String,
    memory_mib: u64,
}

impl WireCell {
    fn of(cell: &PinnedCell) -> WireCell {
        WireCell { node: cell.node, cpus: cell.cpus.to_string(), memory_mib: cell.memory_mib }
    }

    fn read(&self) -> Result<PinnedCell, LaunchRecordError> {
        let cpus = self.cpus.parse().map_err(|error: CpuSetError| LaunchRecordError { why: error.to_string() })?;
        Ok(PinnedCell { node: self.node, cpus, memory_mib: self.memory_mib })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Step {
    Clone,
    Identify,
    Configure,
    Resize,
    UploadSeed,
    AttachSeed,
    Firewall,
    Start,
    Launched,
}

/// Writes a record.
pub fn write(record: &LaunchRecord) -> String {
    let wire = Wire {
        region: record.place.region.clone(),
        host: record.place.host.to_string(),
        vmid: record.vmid.get(),
        template: record.template.get(),
        seed_storage: record.seed_storage.clone(),
        addresses: record.addresses.iter().map(WireCard::of).collect(),
        pinning: record.pinning.iter().flat_map(|pinning| &pinning.cells).map(WireCell::of).collect(),
        full_clone: record.full_clone,
        step: step_out(record.step),
        attempt: record.attempt,
        upid: record.upid.clone(),
        uuid: record.uuid.clone(),
        started_at: record.started_at.0,
        last_progress_at: record.last_progress_at.0,
        retired: record.retired.iter().map(|id| id.get()).collect(),
        incomplete: (!record.retired.is_empty()).then(|| record.incomplete.iter().map(|id| id.get()).collect()),
    };
    // Numbers, texts and lists always have a JSON form.
    serde_json::to_string(&wire).unwrap_or_default()
}

/// Reads a record. One that cannot be read is an error for whoever owns the claim, never a reason to launch anew.
pub fn read(text: &str) -> Result<LaunchRecord, LaunchRecordError> {
    let wire: Wire = serde_json::from_str(text).map_err(|error| LaunchRecordError { why: error.to_string() })?;
    let bad = |why: &dyn std::fmt::Display| LaunchRecordError { why: why.to_string() };
    let id = |number: u32| VmId::try_from(number).map_err(|error| bad(&error));
    let incomplete = wire.incomplete.unwrap_or_else(|| wire.retired.clone());
    Ok(LaunchRecord {
        place: Place { region: wire.region, host: wire.host.parse().map_err(|error| bad(&error))? },
        vmid: id(wire.vmid)?,
        template: id(wire.template)?,
        seed_storage: wire.seed_storage,
        addresses: wire.addresses.iter().map(WireCard::read).collect::<Result<_, _>>()?,
        pinning: Some(Pinning { cells: wire.pinning.iter().map(WireCell::read).collect::<Result<_, _>>()? })
            .filter(|pinning| !pinning.cells.is_empty()),
        full_clone: wire.full_clone,
        step: step_in(wire.step),
        attempt: wire.attempt,
        upid: wire.upid,
        uuid: wire.uuid,
        started_at: Seconds(wire.started_at),
        last_progress_at: Seconds(wire.last_progress_at),
        retired: wire.retired.into_iter().map(id).collect::<Result<_, _>>()?,
        incomplete: incomplete.into_iter().map(id).collect::<Result<_, _>>()?,
    })
}

/// Why a text is no launch record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read annotation tenon.dev/launch: {why}")]
pub struct LaunchRecordError {
    why: String,
}

impl LaunchRecordError {
    /// What is wrong with the text, without the name of the annotation.
    pub fn why(&self) -> &str {
        &self.why
    }
}

fn step_out(step: LaunchStep) -> Step {
    match step {
        LaunchStep::Clone => Step::Clone,
        LaunchStep::Identify => Step::Identify,
        LaunchStep::Configure => Step::Configure,
        LaunchStep::Resize => Step::Resize,
        LaunchStep::UploadSeed => Step::UploadSeed,
        LaunchStep::AttachSeed => Step::AttachSeed,
        LaunchStep::Firewall => Step::Firewall,
        LaunchStep::Start => Step::Start,
        LaunchStep::Launched => Step::Launched,
    }
}

fn step_in(step: Step) -> LaunchStep {
    match step {
        Step::Clone => LaunchStep::Clone,
        Step::Identify => LaunchStep::Identify,
        Step::Configure => LaunchStep::Configure,
        Step::Resize => LaunchStep::Resize,
        Step::UploadSeed => LaunchStep::UploadSeed,
        Step::AttachSeed => LaunchStep::AttachSeed,
        Step::Firewall => LaunchStep::Firewall,
        Step::Start => LaunchStep::Start,
        Step::Launched => LaunchStep::Launched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> LaunchRecord {
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        LaunchRecord::new(place, "20001".parse().unwrap(), "9000".parse().unwrap(), Seconds(1_000))
    }

    #[test]
    fn what_is_written_is_read_back_at_every_step() {
        let mut record = record();
        for _ in 0..8 {
            assert_eq!(read(&write(&record)), Ok(record.clone()));
            record = record.advanced(Seconds(2_000));
            record.upid = Some("UPID:pve1:0:0:0:qmclone:9000:a@pve!b:".to_owned());
            record.uuid = Some("u".to_owned());
            record.seed_storage = Some("local".to_owned());
            record.retired.extend(["20000", "20002"].map(|id| id.parse::<VmId>().unwrap()));
            record.incomplete.push("20002".parse().unwrap());
            record.full_clone = true;
        }
    }

    #[test]
    fn the_text_is_the_one_that_stands_in_clusters() {
        let text = r#"{"region":"lab","host":"pve1","vmid":20001,"template":9000,"step":"Clone","attempt":1,"startedAt":1000,"lastProgressAt":1000}"#;
        assert_eq!(write(&record()), text);
        let later = text.replace("\"attempt\"", "\"addedLater\":true,\"attempt\"");
        assert_eq!(read(&later), Ok(record()));
    }

    #[test]
    fn what_a_vm_is_bound_to_is_read_back() {
        let cell = |node, cpus: &str| PinnedCell { node, cpus: cpus.parse().unwrap(), memory_mib: 2048 };
        let pinning = Some(Pinning { cells: vec![cell(0, "0-1,8-9"), cell(1, "4")] });
        let bound = LaunchRecord { pinning, ..record() };
        let text = write(&bound);
        let part = r#""pinning":[{"node":0,"cpus":"0-1,8-9","memoryMib":2048},{"node":1,"cpus":"4","memoryMib":2048}]"#;
        assert!(text.contains(part), "{text}");
        assert_eq!(read(&text), Ok(bound));
        assert!(read(&text.replace("0-1", "1-0")).is_err());
    }

    #[test]
    fn retired_ids_of_an_earlier_version_are_incomplete_clones() {
        let text = write(&record()).replace("\"startedAt\"", "\"retired\":[20007],\"startedAt\"");
        let read = read(&text).unwrap();
        assert_eq!((&read.incomplete, read.incomplete.len()), (&read.retired, 1));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for text in
            ["", "{}", "null", &write(&record()).replace("20001", "7"), &write(&record()).replace("Clone", "Dance")]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
