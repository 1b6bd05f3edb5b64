//! Options of a VM: recorded ones and made-up ones are printed as they were read, and compared by what they mean.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use tenon_model::CpuSet;
use tenon_pve::{
    AddressConfig, AgentOption, BootOrder, Cpu, Drive, Meta, NetworkCard, NumaNode, PassThrough, Properties, Smbios,
    SmbiosText, Tags, option_holds, same_option,
};

use crate::recordings::{exchanges, lines, plain};

/// Every option that stands in any recorded configuration, wherever it stands.
fn recorded_options() -> BTreeMap<(String, String), ()> {
    fn walk(value: &Value, options: &mut BTreeMap<(String, String), ()>) {
        let is_config = value.get("digest").is_some_and(Value::is_string) && value.get("storage").is_none();
        match value {
            Value::Object(object) => {
                let texts = object.iter().filter(|(_, value)| is_config && !value.is_object() && !value.is_array());
                options.extend(texts.map(|(key, value)| ((key.clone(), plain(value)), ())));
                object.values().for_each(|value| walk(value, options));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, options)),
            _ => {}
        }
    }
    let mut options = BTreeMap::new();
    lines().iter().for_each(|line| walk(line, &mut options));
    options
}

/// Reads and prints an option as its own type does.
fn round_trip(key: &str, text: &str) -> Option<String> {
    let stem = key.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some(match stem {
        "net" => text.parse::<NetworkCard>().unwrap().to_string(),
        "scsi" | "ide" | "virtio" | "sata" | "efidisk" | "tpmstate" | "unused" => {
            text.parse::<Drive>().unwrap().to_string()
        }
        "ipconfig" => text.parse::<AddressConfig>().unwrap().to_string(),
        "numa" if key != "numa" => text.parse::<NumaNode>().unwrap().to_string(),
        "smbios" => text.parse::<Smbios>().unwrap().to_string(),
        "hostpci" => text.parse::<PassThrough>().unwrap().to_string(),
        "cpu" => text.parse::<Cpu>().unwrap().to_string(),
        "agent" => text.parse::<AgentOption>().unwrap().to_string(),
        "boot" => text.parse::<BootOrder>().unwrap().to_string(),
        "meta" => text.parse::<Meta>().unwrap().to_string(),
        "tags" if text != " " => Tags::read(text).to_string(),
        "affinity" => text.parse::<CpuSet>().unwrap().to_string(),
        _ => return None,
    })
}

#[test]
fn recorded_options_are_printed_as_they_were_read() {
    let (mut typed, mut others) = (0, 0);
    for (key, text) in recorded_options().into_keys() {
        match round_trip(&key, &text) {
            Some(printed) => {
                assert_eq!(printed, text, "{key}");
                typed += 1;
            }
            None => others += 1,
        }
        assert!(same_option(&key, &text, &text), "{key}: {text}");
    }
    assert!(typed > 150 && others > 100, "{typed} with a type, {others} without");
}

/// Proxmox takes a value and gives it back in another shape; it still is what was sent.
#[test]
fn what_was_sent_is_found_again_in_what_is_stored() {
    let mut compared = 0;
    for line in lines().iter().filter(|line| line["request"]["method"] == "PUT" && line["response"]["status"] == 200) {
        let (sent, stored) = (&line["request"]["form"], &line["after"]["config_keys"]);
        let (Some(sent), Some(stored)) = (sent.as_object(), stored.as_object()) else { continue };
        for (key, value) in sent {
            let (sent, Some(stored)) = (plain(value), stored.get(key).map(plain)) else { continue };
            // An empty value is stored as a blank, and a locked-away password is not shown: both are lost on purpose.
            if sent.is_empty() || stored == "<absent>" || key == "digest" || key == "cipassword" {
                continue;
            }
            assert!(option_holds(key, &sent, &stored), "{} {key}: `{sent}` / `{stored}`", line["id"]);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn no_recorded_card_loses_its_address() {
    let mut cards = 0;
    for (key, text) in recorded_options().into_keys().filter(|(key, _)| key.starts_with("net")) {
        let mut card: NetworkCard = text.parse().unwrap();
        let mac = card.mac().unwrap_or_else(|| panic!("{key}: {text}")).to_owned();
        card.set("queues", "8").unwrap();
        card.set("bridge", "vmbr7").unwrap();
        let other = card.with_model("e1000e").unwrap();
        assert!(card.mac() == Some(&mac) && other.mac() == Some(&mac), "{text}");
        cards += 1;
    }
    assert!(cards > 10, "{cards}");
}

#[test]
fn configurations_from_replies_are_equal_to_themselves_in_any_order() {
    let configs = exchanges().into_iter().filter(|row| row.status == 200 && row.path.ends_with("/config"));
    let mut read = 0;
    for row in configs.filter(|row| row.data().is_object()) {
        for (key, value) in row.data().as_object().unwrap() {
            let text = plain(value);
            let Ok(properties) = text.parse::<Properties>() else { continue };
            if round_trip(key, &text).is_none() || ["tags", "affinity", "boot"].contains(&key.as_str()) {
                continue;
            }
            let mut parts: Vec<&str> = text.split(',').collect();
            parts.reverse();
            assert!(same_option(key, &text, &parts.join(",")), "{} {key}", row.id);
            assert_eq!(properties, parts.join(",").parse().unwrap());
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

/// A value as it may stand in a property string.
fn word() -> impl Strategy<Value = String> {
    "[A-Za-z0-9:/._;+ -]{1,10}"
}

/// Some properties, in some order, known and unknown.
fn properties() -> impl Strategy<Value = Vec<(Option<String>, String)>> {
    let names = ["size", "ssd", "bridge", "queues", "cpus", "uuid", "flags", "order", "x-new", "future_key"];
    let key = prop_oneof![
        1 => Just(None),
        6 => prop::sample::select(names.to_vec()).prop_map(|name| Some(name.to_owned())),
        2 => "[a-z][a-z0-9_-]{0,8}".prop_map(Some),
    ];
    prop::collection::vec((key, word()), 1..7).prop_map(|parts| {
        let mut seen = std::collections::BTreeSet::new();
        parts.into_iter().filter(|(key, _)| seen.insert(key.clone())).collect()
    })
}

fn written(parts: &[(Option<String>, String)]) -> String {
    let part = |(key, value): &(Option<String>, String)| match key {
        Some(key) => format!("{key}={value}"),
        None => value.clone(),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

const KEYS: [&str; 16] = [
    "net0",
    "net31",
    "scsi0",
    "virtio15",
    "ide2",
    "sata5",
    "efidisk0",
    "tpmstate0",
    "unused3",
    "ipconfig1",
    "numa0",
    "smbios1",
    "hostpci0",
    "cpu",
    "agent",
    "meta",
];

proptest! {
    #[test]
    fn made_up_options_are_printed_as_they_were_read(parts in properties(), key in prop::sample::select(KEYS.to_vec())) {
        let text = written(&parts);
        prop_assert_eq!(round_trip(key, &text).unwrap(), text.clone());
        prop_assert_eq!(text.parse::<Properties>().unwrap().to_string(), text);
    }

    #[test]
    fn the_order_of_made_up_options_does_not_matter(parts in properties(), key in prop::sample::select(KEYS.to_vec())) {
        let (text, mut parts) = (written(&parts), parts);
        parts.reverse();
        prop_assert!(same_option(key, &text, &written(&parts)));
        prop_assert!(option_holds(key, &text, &written(&parts)));
    }

    #[test]
    fn sets_of_processors_are_what_was_put_in(numbers in prop::collection::btree_set(0_u32..300, 1..40)) {
        let set: CpuSet = numbers.iter().copied().collect();
        prop_assert_eq!(set.iter().collect::<std::collections::BTreeSet<u32>>(), numbers);
        prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set.clone());
        prop_assert_eq!(set.with_semicolons().parse::<CpuSet>().unwrap(), set);
    }

    #[test]
    fn any_text_of_smbios_comes_back(text in "\\PC{0,40}", plain in "[A-Za-z0-9]{1,8}") {
        let smbios: Smbios = format!("uuid=9e01f0b4-0000-4000-8000-000000000001,family={plain}").parse().unwrap();
        let set = smbios.with_text(SmbiosText::Serial, &text);
        prop_assert_eq!(set.text("serial"), (!text.is_empty()).then_some(text));
        prop_assert_eq!(set.text("family"), Some(plain));
        prop_assert_eq!(set.uuid(), smbios.uuid());
    }

    #[test]
    fn any_description_survives_a_file(text in "\\PC{0,30}(\n\\PC{0,30}){0,4}") {
        prop_assert_eq!(tenon_pve::description_from_file(&tenon_pve::description_to_file(&text)), tenon_pve::stored_description(&text));
    }
}
