//! The builds of a ProxmoxTemplate as they stand in its annotation: a JSON list, with names that stay.
//!
//! They are an annotation because an older definition of the kind would drop what it does not know of a status.

use serde::{Deserialize, Serialize};
use tenon_model::{Place, Seconds, TemplateBuild, TemplateStep, VmId};

/// A build on the wire. A field that a later version adds is kept out of the way of an earlier one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    region: String,
    host: String,
    vmid: u32,
    number: String,
    image_storage: String,
    image_name: String,
    disk_storage: String,
    #[serde(default, skip_serializing_if = "is_false")]
    shared: bool,
    step: Step,
    #[serde(default)]
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upid: Option<String>,
    uuid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_place: Option<String>,
    started_at: i64,
    last_progress_at: i64,
    #[serde(default, skip_serializing_if = "is_false")]
    downloaded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordered_at: Option<i64>,
    #[serde(default, skip_serializing_if = "is_false")]
    certified: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    adopted: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    retired: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_gone_since: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clones: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Step {
    Discard,
    Download,
    Create,
    Configure,
    Convert,
    Ready,
    Destroy,
    DeleteImage,
}

/// Writes the builds of a template.
pub fn write(builds: &[TemplateBuild]) -> String {
    // Numbers, texts and lists always have a JSON form.
    serde_json::to_string(&builds.iter().map(wire_of).collect::<Vec<_>>()).unwrap_or_default()
}

/// Reads the builds of a template. A list that cannot be read is an error for whoever owns the template, never a reason to
/// begin anew.
pub fn read(text: &str) -> Result<Vec<TemplateBuild>, TemplateRecordError> {
    let wires: Vec<Wire> = serde_json::from_str(text).map_err(|error| bad(&error))?;
    wires.into_iter().map(build_of).collect()
}

fn wire_of(build: &TemplateBuild) -> Wire {
    let build = build.clone();
    Wire {
        region: build.place.region,
        host: build.place.host.to_string(),
        vmid: build.vmid.get(),
        number: build.number,
        image_storage: build.image_storage,
        image_name: build.image_name,
        disk_storage: build.disk_storage,
        shared: build.shared,
        step: step_out(build.step),
        attempt: build.attempt,
        upid: build.upid,
        uuid: build.uuid,
        in_place: build.in_place,
        started_at: build.started_at.0,
        last_progress_at: build.last_progress_at.0,
        downloaded: build.downloaded,
        ordered_at: build.ordered_at.map(|at| at.0),
        certified: build.certified,
        adopted: build.adopted,
        retired: build.retired,
        host_gone_since: build.host_gone_since.map(|at| at.0),
        pool: build.pool,
        clones: build.clones,
        error: build.error,
        progress: build.progress,
    }
}

fn build_of(wire: Wire) -> Result<TemplateBuild, TemplateRecordError> {
    let host = wire.host.parse().map_err(|error: tenon_model::HostNameError| bad(&error))?;
    Ok(TemplateBuild {
        place: Place { region: wire.region, host },
        vmid: VmId::try_from(wire.vmid).map_err(|error| bad(&error))?,
        number: wire.number,
        image_storage: wire.image_storage,
        image_name: wire.image_name,
        disk_storage: wire.disk_storage,
        shared: wire.shared,
        step: step_in(wire.step),
        attempt: wire.attempt,
        upid: wire.upid,
        uuid: wire.uuid,
        in_place: wire.in_place,
        started_at: Seconds(wire.started_at),
        last_progress_at: Seconds(wire.last_progress_at),
        downloaded: wire.downloaded,
        ordered_at: wire.ordered_at.map(Seconds),
        certified: wire.certified,
        adopted: wire.adopted,
        retired: wire.retired,
        host_gone_since: wire.host_gone_since.map(Seconds),
        pool: wire.pool,
        clones: wire.clones,
        error: wire.error,
        progress: wire.progress,
    })
}

/// Why a text is no list of builds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read annotation tenon.dev/template-builds: {why}")]
pub struct TemplateRecordError {
    why: String,
}

fn bad(why: &dyn std::fmt::Display) -> TemplateRecordError {
    TemplateRecordError { why: why.to_string() }
}

fn step_out(step: TemplateStep) -> Step {
    match step {
        TemplateStep::Discard => Step::Discard,
        TemplateStep::Download => Step::Download,
        TemplateStep::Create => Step::Create,
        TemplateStep::Configure => Step::Configure,
        TemplateStep::Convert => Step::Convert,
        TemplateStep::Ready => Step::Ready,
        TemplateStep::Destroy => Step::Destroy,
        TemplateStep::DeleteImage => Step::DeleteImage,
    }
}

fn step_in(step: Step) -> TemplateStep {
    match step {
        Step::Discard => TemplateStep::Discard,
        Step::Download => TemplateStep::Download,
        Step::Create => TemplateStep::Create,
        Step::Configure => TemplateStep::Configure,
        Step::Convert => TemplateStep::Convert,
        Step::Ready => TemplateStep::Ready,
        Step::Destroy => TemplateStep::Destroy,
        Step::DeleteImage => TemplateStep::DeleteImage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build() -> TemplateBuild {
        TemplateBuild {
            place: Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() },
            vmid: "1000".parse().unwrap(),
            number: "17".to_owned(),
            image_storage: "local".to_owned(),
            image_name: "debian-1.qcow2".to_owned(),
            disk_storage: "fast".to_owned(),
            shared: false,
            step: TemplateStep::Download,
            attempt: 0,
            upid: None,
            uuid: "u".to_owned(),
            in_place: None,
            started_at: Seconds(1_000),
            last_progress_at: Seconds(1_000),
            downloaded: false,
            ordered_at: None,
            certified: false,
            adopted: false,
            retired: false,
            host_gone_since: None,
            pool: None,
            clones: None,
            error: None,
            progress: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back_at_every_step() {
        let steps = ["Discard", "Download", "Create", "Configure", "Convert", "Ready", "Destroy", "DeleteImage"];
        let mut all = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            let text = write(&[build()]).replace("Download", step);
            let mut build = read(&text).unwrap().remove(0);
            assert_eq!(build.step.as_str(), step);
            (build.shared, build.downloaded, build.adopted, build.retired) = (true, true, true, true);
            build.upid = Some("UPID:pve1:0:0:0:download:x:a@pve!b:".to_owned());
            (build.in_place, build.error) = (Some("4".to_owned()), Some("a sentence".to_owned()));
            (build.clones, build.progress) = (Some(2), Some(30));
            (build.ordered_at, build.host_gone_since) = (Some(Seconds(7)), Some(Seconds(9)));
            (build.certified, build.pool) = (true, Some("team".to_owned()));
            build.attempt = u32::try_from(number).unwrap();
            all.push(build);
        }
        assert_eq!(read(&write(&all)), Ok(all));
        assert_eq!(read("[]"), Ok(Vec::new()));
    }

    #[test]
    fn the_text_is_the_one_that_stands_in_clusters() {
        let text = r#"[{"region":"lab","host":"pve1","vmid":1000,"number":"17","imageStorage":"local","imageName":"debian-1.qcow2","diskStorage":"fast","step":"Download","attempt":0,"uuid":"u","startedAt":1000,"lastProgressAt":1000}]"#;
        assert_eq!(write(&[build()]), text);
        let later = text.replace("\"attempt\"", "\"addedLater\":true,\"attempt\"");
        assert_eq!(read(&later), Ok(vec![build()]));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let good = write(&[build()]);
        for text in ["", "{}", "null", &good.replace("1000,\"number", "7,\"number"), &good.replace("Download", "Dance")]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
