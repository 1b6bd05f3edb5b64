//! Does every text that a user can set arrive in the guest as it was set?

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use tenon_cloudinit::Values;

use crate::read_back::{self, seed, user_data, yaml};
use crate::sample::full;

/// Any text at all, with those that YAML readers are known to take for something else.
fn text() -> impl Strategy<Value = String> {
    let tricky = vec![
        "",
        " ",
        "no",
        "on",
        "y",
        "~",
        "null",
        "0600",
        "0o7",
        "1_000",
        "1:30:00",
        "2020-01-01",
        ".inf",
        "=",
        "<<",
        "- a",
        "a: b",
        "a #b",
        "#c",
        "|",
        ">",
        "%x",
        "@x",
        "`x",
        "\"",
        "'",
        "\\n",
        "a\n",
        "a\n\n",
        "\na",
        " a\n b",
        "a\r\nb",
        "\t",
        "---",
        "...",
        "a\n---\nb",
        "\u{feff}a",
        "\u{85}",
        "\u{2028}a\n",
        "\u{0}",
        "\u{7f}",
        "é",
        "{{ x }}",
    ];
    prop_oneof![
        1 => prop::sample::select(tricky).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[ -~\n\t]{0,200}",
    ]
}

fn texts() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text(), text(), 0..6)
}

proptest! {
    #[test]
    fn any_text_arrives_as_it_was_set(keys in vec(text(), 0..5), labels in texts(), values in texts(), region in text()) {
        let mut input = full();
        input.ssh_authorized_keys.clone_from(&keys);
        input.kubelet.node_labels.clone_from(&labels);
        input.values = Values::from(values.clone());
        input.identity.region.clone_from(&region);
        input.identity.tags.clone_from(&keys);

        let user_data = user_data(&input);
        let context = user_data.context();
        prop_assert_eq!(&context.values, &values);
        prop_assert_eq!(&context.kubernetes.nodelabels, &labels);
        prop_assert_eq!(&context.metadata.region, &region);
        prop_assert_eq!(&context.metadata.tags, &keys);
        let written = &user_data.users[0].ssh_authorized_keys;
        prop_assert!(keys.iter().all(|key| written.contains(key)));
        let meta_data: BTreeMap<String, String> = yaml(&read_back::text(&seed(&input).meta_data));
        prop_assert_eq!(&meta_data["region"], &region);
    }

    #[test]
    fn a_label_is_either_on_the_command_line_or_reported(labels in texts()) {
        let mut input = full();
        input.kubelet.node_labels.clone_from(&labels);
        let seed = seed(&input);
        let unit = user_data(&input).content("/etc/systemd/system/kubelet.service.d/20-tenon.conf").to_owned();
        prop_assert_eq!(unit.lines().filter(|line| line.starts_with("ExecStart=")).count(), 2);
        let set = unit.split_once("--node-labels=").map_or(0, |(_, list)| list.split(',').count());
        prop_assert_eq!(set + seed.labels_left_out.len(), labels.len());
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (first, second) = (seed(&full()), seed(&full()));
    assert!(first == second);
    assert!(first.iso().unwrap() == second.iso().unwrap());
}
