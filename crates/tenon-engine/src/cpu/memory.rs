//! How much of a VM's memory lies on each of its NUMA nodes? As much as it has CPUs there, as far as there is room; all of it
//! together is what the VM has, to the MiB, or Proxmox does not start it.

/// What a NUMA node gives a VM in CPUs, and could give in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) cpus: u64,
    pub(super) memory_mib: u64,
}

/// The memory of each; nothing if they have too little together. None is without any.
pub(super) fn split(memory_mib: u64, shares: &[Share]) -> Option<Vec<u64>> {
    let cpus: u64 = shares.iter().map(|share| share.cpus).sum();
    let rest = memory_mib.checked_sub(shares.len() as u64)?;
    let given = |share: &Share| {
        let fair = u128::from(rest) * u128::from(share.cpus) / u128::from(cpus.max(1));
        Some(1 + u64::try_from(fair).unwrap_or(u64::MAX).min(share.memory_mib.checked_sub(1)?))
    };
    let mut given: Vec<u64> = shares.iter().map(given).collect::<Option<_>>()?;
    let mut left = memory_mib.checked_sub(given.iter().sum())?;
    for (given, share) in given.iter_mut().zip(shares) {
        let more = left.min(share.memory_mib - *given);
        *given += more;
        left -= more;
    }
    (left == 0).then_some(given)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(of: &[(u64, u64)]) -> Vec<Share> {
        of.iter().map(|(cpus, memory_mib)| Share { cpus: *cpus, memory_mib: *memory_mib }).collect()
    }

    #[test]
    fn memory_follows_cpus_as_far_as_there_is_room() {
        assert_eq!(split(4096, &shares(&[(2, 8192), (2, 8192)])), Some(vec![2048, 2048]));
        assert_eq!(split(4096, &shares(&[(2, 1000), (2, 8192)])), Some(vec![1000, 3096]));
        assert_eq!(split(4096, &shares(&[(2, 1000), (2, 3095)])), None);
        assert_eq!(split(7, &shares(&[(1, 7)])), Some(vec![7]));
        assert_eq!(split(1, &shares(&[(1, 7), (1, 7)])), None);
    }

    proptest! {
        #[test]
        fn the_sum_is_exact_and_nobody_gives_more_than_it_has(
            memory in 1_u64..100_000, of in prop::collection::vec((1_u64..64, 1_u64..50_000), 1..8),
        ) {
            let room: u64 = of.iter().map(|(_, memory)| memory).sum();
            let found = split(memory, &shares(&of));
            prop_assert_eq!(found.is_some(), memory >= of.len() as u64 && memory <= room);
            if let Some(found) = found {
                prop_assert_eq!(found.iter().sum::<u64>(), memory);
                prop_assert!(found.iter().zip(&of).all(|(given, (_, room))| (1..=*room).contains(given)));
            }
        }
    }
}
