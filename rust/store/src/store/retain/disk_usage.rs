//! The usage of a store's disk.
//!
//! Source: `UtilAll.getDiskPartitionSpaceUsedPercent`.
use rmqfast_os::disk::space;
use std::path::Path;

/// Returns the usage in percent of the fullest disk of these directories, rounded up; `None` if a usage is unknown.
pub fn used_percent(directories: &[&Path]) -> Option<u8> {
    let each: Option<Vec<u8>> = directories.iter().map(|directory| percent_of(directory)).collect();
    each?.into_iter().max()
}

fn percent_of(directory: &Path) -> Option<u8> {
    let space = space(directory).ok()?;
    // Counts as `df` does.
    percent(space.total.saturating_sub(space.free), space.usable)
}

/// Returns the percentage of the usable space, without the space reserved for root.
fn percent(used: u64, usable: u64) -> Option<u8> {
    let (used, all) = (u128::from(used), u128::from(used) + u128::from(usable));
    (all > 0).then(|| (used * 100).div_ceil(all) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_are_rounded_up() {
        for (used, usable, expected) in [
            (0, 100, Some(0)),
            (1, 999, Some(1)),
            (750, 250, Some(75)),
            (751, 249, Some(76)),
            (5, 0, Some(100)),
            (0, 0, None),
        ] {
            assert_eq!(percent(used, usable), expected, "{used} {usable}");
        }
        assert_eq!(percent(u64::MAX, u64::MAX), Some(50));
    }

    #[test]
    fn a_directory_has_a_disk_and_one_that_is_not_there_has_none() {
        let dir = tempfile::tempdir().expect("dir");
        assert!(used_percent(&[dir.path()]).is_some_and(|percent| percent <= 100));
        assert_eq!(used_percent(&[dir.path(), &dir.path().join("nowhere")]), None);
    }
}
