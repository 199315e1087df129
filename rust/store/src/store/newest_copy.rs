//! Which directory is the copy of a broker: a mirror that cannot go on with one begins another beside it.
use std::path::{Path, PathBuf};

/// The directory of a copy, or of the last one that was begun anew beside it, `DIR.2`.
pub fn newest_copy(directory: &Path) -> PathBuf {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else { return directory.to_owned() };
    let first = format!("{}.", name.to_string_lossy());
    let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let beside = std::fs::read_dir(here).into_iter().flatten().flatten();
    let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |name: &str| name.strip_prefix(&first).filter(digits)?.parse::<u32>().ok();
    let last = beside.filter(|entry| entry.path().is_dir());
    let last = last.filter_map(|entry| number(&entry.file_name().to_string_lossy())).max();
    last.map_or_else(|| directory.to_owned(), |last| parent.join(format!("{first}{last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_copy_is_that_of_the_largest_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let copy = directory.path().join("broker-a");
        assert_eq!(newest_copy(&copy), copy);
        for name in
            ["broker-a", "broker-a.2", "broker-a.10", "broker-a.old", "broker-a.x.11", "broker-a.+12", "broker-b.13"]
        {
            std::fs::create_dir(directory.path().join(name)).expect("made");
        }
        std::fs::write(directory.path().join("broker-a.14"), "").expect("written");
        assert_eq!(newest_copy(&copy), directory.path().join("broker-a.10"));
        assert_eq!(newest_copy(Path::new("broker-a")), Path::new("broker-a"));
    }
}
