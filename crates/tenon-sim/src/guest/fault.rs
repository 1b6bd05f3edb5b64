//! What goes wrong inside a guest, and in which.

use std::time::Duration;

use tokio::time::Instant;

use crate::fault::{FaultFileError, Fields, Repeat, Tally, glob, repeat};
use crate::vm::Vm;

/// A fault for some boots.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestFaultRule {
    /// Which boots it strikes.
    pub when: GuestMatch,
    /// What goes wrong.
    pub fault: GuestFault,
}

/// Which boots a fault strikes. Everything that is given must hold; the default strikes every boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestMatch {
    /// Pattern of the VM's name: `*` stands for anything.
    pub vm: Option<String>,
    /// VM id.
    pub vmid: Option<u32>,
    /// The host it boots on.
    pub host: Option<String>,
    /// How often, among the boots for which all of the above holds.
    pub repeat: Repeat,
}

/// What goes wrong inside a guest. Times count from power on.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestFault {
    /// It takes this much longer to boot.
    BootsSlowly {
        /// How much.
        by: Duration,
    },
    /// It stands still: no agent, no kubelet, no reaction to the power button. The VM runs on.
    Hangs {
        /// When.
        after: Duration,
    },
    /// It boots, but no kubelet starts.
    NeverJoins,
    /// Its kubelet starts before the name is set: it registers under another name first, and then under its own, with the
    /// same provider id and system uuid. Nobody renews the first one's Lease.
    JoinsTwice {
        /// The name before its own is set; the own name with `-image` after it when absent.
        name: Option<String>,
    },
    /// Its power goes off, as with a kernel that panics without `panic=`, or a QEMU that is killed.
    Crashes {
        /// When.
        after: Duration,
    },
    /// It registers under another name.
    WrongName {
        /// Which; `vm-` and the VM id when absent.
        name: Option<String>,
    },
    /// It runs on, but nothing it sends arrives.
    LosesNetwork {
        /// When.
        after: Duration,
        /// For how long; for ever when absent.
        lasts: Option<Duration>,
    },
}

const FAULTS: [&str; 7] =
    ["boots-slowly", "hangs", "never-joins", "joins-twice", "crashes", "wrong-name", "loses-network"];

impl GuestFaultRule {
    /// A fault for all boots of a VM.
    pub fn of(vmid: u32, fault: GuestFault) -> Self {
        Self { when: GuestMatch { vmid: Some(vmid), ..GuestMatch::default() }, fault }
    }

    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, FaultFileError> {
        let when = GuestMatch {
            vm: fields.text("vm")?,
            vmid: fields.number("vmid", 100..=999_999_999)?,
            host: fields.text("host")?,
            repeat: repeat(fields)?,
        };
        let after = || fields.duration("after").map(Option::unwrap_or_default);
        let fault = match fields.word("fault", &FAULTS)? {
            "boots-slowly" => GuestFault::BootsSlowly { by: fields.needed_duration("by")? },
            "hangs" => GuestFault::Hangs { after: after()? },
            "never-joins" => GuestFault::NeverJoins,
            "joins-twice" => GuestFault::JoinsTwice { name: fields.text("name")? },
            "crashes" => GuestFault::Crashes { after: after()? },
            "wrong-name" => GuestFault::WrongName { name: fields.text("name")? },
            _ => GuestFault::LosesNetwork { after: after()?, lasts: fields.duration("lasts")? },
        };
        Ok(Self { when, fault })
    }

    fn matches(&self, vm: &Vm) -> bool {
        let when = &self.when;
        when.vm.as_deref().is_none_or(|pattern| glob(pattern, &vm.name()))
            && when.vmid.is_none_or(|vmid| vmid == vm.vmid)
            && when.host.as_ref().is_none_or(|host| *host == vm.host)
    }
}

/// All faults of guests, with their counts.
#[derive(Debug)]
pub(crate) struct GuestBook {
    entries: Vec<(GuestFaultRule, Tally)>,
    added: usize,
    seed: u64,
}

impl GuestBook {
    pub(crate) fn new(seed: u64, rules: &[GuestFaultRule]) -> Self {
        let mut book = Self { entries: Vec::new(), added: 0, seed };
        rules.iter().cloned().for_each(|rule| book.add(rule));
        book
    }

    pub(crate) fn add(&mut self, rule: GuestFaultRule) {
        // Numbers of their own, so that rules for calls and for guests do not share their dice.
        let tally = Tally::new(!self.seed, self.added);
        self.added += 1;
        self.entries.push((rule, tally));
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// What goes wrong with this boot.
    pub(crate) fn strike(&mut self, vm: &Vm) -> Fate {
        let struck = self.entries.iter_mut().filter(|(rule, _)| rule.matches(vm));
        let struck = struck.filter_map(|(rule, tally)| tally.strikes(&rule.when.repeat).then(|| rule.fault.clone()));
        Fate { faults: struck.collect(), power_on: Instant::now() }
    }
}

/// How a guest ends before its power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Hangs,
    Crashes,
}

/// What goes wrong with one boot.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    faults: Vec<GuestFault>,
    power_on: Instant,
}

impl Fate {
    pub(crate) fn slower_boot(&self) -> Duration {
        let by = |fault: &GuestFault| if let GuestFault::BootsSlowly { by } = fault { *by } else { Duration::ZERO };
        self.faults.iter().map(by).sum()
    }

    pub(crate) fn never_joins(&self) -> bool {
        self.faults.contains(&GuestFault::NeverJoins)
    }

    /// When and how it ends.
    pub(crate) fn ending(&self) -> Option<(Instant, Ending)> {
        let ending = |fault: &GuestFault| match fault {
            GuestFault::Hangs { after } => Some((self.power_on + *after, Ending::Hangs)),
            GuestFault::Crashes { after } => Some((self.power_on + *after, Ending::Crashes)),
            _ => None,
        };
        self.faults.iter().filter_map(ending).min_by_key(|(at, _)| *at)
    }

    /// The name it has instead of its own.
    pub(crate) fn wrong_name(&self, vmid: u32) -> Option<String> {
        self.faults.iter().find_map(|fault| match fault {
            GuestFault::WrongName { name } => Some(name.clone().unwrap_or_else(|| format!("vm-{vmid}"))),
            _ => None,
        })
    }

    /// The name it has before its own.
    pub(crate) fn first_name(&self, own: &str) -> Option<String> {
        self.faults.iter().find_map(|fault| match fault {
            GuestFault::JoinsTwice { name } => Some(name.clone().unwrap_or_else(|| format!("{own}-image"))),
            _ => None,
        })
    }

    /// When the network is lost and back, where that happens.
    fn outages(&self) -> impl Iterator<Item = (Instant, Option<Instant>)> + '_ {
        self.faults.iter().filter_map(|fault| match fault {
            GuestFault::LosesNetwork { after, lasts } => {
                let lost = self.power_on + *after;
                Some((lost, lasts.map(|lasts| lost + lasts)))
            }
            _ => None,
        })
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        let now = Instant::now();
        self.outages().any(|(lost, back)| lost <= now && back.is_none_or(|back| now < back))
    }

    /// Ends when the network is lost next.
    pub(crate) async fn network_lost(&self) {
        let now = Instant::now();
        match self.outages().map(|(lost, _)| lost).filter(|lost| now < *lost).min() {
            Some(lost) => tokio::time::sleep_until(lost).await,
            None => std::future::pending().await,
        }
    }
}
