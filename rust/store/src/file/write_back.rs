//! Restores a file that is open but whose name was removed. Its bytes exist until the file is closed.
use super::allocated::AllocatedFile;
use super::disk::{self, sync_directory};
use super::permission::create_directories;
use crate::Result;
use std::fs;
use std::path::Path;

/// Bytes copied at a time.
const STEP: u64 = 1 << 20;

/// Restores a removed file. Copies the first `len` bytes of the open `file` to `temporary`, and renames the copy to
/// the removed name. With `has_blocks` all blocks are allocated. Nobody may write to the open file any more. After an
/// error no file has the removed name.
pub fn write_back(file: &AllocatedFile, len: u64, has_blocks: bool, temporary: &Path) -> Result<()> {
    let _ = fs::remove_file(temporary);
    let new =
        if has_blocks { AllocatedFile::create(temporary, len) } else { AllocatedFile::create_sparse(temporary, len) }?;
    copy(file, &new, len).and_then(|()| new.sync()).inspect_err(|_| new.discard())?;
    if let Some(directory) = file.path().parent() {
        // The directory may have been removed together with the file.
        create_directories(directory)?;
    }
    // Renamed only when complete, so that nobody finds a partial file.
    disk::rename(temporary, file.path())?;
    // The directories of queue and topic may be new, so their names are flushed as well.
    file.path().ancestors().skip(1).take(3).try_for_each(sync_directory)
}

/// Copies the ranges that have blocks. All other ranges read as zero in both files.
fn copy(file: &AllocatedFile, new: &AllocatedFile, len: u64) -> Result<()> {
    let mut buffer = vec![0; STEP.min(len) as usize];
    for range in file.stored_ranges(len) {
        let mut at = range.start;
        while at < range.end {
            let part = &mut buffer[..STEP.min(range.end - at) as usize];
            file.read(part, at)?;
            new.write(part, at)?;
            at += part.len() as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_that_was_removed_comes_back_with_all_its_bytes() {
        let dir = tempfile::tempdir().expect("dir");
        for (name, has_blocks) in [("log/a", true), ("queue/b", false)] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            let len = 3 * STEP + 5;
            let file = AllocatedFile::create_sparse(&path, len).expect("created");
            file.write(&[7; 5000], STEP - 100).expect("written");
            file.write(b"end", len - 3).expect("written");
            let before = fs::read(&path).expect("read");
            fs::remove_dir_all(path.parent().expect("a directory")).expect("removed");
            write_back(&file, len, has_blocks, &dir.path().join("rescue")).expect("written back");
            assert!(fs::read(&path).expect("there again") == before);
            assert_eq!(path.metadata().expect("there").blocks() * 512 >= len, has_blocks);
            assert!(!dir.path().join("rescue").exists());
        }
    }

    #[test]
    fn without_room_there_is_no_half_a_file() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("a");
        let file = AllocatedFile::create(&path, 100).expect("created");
        fs::remove_file(&path).expect("removed");
        write_back(&file, 1 << 62, true, &dir.path().join("rescue")).expect_err("no such disk");
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    }
}
