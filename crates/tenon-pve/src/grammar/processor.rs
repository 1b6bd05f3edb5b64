//! A VM's processors: their model (`cpu`), their places (`affinity`), and the memory beside them (`numaN`).

use std::fmt;
use std::str::FromStr;

use super::option_type;
use super::shape::{CPU, NUMA};
use crate::properties::PropertiesError;

option_type!(
    /// The model of a VM's processors: `host`, `cputype=x86-64-v3,flags=+aes;-pcid`.
    Cpu,
    CPU
);

impl Cpu {
    /// The model's name.
    pub fn model(&self) -> Option<&str> {
        self.get("cputype")
    }

    /// Flags that are switched on (`+aes`) and off (`-pcid`).
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.get("flags").into_iter().flat_map(|flags| flags.split(';')).filter(|flag| !flag.is_empty())
    }
}

option_type!(
    /// One node of a VM's memory: `cpus=0-3,hostnodes=0,memory=4096,policy=bind`.
    NumaNode,
    NUMA
);

impl NumaNode {
    /// The VM's processors that are near it.
    pub fn cpus(&self) -> Option<CpuSet> {
        self.get("cpus")?.parse().ok()
    }

    /// The host's nodes it is taken from.
    pub fn host_nodes(&self) -> Option<CpuSet> {
        self.get("hostnodes")?.parse().ok()
    }

    /// Its size in MiB.
    pub fn memory_mib(&self) -> Option<u64> {
        self.get("memory")?.parse().ok()
    }

    /// Sets a property where it stands, or at the end.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertiesError> {
        self.0.set(name, value)
    }
}

/// Numbers of processors or nodes: `0-3,8`. Two are equal if they have the same numbers in them, however it is written.
///
/// Invariant: ranges are sorted, do not touch each other, and none is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSet {
    ranges: Vec<(u32, u32)>,
}

impl CpuSet {
    /// The numbers, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// As `affinity` has it: divided by commas. Inside a property string it is semicolons, which [`fmt::Display`] prints.
    pub fn with_commas(&self) -> String {
        self.to_string().replace(';', ",")
    }

    fn normal(mut ranges: Vec<(u32, u32)>) -> CpuSet {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        CpuSet { ranges: merged }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> CpuSet {
        CpuSet::normal(numbers.into_iter().map(|number| (number, number)).collect())
    }
}

impl FromStr for CpuSet {
    type Err = PropertiesError;

    fn from_str(text: &str) -> Result<CpuSet, PropertiesError> {
        let number = |word: &str| word.trim().parse::<u32>().ok();
        let range = |word: &str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last)
        };
        let ranges = text.split([',', ';']).map(range).collect::<Option<Vec<_>>>();
        ranges.map(CpuSet::normal).ok_or_else(|| PropertiesError::refusing(text))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { ";" };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_equal_however_they_are_written() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        assert_eq!(set("0-3,8"), set("8;3,0;1-2"));
        assert_eq!(set("0-3,8").to_string(), "0-3;8");
        assert_eq!(set("8,0-3").with_commas(), "0-3,8");
        assert_eq!((set("0-3,8").count(), (0..4).chain([8]).collect::<CpuSet>()), (5, set("0-3,8")));
        // Ranges are not counted out, so a huge one costs nothing.
        assert_eq!(set("0-4294967295").count(), 1 << 32);
        for text in ["", "a", "3-1", "1-", "-1", "1,,2", "1-2-3"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_processor_and_a_memory_node_are_read() {
        let cpu: Cpu = "x86-64-v3,flags=+aes;-pcid".parse().unwrap();
        assert_eq!((cpu.model(), cpu.flags().collect::<Vec<_>>()), (Some("x86-64-v3"), vec!["+aes", "-pcid"]));
        let node: NumaNode = "cpus=0-1,hostnodes=0,memory=256,policy=bind".parse().unwrap();
        assert_eq!((node.cpus().unwrap().count(), node.memory_mib()), (2, Some(256)));
        assert_eq!(node.host_nodes(), "0".parse().ok());
    }
}
