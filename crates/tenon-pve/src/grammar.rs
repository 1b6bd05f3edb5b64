//! What the options of a VM mean, beside how they are written.
//!
//! Proxmox gives a value back in another order, with another spelling of yes, or with a size it added. The text of an
//! option is kept as it came, letter for letter, and printed so again; whether two texts mean the same is asked here.
//! The tables are in `shape`; a file for each family of options has what callers read and change.

pub(crate) mod devices;
pub(crate) mod drive;
pub(crate) mod identity;
pub(crate) mod network;
pub(crate) mod notes;
pub(crate) mod processor;
pub(crate) mod shape;

use std::collections::{BTreeMap, BTreeSet};

use crate::properties::Properties;
use notes::Tags;
use shape::Shape;
use tenon_model::CpuSet;

/// Whether two texts of an option mean the same.
pub fn same_option(key: &str, one: &str, other: &str) -> bool {
    one == other || meaning(key, one) == meaning(key, other)
}

/// Whether an option as it stands has all that was asked for. Proxmox adds what was left open: the size of a disk, the
/// address of a card.
pub fn option_holds(key: &str, wanted: &str, present: &str) -> bool {
    let (Meaning::Properties(wanted), Meaning::Properties(present)) = (meaning(key, wanted), meaning(key, present))
    else {
        return same_option(key, wanted, present);
    };
    wanted.iter().all(|(name, value)| present.get(name) == Some(value))
}

/// What a text means, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Text(String),
    Tags(Tags),
    Cpus(CpuSet),
    Properties(Canonical),
}

fn meaning(key: &str, text: &str) -> Meaning {
    let plain = || Meaning::Text(text.to_owned());
    match key {
        "tags" => Meaning::Tags(Tags::read(text)),
        "description" => Meaning::Text(notes::stored_description(text).to_owned()),
        "affinity" => text.parse().map_or_else(|_| plain(), Meaning::Cpus),
        _ => match (shape::of(key), text.parse()) {
            (Some(shape), Ok(properties)) => Meaning::Properties(canonical(shape, &properties)),
            _ => plain(),
        },
    }
}

/// Properties under their own names, each value in its own spelling. Proxmox refuses a property that is given twice, so
/// what happens to one does not matter, as long as it is the same in any order.
type Canonical = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn canonical(shape: &Shape, properties: &Properties) -> Canonical {
    let mut meaning = Canonical::new();
    let mut note = |name: &str, value: String| {
        meaning.entry(name.to_owned()).or_default().insert(value);
    };
    for (key, value) in properties.iter() {
        if shape.cards && key.is_some_and(|key| key != "macaddr") && network::is_mac(value) {
            note("model", key.unwrap_or_default().to_owned());
            note("macaddr", value.to_lowercase());
            continue;
        }
        if key.is_none() && value.trim().is_empty() {
            continue;
        }
        let name = shape.name_of(key);
        note(name, shape.kind_of(name).spell(value));
    }
    meaning
}

/// A type for one family of options: text kept, meaning compared.
macro_rules! option_type {
    ($(#[$doc:meta])* $name:ident, $shape:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default)]
        pub struct $name($crate::properties::Properties);

        impl $name {
            /// The value of a property, under any of its names.
            pub fn get(&self, name: &str) -> Option<&str> {
                let shape: &$crate::grammar::shape::Shape = &$shape;
                self.0.iter().find(|(key, value)| shape.name_of(*key) == name && !value.is_empty()).map(|(_, value)| value)
            }

            /// The properties as they are written.
            pub fn properties(&self) -> &$crate::properties::Properties {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::properties::PropertiesError;

            fn from_str(text: &str) -> Result<$name, Self::Err> {
                text.parse().map($name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        /// By meaning, not by text.
        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                $crate::grammar::canonical(&$shape, &self.0) == $crate::grammar::canonical(&$shape, &other.0)
            }
        }

        impl Eq for $name {}
    };
}
pub(crate) use option_type;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxmox_gives_back_the_same_in_another_shape() {
        for (key, sent, stored) in [
            ("net0", "model=virtio,macaddr=BC:24:11:5C:2F:10,bridge=vmbr0", "virtio=BC:24:11:5C:2F:10,bridge=vmbr0"),
            ("net0", "virtio=BC:24:11:5C:2F:10,queues=2,firewall=1", "virtio=bc:24:11:5c:2f:10,firewall=on,queues=2"),
            ("net3", "e1000=BC:24:11:5C:2F:10", "e1000,macaddr=BC:24:11:5C:2F:10"),
            ("scsi0", "file=a:1/x.qcow2,ssd=true,size=1G", "a:1/x.qcow2,size=1024M,ssd=1"),
            ("agent", "1", "enabled=true"),
            ("agent", "enabled=1,freeze-fs-on-backup=0", "1,guest-fsfreeze=off"),
            ("cpu", "host,flags=+aes;-pcid", "cputype=host,flags=-pcid;+aes"),
            ("memory", "current=2048", "2048"),
            ("tags", "zeta;Alpha,beta alpha", "alpha;beta;zeta"),
            ("numa0", "cpus=0-3,memory=512", "memory=512,cpus=0;1;2-3"),
            ("affinity", "0-3,8", "0,1,2,3,8"),
            ("description", "a\nb\n", "a\nb"),
            ("smbios1", "uuid=9E01F0B4-0000-4000-8000-000000000001", "uuid=9e01f0b4-0000-4000-8000-000000000001"),
            ("hostpci0", "host=0000:01:00.0;0000:01:00.1,pcie=1", "0000:01:00.1;0000:01:00.0,pcie=on"),
        ] {
            assert!(same_option(key, sent, stored), "{key}: {sent} / {stored}");
        }
    }

    #[test]
    fn what_differs_is_not_the_same() {
        for (key, one, other) in [
            ("net0", "virtio=BC:24:11:5C:2F:10", "virtio=BC:24:11:5C:2F:11"),
            ("net0", "virtio=BC:24:11:5C:2F:10", "e1000=BC:24:11:5C:2F:10"),
            ("scsi0", "a:1/x,size=1G", "a:1/x,size=1025M"),
            ("boot", "order=scsi0;ide2", "order=ide2;scsi0"),
            ("agent", "1", "0"),
            ("name", "a", "A"),
            ("future0", "a,b", "b,a"),
            ("tags", "a;b", "a"),
            ("affinity", "0-3", "0-2"),
        ] {
            assert!(!same_option(key, one, other), "{key}: {one} / {other}");
        }
    }

    #[test]
    fn an_option_holds_what_was_asked_for_and_may_hold_more() {
        assert!(option_holds("scsi0", "a:1/x,ssd=1", "a:1/x,size=1G,ssd=1"));
        assert!(option_holds("net0", "virtio,bridge=vmbr0", "virtio=BC:24:11:33:04:37,bridge=vmbr0"));
        assert!(!option_holds("net0", "virtio,bridge=vmbr1", "virtio=BC:24:11:33:04:37,bridge=vmbr0"));
        assert!(!option_holds("scsi0", "a:1/x,ssd=1", "a:1/x,size=1G"));
        assert!(!option_holds("tags", "a", "a;b"));
    }
}
