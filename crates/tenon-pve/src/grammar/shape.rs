//! The tables: which property a bare value is, which names mean the same, and how values are spelt.

use tenon_model::{CpuSet, PveSize};

use crate::reply::is_true;

/// How the values of a property are spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As they are.
    Text,
    /// 1, on, yes and true are one.
    Flag,
    /// `1` and `1.0` are one.
    Number,
    /// `1G` and `1024M` are one.
    Size,
    /// In either case of letters.
    AnyCase,
    /// Divided by semicolons, in any order.
    Set,
    /// Ranges of numbers, divided by semicolons.
    Cpus,
}

impl Kind {
    /// One spelling for all that mean the same.
    pub(crate) fn spell(self, value: &str) -> String {
        let spelt = match self {
            Kind::Text => None,
            Kind::Flag => is_true(value).map(|flag| u8::from(flag).to_string()),
            Kind::Number => {
                value.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number.to_string())
            }
            Kind::Size => value.parse::<PveSize>().ok().map(|size| size.to_string()),
            Kind::AnyCase => Some(value.to_lowercase()),
            Kind::Set => {
                let mut words: Vec<&str> = value.split(';').collect();
                words.sort_unstable();
                Some(words.join(";"))
            }
            Kind::Cpus => value.parse::<CpuSet>().ok().map(|cpus| cpus.with_semicolons()),
        };
        spelt.unwrap_or_else(|| value.to_owned())
    }
}

/// One family of options.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The property a value without a name is.
    bare: &'static str,
    /// Other names, with the proper one.
    aliases: &'static [(&'static str, &'static str)],
    /// Properties that are not plain text.
    kinds: &'static [(&'static str, Kind)],
    /// Whether a card's model may stand as the name of its address.
    pub(crate) cards: bool,
}

impl Shape {
    const fn new(bare: &'static str, kinds: &'static [(&'static str, Kind)]) -> Shape {
        Shape { bare, aliases: &[], kinds, cards: false }
    }

    /// The proper name of a property.
    pub(crate) fn name_of<'a>(&'a self, key: Option<&'a str>) -> &'a str {
        let Some(key) = key else { return self.bare };
        self.aliases.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, name)| name)
    }

    pub(crate) fn kind_of(&self, name: &str) -> Kind {
        self.kinds.iter().find(|(known, _)| *known == name).map_or(Kind::Text, |(_, kind)| *kind)
    }
}

const DRIVE_KINDS: &[(&str, Kind)] = &[
    ("size", Kind::Size),
    ("backup", Kind::Flag),
    ("detect_zeroes", Kind::Flag),
    ("iothread", Kind::Flag),
    ("pre-enrolled-keys", Kind::Flag),
    ("replicate", Kind::Flag),
    ("ro", Kind::Flag),
    ("scsiblock", Kind::Flag),
    ("shared", Kind::Flag),
    ("snapshot", Kind::Flag),
    ("ssd", Kind::Flag),
    ("queues", Kind::Number),
];

pub(crate) static DRIVE: Shape = Shape {
    bare: "file",
    aliases: &[
        ("volume", "file"),
        ("bps_rd_length", "bps_rd_max_length"),
        ("bps_wr_length", "bps_wr_max_length"),
        ("iops_rd_length", "iops_rd_max_length"),
        ("iops_wr_length", "iops_wr_max_length"),
    ],
    kinds: DRIVE_KINDS,
    cards: false,
};

pub(crate) static NETWORK: Shape = Shape {
    bare: "model",
    aliases: &[],
    kinds: &[
        ("macaddr", Kind::AnyCase),
        ("firewall", Kind::Flag),
        ("link_down", Kind::Flag),
        ("host-tunnel", Kind::Flag),
        ("mtu", Kind::Number),
        ("queues", Kind::Number),
        ("rate", Kind::Number),
        ("tag", Kind::Number),
        ("trunks", Kind::Cpus),
    ],
    cards: true,
};

pub(crate) static ADDRESS: Shape = Shape::new("ip", &[("ip6", Kind::AnyCase), ("gw6", Kind::AnyCase)]);

pub(crate) static NUMA: Shape =
    Shape::new("cpus", &[("cpus", Kind::Cpus), ("hostnodes", Kind::Cpus), ("memory", Kind::Number)]);

pub(crate) static SMBIOS: Shape = Shape::new("uuid", &[("uuid", Kind::AnyCase), ("base64", Kind::Flag)]);

pub(crate) static CPU: Shape = Shape::new(
    "cputype",
    &[("flags", Kind::Set), ("hidden", Kind::Flag), ("phys-bits", Kind::AnyCase), ("guest-phys-bits", Kind::Number)],
);

pub(crate) static AGENT: Shape = Shape {
    bare: "enabled",
    aliases: &[("freeze-fs-on-backup", "freeze-fs"), ("guest-fsfreeze", "freeze-fs")],
    kinds: &[("enabled", Kind::Flag), ("freeze-fs", Kind::Flag), ("fstrim_cloned_disks", Kind::Flag)],
    cards: false,
};

pub(crate) static PASS_THROUGH: Shape = Shape::new(
    "host",
    &[
        ("host", Kind::Set),
        ("pcie", Kind::Flag),
        ("rombar", Kind::Flag),
        ("x-vga", Kind::Flag),
        ("legacy-igd", Kind::Flag),
        ("driver", Kind::Text),
    ],
);

pub(crate) static BOOT: Shape = Shape::new("legacy", &[]);

pub(crate) static META: Shape = Shape::new("creation-qemu", &[("ctime", Kind::Number)]);

static MEMORY: Shape = Shape::new("current", &[("current", Kind::Number)]);
static DISPLAY: Shape = Shape::new("type", &[("memory", Kind::Number)]);
static MACHINE: Shape = Shape::new("type", &[("enable-s3", Kind::Flag), ("enable-s4", Kind::Flag)]);
static WATCHDOG: Shape = Shape::new("model", &[]);
static RANDOM: Shape = Shape::new("source", &[("max_bytes", Kind::Number), ("period", Kind::Number)]);
static STARTUP: Shape = Shape::new("order", &[("order", Kind::Number), ("up", Kind::Number), ("down", Kind::Number)]);

/// Whether a drive at this key can be booted from: it is on a bus, not firmware, TPM state or left over.
pub(crate) fn is_bus(key: &str) -> bool {
    let stem = key.trim_end_matches(|letter: char| letter.is_ascii_digit());
    stem.len() < key.len() && matches!(stem, "scsi" | "virtio" | "ide" | "sata")
}

/// The family an option belongs to, if it is a property string at all.
pub(crate) fn of(key: &str) -> Option<&'static Shape> {
    let stem = key.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = stem.len() < key.len();
    Some(match (stem, is_numbered) {
        ("scsi" | "virtio" | "ide" | "sata" | "efidisk" | "tpmstate" | "unused", true) => &DRIVE,
        ("net", true) => &NETWORK,
        ("ipconfig", true) => &ADDRESS,
        ("numa", true) => &NUMA,
        ("smbios", true) => &SMBIOS,
        ("hostpci", true) => &PASS_THROUGH,
        ("rng", true) => &RANDOM,
        ("cpu", false) => &CPU,
        ("agent", false) => &AGENT,
        ("boot", false) => &BOOT,
        ("meta", false) => &META,
        ("memory", false) => &MEMORY,
        ("vga", false) => &DISPLAY,
        ("machine", false) => &MACHINE,
        ("watchdog", false) => &WATCHDOG,
        ("startup", false) => &STARTUP,
        _ => return None,
    })
}
