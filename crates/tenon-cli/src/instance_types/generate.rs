//! `tenon instance-types generate`: a file of instance types by the rule of the built-in ones.

use std::io::Write;

use anyhow::Context as _;
use clap::Args;
use tenon_api::instance_types_file;
use tenon_model::{Reserves, SizeRule};

/// More cores, or GiB for each core, than any VM has.
const MOST: i64 = 4096;
/// More GiB of disk than any VM has: a pebibyte.
const MOST_STORAGE: u32 = 1 << 20;

/// Print instance types as JSON, for --instance-types-file: one for each number of CPUs with each amount of memory.
#[derive(Debug, Args)]
#[command(visible_alias = "g")]
pub(super) struct Generate {
    /// Numbers of CPUs, separated by commas.
    #[arg(short, long, value_name = "NUMBERS", default_value = "1,2,4", value_parser = numbers)]
    cpus: Numbers,
    /// GiB of memory for each CPU, separated by commas. They decide the family: 2 is c1, 3 t1, 4 s1, 8 m1, 16 x1, others e1.
    #[arg(short, long, value_name = "NUMBERS", default_value = "2,3,4", value_parser = numbers)]
    memfactor: Numbers,
    /// GiB of disk; 0 leaves the disk to bootDevice.size of the ProxmoxNodeClass.
    #[arg(short, long, value_name = "GIB", default_value = "30", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_STORAGE)))]
    storage: u32,
    /// Reserve CPU and memory for the kubelet and the container runtime.
    #[arg(long)]
    kubelet: bool,
    /// Reserve CPU and memory for the operating system.
    #[arg(long)]
    system: bool,
    /// Keep 100Mi of memory free, by evicting pods.
    #[arg(long)]
    eviction: bool,
}

/// Numbers of a list, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Numbers(Vec<i64>);

/// Reads a list of numbers; what is no number in it is named.
fn numbers(text: &str) -> Result<Numbers, String> {
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim) {
        let number = part.parse::<i64>().ok().filter(|number| (1..=MOST).contains(number));
        let number = number.ok_or_else(|| format!("`{part}` is not a whole number from 1 to {MOST}"))?;
        if found.contains(&number) {
            return Err(format!("{number} is given twice; give each number once"));
        }
        found.push(number);
    }
    Ok(Numbers(found))
}

impl Generate {
    fn rule(&self) -> SizeRule {
        SizeRule {
            cores: self.cpus.0.clone(),
            memory_factors: self.memfactor.0.clone(),
            storage_gib: i64::from(self.storage),
            reserves: Reserves { kubelet: self.kubelet, system: self.system, eviction: self.eviction },
        }
    }
}

pub(super) fn run(args: &Generate, out: &mut dyn Write) -> anyhow::Result<()> {
    let text = instance_types_file::write(&args.rule().instance_types());
    out.write_all(text.as_bytes()).context("cannot print the instance types")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tenon_model::{InstanceType, Overhead};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Generate,
    }

    fn generated(args: &[&str]) -> Vec<InstanceType> {
        let line = Line::try_parse_from(["tenon"].iter().chain(args)).unwrap();
        let mut out = Vec::new();
        run(&line.args, &mut out).unwrap();
        instance_types_file::read(std::str::from_utf8(&out).unwrap()).unwrap()
    }

    fn fault(args: &[&str]) -> String {
        Line::try_parse_from(["tenon"].iter().chain(args)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_generated_is_read_back_as_the_built_in_instance_types() {
        let all = ["-c", "1,2,4,8,16", "-m", "2,3,4,8", "--kubelet", "--system", "--eviction"];
        assert_eq!(generated(&all), InstanceType::built_in());
        let bare = |size: &InstanceType| InstanceType { overhead: Overhead::default(), ..size.clone() };
        let built_in: Vec<InstanceType> = InstanceType::built_in().iter().map(bare).collect();
        let plain = generated(&[]);
        assert_eq!(plain.len(), 9);
        assert!(plain.iter().all(|size| built_in.contains(size)), "{plain:?}");
    }

    #[test]
    fn a_disk_of_nothing_is_left_out() {
        let sizes = generated(&["--cpus", "3", "--memfactor", "16", "--storage", "0", "--eviction"]);
        assert_eq!((sizes.len(), sizes[0].name.as_str()), (1, "x1.3VCPU-48GB"));
        assert!(!sizes[0].capacity.names("ephemeral-storage"));
        assert_eq!(sizes[0].overhead.eviction_threshold.get("memory").to_string(), "100Mi");
    }

    #[test]
    fn what_is_no_number_is_named() {
        assert!(fault(&["-c", "1,two,4"]).contains("`two` is not a whole number from 1 to 4096"));
        assert!(fault(&["-c", "1,,4"]).contains("`` is not a whole number"));
        assert!(fault(&["-m", "2,0"]).contains("`0` is not a whole number"));
        assert!(fault(&["-m=-2"]).contains("`-2` is not a whole number"));
        assert!(fault(&["-c", "2,4,2"]).contains("2 is given twice"));
        assert!(fault(&["-s", "many"]).contains("'many'"));
    }
}
