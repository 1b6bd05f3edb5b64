//! How much memory does a guest set aside as huge pages?
//!
//! Its kernel is told by files of sysctl (pages of 2 MiB, its default) and of systemd-tmpfiles (pages of 1 GiB), whichever
//! of the folders for them they are in. When they are written on the first boot, a command applies them, or a later boot
//! does; here they hold at once.

use super::disk::Disk;

const SYSCTL: &str = "/etc/sysctl.d";
const TMPFILES: &str = "/etc/tmpfiles.d";
const SETTING: &str = "vm.nr_hugepages";
const COUNT_1GI: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";

/// Memory that is set aside, by the size of its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HugePages {
    pub(crate) bytes_2mi: u64,
    pub(crate) bytes_1gi: u64,
}

impl HugePages {
    /// What the files of a disk ask for.
    pub(crate) fn of(disk: &Disk) -> Self {
        let of_sysctl = |line: &str| {
            let (name, number) = line.split_once('=')?;
            (name.trim() == SETTING).then(|| number.trim().parse::<u64>().ok())?
        };
        // `w PATH - - - - ARGUMENT`
        let of_tmpfiles = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.first() == Some(&"w") && words.get(1) == Some(&COUNT_1GI)).then(|| words.get(6)?.parse().ok())?
        };
        Self { bytes_2mi: last(disk, SYSCTL, of_sysctl) << 21, bytes_1gi: last(disk, TMPFILES, of_tmpfiles) << 30 }
    }

    /// All of it. A kernel sets aside no more than there is.
    pub(crate) fn within(self, memory_bytes: u64) -> Self {
        let bytes_1gi = self.bytes_1gi.min(memory_bytes >> 30 << 30);
        Self { bytes_1gi, bytes_2mi: self.bytes_2mi.min((memory_bytes - bytes_1gi) >> 21 << 21) }
    }
}

/// The last number that a file of a folder says: files are read in the order of their names.
fn last(disk: &Disk, folder: &str, read: impl Fn(&str) -> Option<u64>) -> u64 {
    let texts = disk.folder(folder).filter(|(name, _)| name.ends_with(".conf")).filter_map(|(_, path)| disk.text(path));
    texts.flat_map(str::lines).filter_map(read).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::disk::File;
    use super::*;

    #[test]
    fn what_the_files_of_the_kernel_say_is_set_aside() {
        let mut disk = Disk::from_image("a");
        assert_eq!(HugePages::of(&disk), HugePages::default());
        disk.write("/etc/sysctl.d/10-other.conf", File::public("vm.nr_hugepages=1\nnet.core.somaxconn = 7\n"));
        disk.write("/etc/sysctl.d/99-hugepages.conf", File::public("vm.nr_hugepages = 256\n"));
        disk.write("/etc/sysctl.d/readme", File::public("vm.nr_hugepages = 9\n"));
        disk.write("/etc/tmpfiles.d/99-hugepages.conf", File::public(format!("w {COUNT_1GI} - - - - 2\n")));
        assert_eq!(HugePages::of(&disk), HugePages { bytes_2mi: 512 << 20, bytes_1gi: 2 << 30 });
    }

    #[test]
    fn no_more_is_set_aside_than_there_is() {
        let wanted = HugePages { bytes_2mi: 4 << 30, bytes_1gi: 2 << 30 };
        assert_eq!(wanted.within(3 << 30), HugePages { bytes_2mi: 1 << 30, bytes_1gi: 2 << 30 });
        assert_eq!(wanted.within(1 << 20), HugePages::default());
    }
}
