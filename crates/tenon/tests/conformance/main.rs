//! Does the embedded API server answer as the real one does?
//!
//! One function for each behaviour our controllers, guests and actors rely on; each is tried on both servers with the
//! same expectations. The list is docs/dev/embedded-api.md.

mod agreement;
mod custom;
mod definitions;
mod deletion;
mod discovery;
mod errors;
mod events;
mod eviction;
mod finalizers;
mod ground;
mod joining_rights;
mod kubectl;
mod library;
mod lists;
mod nodes;
mod objects;
mod only_embedded;
mod patches;
mod pods;
mod reply;
mod scale;
mod scheduling;
mod selectors;
mod status;
mod things;
mod tokens_and_certificates;
mod versions;
mod volume_binding;
mod watches;
mod watching;
mod workloads;

/// Makes two tests of each behaviour, and the list of all names.
macro_rules! behaviours {
    ($($area:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        mod embedded {
            $($(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$area::$name(&super::ground::Ground::embedded(stringify!($name)).await?).await
            })*)*
        }

        mod real {
            $($(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                match super::ground::Ground::real(stringify!($name)).await? {
                    Some(ground) => super::$area::$name(&ground).await,
                    None => Ok(()),
                }
            })*)*
        }

        /// Areas and the behaviours in them.
        const BEHAVIOURS: &[(&str, &[&str])] = &[$((stringify!($area), &[$(stringify!($name)),*])),*];
    };
}

behaviours! {
    objects: [
        a_new_object_has_uid_time_and_version,
        a_missing_object_is_not_found,
        a_missing_object_of_a_group_names_the_group,
        a_second_object_of_a_name_already_exists,
        a_generated_name_has_five_letters_more,
        a_long_base_of_a_name_is_cut,
        an_object_without_a_name_is_invalid,
        a_name_with_capitals_is_invalid,
        nothing_is_made_in_a_namespace_that_is_missing,
        the_namespace_of_the_body_must_be_that_of_the_path,
        a_body_of_another_kind_is_a_bad_request,
        a_body_of_another_version_is_a_bad_request,
        a_new_object_may_not_bring_a_version,
        what_only_the_server_sets_is_overwritten,
        an_object_made_anew_is_another_one,
        secrets_keep_plain_text_as_data,
        labels_and_annotations_are_kept,
        what_is_empty_or_null_is_not_kept,
    ],
    versions: [
        an_update_of_a_stale_version_is_a_conflict,
        an_update_of_the_latest_version_is_done,
        an_update_without_a_version_overwrites,
        an_update_of_a_lease_needs_a_version,
        an_update_of_a_custom_object_needs_a_version,
        a_write_that_changes_nothing_keeps_the_version,
        versions_rise_over_all_kinds,
        an_update_of_another_uid_is_a_conflict,
        an_update_of_a_missing_object_is_not_found,
        the_name_of_the_body_must_be_that_of_the_path,
        of_two_writers_of_a_version_one_wins,
        a_lease_is_taken_by_one_of_two,
    ],
    patches: [
        a_patch_with_the_right_version_and_uid_is_done,
        a_patch_of_a_stale_version_is_a_conflict,
        a_patch_of_another_uid_is_invalid,
        a_patch_of_another_uid_and_a_stale_version_is_a_conflict,
        null_in_a_merge_patch_removes,
        a_merge_patch_replaces_lists_whole,
        a_json_patch_adds_replaces_and_removes,
        a_json_patch_whose_test_fails_is_invalid,
        a_json_patch_of_a_missing_path_is_invalid,
        a_json_patch_that_is_no_list_is_a_bad_request,
        a_patch_of_a_missing_object_is_not_found,
        a_patch_cannot_rename,
        a_patch_in_an_unknown_language_is_unsupported,
        a_strategic_patch_of_a_custom_object_is_unsupported,
        a_strategic_patch_merges_lists_by_key,
    ],
    deletion: [
        a_deletion_answers_with_what_is_gone,
        a_deletion_of_a_missing_object_is_not_found,
        a_deletion_of_another_uid_is_a_conflict,
        a_deletion_of_a_stale_version_is_a_conflict,
        a_deletion_of_just_this_object_is_done,
        a_collection_is_deleted_by_selector,
        dependents_go_with_their_owner,
        a_dependent_stays_while_another_owner_lives,
        a_dependent_of_nobody_goes,
        orphans_outlive_their_owner,
        a_namespace_takes_its_objects_along,
        a_namespace_that_goes_takes_no_new_objects,
        a_deleted_custom_object_is_answered_with_a_status,
        a_custom_object_of_another_uid_is_not_deleted,
        the_options_of_a_deletion_may_stand_in_the_query,
        a_pod_of_another_uid_is_not_deleted,
        the_first_namespaces_stay,
        older_kinds_are_shown_as_they_go,
        younger_kinds_are_answered_with_a_status,
        dependents_stay_while_their_owner_is_held,
    ],
    finalizers: [
        a_finalizer_keeps_a_deleted_object,
        an_object_goes_with_its_last_finalizer,
        an_object_stays_while_one_finalizer_is_left,
        a_second_deletion_changes_nothing,
        no_finalizer_is_added_to_what_goes,
        what_goes_can_still_be_written,
        a_deletion_cannot_be_taken_back,
        the_last_finalizer_of_a_stale_version_stays,
        without_a_deletion_the_last_finalizer_is_just_removed,
        the_deletion_of_a_held_custom_object_counts_as_a_change,
        a_node_waits_for_our_finalizer,
        an_update_may_remove_the_last_finalizer,
        a_write_of_the_status_removes_no_finalizer,
        of_two_removals_of_a_finalizer_at_once_one_does_it_and_neither_harms,
    ],
    status: [
        a_custom_object_is_made_without_a_status,
        a_write_of_the_whole_leaves_the_status,
        a_write_of_the_status_leaves_the_rest,
        a_status_of_a_stale_version_is_a_conflict,
        a_status_is_read_with_the_whole,
        conditions_are_written_as_they_come,
        only_a_change_of_what_is_wanted_raises_the_generation,
        a_deployment_counts_changes_of_its_spec,
        a_deployment_is_made_without_a_status,
        labels_of_a_built_in_object_come_with_its_status,
        an_update_of_the_status_leaves_the_rest,
        a_kind_without_a_status_has_none_to_write,
        a_write_of_a_pod_leaves_its_status,
    ],
    lists: [
        items_of_a_built_in_list_do_not_say_what_they_are,
        items_of_a_custom_list_say_what_they_are,
        a_list_is_sorted_by_name,
        a_list_over_all_namespaces_holds_each,
        an_empty_list_has_a_version,
        a_list_is_as_new_as_what_it_holds,
        a_missing_namespace_lists_nothing,
        a_list_comes_in_pages,
        all_pages_show_the_state_of_the_first,
        a_page_token_that_is_broken_is_a_bad_request,
        a_list_from_the_cache_is_a_list,
        pages_of_a_selection_do_not_say_how_many_are_left,
        a_whole_list_says_nothing_of_pages,
        a_watch_goes_on_from_the_last_page,
        pods_may_be_asked_for_in_the_compact_format,
    ],
    selectors: [
        a_label_can_be_equal,
        a_label_can_be_unequal_or_missing,
        a_label_can_be_one_of_several,
        a_label_can_be_none_of_several,
        a_label_can_be_there_or_not,
        all_requirements_must_hold,
        a_selector_that_cannot_be_read_is_a_bad_request,
        objects_are_found_by_name,
        custom_objects_are_found_by_name,
        pods_are_found_by_node_and_phase,
        nodes_are_found_by_whether_they_take_pods,
        secrets_are_found_by_type,
        a_field_that_is_not_served_is_a_bad_request,
    ],
    watches: [
        a_watch_goes_on_from_a_list,
        a_watch_goes_on_from_an_event,
        a_watch_without_a_version_tells_first_what_is_there,
        a_label_that_changes_comes_and_goes,
        a_bound_pod_comes_to_the_watch_of_its_node,
        a_watch_of_one_name_hears_of_no_other,
        a_watch_of_a_namespace_hears_of_no_other,
        a_held_object_is_changed_and_then_deleted,
        a_write_that_changes_nothing_is_not_told,
        a_watch_of_custom_objects_tells_status_and_spec,
        a_watch_takes_bookmarks_and_ends_in_time,
        a_streamed_list_ends_with_a_bookmark,
        a_list_can_be_watched_from_its_own_version_at_once,
        a_reflector_follows_the_server,
        a_version_that_is_no_number_starts_no_watch,
        a_watch_of_an_unknown_field_is_a_bad_request,
    ],
    pods: [
        a_new_pod_is_pending_and_complete,
        limits_are_requests_as_well,
        an_unbound_pod_goes_at_once,
        a_bound_pod_stays_until_its_node_lets_it_go,
        a_grace_can_be_shortened_and_not_lengthened,
        a_finished_pod_goes_at_once,
        a_pod_with_a_finalizer_outlives_its_grace,
        a_binding_gives_a_pod_its_node,
        a_second_binding_is_a_conflict,
        a_missing_pod_is_not_bound,
        a_pod_that_goes_is_not_bound,
        the_status_of_a_namesake_is_not_written,
        a_pod_is_told_why_it_waits,
        a_binding_ends_the_wait,
        a_binding_of_another_uid_is_a_conflict,
        a_pods_generation_counts_its_spec,
        a_pod_may_be_made_for_a_node,
        a_negative_grace_is_one_second,
        a_pod_by_limits_alone_is_guaranteed,
        a_held_pod_needs_its_node_and_its_finalizer_to_go,
    ],
    eviction: [
        a_pod_without_a_budget_leaves,
        an_unbound_pod_is_evicted_at_once,
        an_eviction_may_set_the_grace,
        a_budget_without_room_refuses,
        a_budget_with_room_is_spent,
        two_budgets_for_a_pod_are_an_error,
        a_pending_pod_needs_no_budget,
        a_pod_that_goes_already_needs_no_budget,
        an_eviction_of_another_uid_is_a_conflict,
        a_missing_pod_is_not_evicted,
        an_eviction_must_name_its_pod,
        an_ailing_pod_leaves_while_enough_are_well,
        an_ailing_pod_stays_while_too_few_are_well,
        an_ailing_pod_leaves_where_its_budget_always_lets_it,
        a_budget_with_an_empty_selector_covers_every_pod,
        a_budget_may_select_by_expressions,
    ],
    scale: [
        a_deployment_has_a_scale,
        a_patched_scale_changes_its_deployment,
        an_updated_scale_changes_its_deployment,
        a_pool_has_a_scale,
        a_patched_scale_changes_its_pool,
        a_scale_of_a_stale_version_is_a_conflict,
        a_scale_of_nothing_is_not_found,
        a_scale_that_wants_none_leaves_the_number_out,
    ],
    custom: [
        a_definition_is_established,
        a_defined_kind_is_served_and_empty,
        a_kind_nobody_defined_is_not_found,
        a_kind_goes_with_its_definition,
        a_definition_is_named_for_what_it_defines,
        a_custom_object_must_say_what_it_is,
        a_kind_without_a_status_part_keeps_status_with_the_rest,
        a_custom_object_is_owned_like_any_other,
        a_pool_is_shown_as_a_table,
        a_pool_made_twice_already_exists,
        a_definition_that_changes_is_served_as_it_is_then,
        a_pod_is_shown_as_a_table,
        a_node_is_shown_as_a_table,
        a_deployment_is_shown_as_a_table,
    ],
    nodes: [
        a_new_node_keeps_its_status,
        a_new_node_is_not_ready_at_first,
        a_node_without_allocatable_offers_its_capacity,
        taints_are_replaced_under_a_version,
        labels_annotations_and_finalizers_come_in_one_patch,
        a_heartbeat_changes_only_the_status,
        a_write_of_the_node_leaves_its_status,
        a_node_has_no_generation,
        a_node_that_joins_again_already_exists,
        the_lease_of_a_node_goes_with_it,
    ],
    workloads: [
        a_namespace_is_labelled_with_its_name,
        a_job_is_completed_by_one_pod,
        a_replica_set_wants_one_replica,
        a_daemon_set_wants_no_number,
        a_new_budget_allows_nothing,
        a_new_claim_of_a_volume_is_pending,
        a_volume_is_attached_when_somebody_says_so,
        a_storage_class_binds_and_deletes_at_once,
        a_priority_class_has_a_generation,
        a_role_may_have_a_colon_in_its_name,
        a_lease_is_renewed_by_a_patch,
    ],
    events: [
        an_event_is_made,
        an_event_that_is_said_again_is_counted,
        an_event_is_seen_the_old_way_too,
        events_are_found_by_what_they_regard,
        events_of_objects_without_a_namespace_live_in_default,
    ],
    tokens_and_certificates: [
        a_token_that_nobody_made_is_unauthorized,
        an_expired_token_is_unauthorized,
        a_token_with_another_secret_is_unauthorized,
        a_token_ends_with_its_secret,
        a_bootstrapper_may_ask_for_nothing_else,
        a_request_says_who_asks,
        a_kubelets_request_is_approved_and_signed,
        a_certificate_makes_a_node,
        a_node_may_not_make_another,
        a_node_runs_the_pods_bound_to_it,
        a_new_namespace_gets_an_account_and_the_authority,
        kube_system_has_a_uid_that_names_the_cluster,
        a_node_labels_itself_and_renews_its_lease,
        a_node_watches_its_own_pods,
        a_request_that_is_not_a_nodes_is_not_signed,
        a_serving_request_is_signed_once_somebody_approves_it,
        a_denied_request_is_not_signed,
        a_request_is_not_both_approved_and_denied,
        a_decision_is_not_taken_back,
        a_status_of_a_request_decides_nothing,
        an_approval_sets_no_certificate,
        an_approval_of_a_stale_version_is_a_conflict,
        an_approved_request_its_signer_refuses_has_failed,
        requests_are_found_by_signer,
    ],
    joining_rights: [
        a_group_without_a_binding_may_not_request_certificates,
        a_binding_lets_a_group_request_certificates,
        a_binding_that_is_deleted_lets_nobody,
        an_administrator_may_do_everything,
        reviews_are_not_listed,
    ],
    discovery: [
        the_core_group_names_its_resources,
        pods_can_be_bound_and_evicted,
        the_groups_we_use_are_served,
        resources_of_groups_are_listed,
        our_kinds_are_discovered,
        a_group_that_is_not_served_is_not_found,
        the_server_tells_its_version,
        the_server_tells_that_it_lives,
    ],
    scheduling: [
        a_spread_pod_goes_to_the_emptiest_zone,
        too_few_domains_count_as_an_empty_one,
        a_spread_counts_nodes_the_pod_could_go_to,
        pods_that_are_being_deleted_do_not_count_for_a_spread,
        a_pod_goes_where_its_mates_are_and_the_first_of_them_anywhere,
        pods_stay_away_from_each_other_in_both_directions,
        terms_look_into_the_namespaces_they_choose,
    ],
    volume_binding: [
        a_pod_goes_where_its_volume_can_be_used,
        a_claim_that_waits_for_a_pod_gets_a_volume_where_the_pod_can_go,
        a_claim_is_told_the_node_and_the_pod_waits_for_its_volume,
        a_pod_waits_for_claims_that_are_missing_or_have_no_volume,
        a_node_attaches_as_many_volumes_as_its_driver_can,
    ],
    errors: [
        a_method_that_is_not_served_is_not_allowed,
        a_namespaced_object_needs_a_namespace,
        a_body_that_is_no_json_is_a_bad_request,
        a_body_in_an_unknown_language_is_unsupported,
        protobuf_that_is_cut_short_is_a_bad_request,
        a_patch_that_is_no_json_is_a_bad_request,
        a_resource_that_is_not_served_is_not_found,
        a_body_that_is_too_large_is_refused,
    ],
    library: [
        the_library_reads_refusals,
        the_library_tells_what_stays_from_what_is_gone,
        an_eviction_sent_as_an_object_keeps_its_options,
        an_eviction_by_the_library_loses_its_options,
        the_library_scales,
        the_library_lists_page_by_page,
    ],
}

/// The document is where people look; it must not fall behind.
#[test]
fn the_document_lists_every_behaviour() -> anyhow::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dev/embedded-api.md");
    let document = std::fs::read_to_string(path)?;
    let listed: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("- `")?.strip_suffix('`')).collect();
    let expected: Vec<&str> = BEHAVIOURS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let absent: Vec<_> = expected.iter().filter(|name| !listed.contains(name)).collect();
    let stale: Vec<_> = listed.iter().filter(|name| !expected.contains(name)).collect();
    anyhow::ensure!(absent.is_empty() && stale.is_empty(), "absent: {absent:?}; stale: {stale:?}");
    Ok(())
}
