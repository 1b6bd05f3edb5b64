//! Table: recorded exchanges that are answered differently, and why; and where that which was only watched is proved.

pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "husk-task-log",
        "how far a copy had come when its worker was killed: the recording has a line for every two per cent",
    ),
    ("locked-backup-snapshot", "there are no snapshots"),
    ("config-partial-fail", "which keys are still pending after a failure is chance, there and here"),
    ("config-pending-after-fail", "follows from the exchange before"),
    ("destroy-acl-gone", "lists the rights that the topics left out here have granted"),
];

/// Rows without a request: what was watched, and the test in `tests/estate` that proves it, or why none does.
pub(crate) const OBSERVATIONS: &[(&str, Result<&str, &str>)] = &[
    ("clone-full-efidisk-observed", Ok("a_full_clone_passes_through_its_phases")),
    ("clone-full-observed", Ok("a_full_clone_passes_through_its_phases")),
    ("clone-full-observed2", Ok("a_full_clone_passes_through_its_phases")),
    ("clone-full-onedisk-observed", Ok("a_held_clone_with_one_disk_shows_only_the_placeholder")),
    ("clone-linked-observed", Ok("a_new_vm_is_unknown_until_the_next_tick_and_gone_at_once")),
    ("clone-linked-onedisk-observed", Ok("a_held_clone_with_one_disk_shows_only_the_placeholder")),
    ("clone-stopped-result", Ok("a_stopped_clone_task_cleans_up")),
    ("create-inprogress-observed", Ok("a_vm_in_the_making_shows_only_its_lock")),
    ("delete-observed", Ok("a_new_vm_is_unknown_until_the_next_tick_and_gone_at_once")),
    ("nextid-parallel", Ok("nextid_is_a_string_and_reserves_nothing")),
    ("req-keepalive", Ok("https_carries_reason_phrases_and_keeps_good_connections")),
    ("req-keepalive-explicit", Ok("https_carries_reason_phrases_and_keeps_good_connections")),
    ("req-keepalive-idle", Err("a connection is dropped after five idle seconds; no test waits that long")),
    ("req-keepalive-max", Ok("the_hundredth_answer_closes_the_connection")),
    ("start-observed", Ok("a_start_is_seen_late_in_the_listing_and_at_once_in_the_status")),
    ("start-task", Ok("start_and_stop_are_told_to_listeners_and_status_flips_before_the_task_ends")),
    ("stop-observed", Ok("start_and_stop_are_told_to_listeners_and_status_flips_before_the_task_ends")),
    ("task-log-default-limit", Ok("a_log_is_numbered_and_paged")),
    ("timing-summary", Err("durations are the defaults of `Pace`, as ratios")),
    ("upload-chunked", Ok("chunked_and_huge_bodies_are_501")),
    ("upload-content-length-too-big", Ok("an_upload_ends_at_its_closing_boundary")),
    ("upload-content-length-too-small", Err("told like a missing end of the body here: 500 with another text")),
    ("vmid-reuse-identity", Ok("a_linked_clone_inherits_everything_but_identity")),
];
