//! When the file on a storage counts as the image of a build, and when it goes.

use tenon_engine::template::{
    BuildFailure, BuildOrder, BuildSight, ObservedImage, ObservedTemplate, PresentImage, TemplateChange,
    TemplateDecision, TemplateTask,
};
use tenon_model::{Seconds, TemplateBuild, TemplateStep};

use crate::templates::steps::{UPID, at, decide, decide_at, decide_for, image, recorded, sees};

/// A file that another build had downloaded, with the certificate checked.
fn of_ours() -> PresentImage {
    PresentImage { is_ours: true, is_certified: true, ordered_at: Some(Seconds(500)), imported_by: None }
}

fn of_somebody() -> PresentImage {
    PresentImage { is_ours: false, is_certified: false, ordered_at: None, imported_by: None }
}

fn present(file: PresentImage, task: TemplateTask) -> BuildSight {
    image(ObservedImage::Present(file), task)
}

fn name_taken() -> TemplateTask {
    TemplateTask::Failed(BuildFailure::ImageNameTaken("refusing to override existing file".to_owned()))
}

#[test]
fn that_the_file_will_be_ours_is_written_down_before_it_is_asked_for() {
    let absent = image(ObservedImage::Absent, TemplateTask::None);
    let intended = recorded(decide(&at(TemplateStep::Download), &absent));
    assert!(intended.downloaded && intended.certified && intended.step == TemplateStep::Download);
    assert_eq!(intended.ordered_at, Some(Seconds(1_010)));
    assert_eq!(decide(&intended, &absent), TemplateDecision::Perform(TemplateChange::Download));
    let done = recorded(decide(&intended, &present(of_somebody(), TemplateTask::Done)));
    assert!(done.step == TemplateStep::Create && done.downloaded);
}

#[test]
fn a_file_of_somebody_else_is_used_and_compared_where_there_is_a_checksum() {
    let found = recorded(decide(&at(TemplateStep::Download), &present(of_somebody(), TemplateTask::None)));
    assert!(found.step == TemplateStep::Create && !found.downloaded, "it is not ours to delete");
    let compared = decide_at(1_010, &at(TemplateStep::Download), &present(of_somebody(), TemplateTask::None), true);
    assert_eq!(compared, TemplateDecision::Perform(TemplateChange::Download));
    let refused = recorded(decide_at(1_010, &at(TemplateStep::Download), &present(of_somebody(), name_taken()), true));
    assert_eq!((refused.step, refused.attempt, refused.downloaded), (TemplateStep::Download, 1, false));
}

#[test]
fn a_file_of_ours_counts_only_after_it_was_compared_for_this_very_build() {
    let build = TemplateBuild { downloaded: true, ..at(TemplateStep::Download) };
    for ordered_at in [None, Some(Seconds(1_000))] {
        let build = TemplateBuild { ordered_at, ..build.clone() };
        let unseen = decide_at(1_010, &build, &present(of_ours(), TemplateTask::None), true);
        assert_eq!(unseen, TemplateDecision::Perform(TemplateChange::Download));
        // A task that is known by the name of the file alone may be the one of another order.
        let found = present(of_ours(), TemplateTask::Found(UPID.to_owned()));
        assert_eq!(decide_at(1_010, &build, &found, true), TemplateDecision::Wait);
    }
    let done = recorded(decide_at(1_010, &build, &present(of_ours(), TemplateTask::Done), true));
    assert_eq!(done.step, TemplateStep::Create);
}

#[test]
fn a_file_of_ours_that_does_not_match_is_removed_and_downloaded_again() {
    let build = at(TemplateStep::Download);
    let discarding = recorded(decide_at(1_010, &build, &present(of_ours(), name_taken()), true));
    assert_eq!((discarding.step, discarding.attempt), (TemplateStep::Discard, 0));
    let delete = decide(&discarding, &present(of_ours(), TemplateTask::None));
    assert_eq!(delete, TemplateDecision::Perform(TemplateChange::DeleteImage));
    let again = recorded(decide(&discarding, &image(ObservedImage::Absent, TemplateTask::None)));
    assert_eq!((again.step, again.downloaded, again.ordered_at), (TemplateStep::Download, false, None));
    // What was ordered meanwhile is another file, and one of somebody else is not deleted.
    for file in [PresentImage { ordered_at: Some(Seconds(1_010)), ..of_ours() }, of_somebody()] {
        let judged = recorded(decide_at(1_020, &discarding, &present(file, TemplateTask::None), true));
        assert_eq!(judged.step, TemplateStep::Download);
    }
}

#[test]
fn a_file_that_a_disk_is_being_made_from_is_not_removed() {
    let read = PresentImage { imported_by: Some("VM 1001 on host pve1".to_owned()), ..of_ours() };
    let told = recorded(decide_at(1_010, &at(TemplateStep::Download), &present(read.clone(), name_taken()), true));
    assert_eq!(told.step, TemplateStep::Download);
    assert!(told.error.unwrap().contains("VM 1001 on host pve1"));
    let discarding = TemplateBuild { last_progress_at: Seconds(1_000), ..at(TemplateStep::Discard) };
    assert_eq!(recorded(decide(&discarding, &present(read, TemplateTask::None))).step, TemplateStep::Discard);
}

#[test]
fn a_download_whose_certificate_nobody_checked_does_not_serve_one_that_asks_for_the_check() {
    let unchecked = PresentImage { is_certified: false, ..of_ours() };
    let build = at(TemplateStep::Download);
    let order = |certifies| BuildOrder { now: Seconds(1_010), in_place: "a", has_checksum: false, certifies };
    let decide = |file: &PresentImage, certifies| {
        recorded(decide_for(&build, &present(file.clone(), TemplateTask::None), &order(certifies))).step
    };
    assert_eq!(decide(&unchecked, true), TemplateStep::Discard);
    assert_eq!(decide(&unchecked, false), TemplateStep::Create);
    assert_eq!(decide(&of_ours(), true), TemplateStep::Create);
    assert_eq!(decide(&of_somebody(), true), TemplateStep::Create, "somebody put it there to be used");
}

#[test]
fn an_interrupted_download_names_what_it_left_and_is_tried_again() {
    let build = TemplateBuild { ordered_at: Some(Seconds(1_000)), downloaded: true, ..at(TemplateStep::Download) };
    let path = "/var/lib/vz/import/debian-1.qcow2.tmp_dwnl.4711";
    let lost = BuildSight { leftover: Some(path.to_owned()), ..image(ObservedImage::Absent, TemplateTask::Lost) };
    let failed = recorded(decide(&build, &lost));
    assert!(failed.error.as_ref().unwrap().contains(&format!("on host pve1 run: rm -f {path}")), "{failed:?}");
    let again = decide_at(1_100, &failed, &image(ObservedImage::Absent, TemplateTask::None), true);
    assert_eq!(again, TemplateDecision::Perform(TemplateChange::Download));
}

#[test]
fn a_missing_image_is_downloaded_again() {
    let missing = TemplateTask::Failed(BuildFailure::ImageMissing("volume does not exist".to_owned()));
    let build = TemplateBuild { upid: Some(UPID.to_owned()), downloaded: true, ..at(TemplateStep::Create) };
    let again = recorded(decide(&build, &sees(ObservedTemplate::Absent, missing)));
    assert_eq!((again.step, again.attempt, again.downloaded), (TemplateStep::Download, 1, false));
}
