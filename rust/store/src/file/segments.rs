//! The files of a commit log or a consume queue, in the order of their offsets. They may be in several directories.
//!
//! No file contains the configured file size, so it is inferred from the files. Stray files are ignored, since an operator may have left
//! them. A dead link with the name of a segment is listed with a guessed length, and fails when it is opened.
//!
//! Source: `MappedFileQueue.doLoad`, `MultiPathMappedFileQueue`.
use super::name;
use super::place::{self, Place};
use super::segment::{Io, Segment};
use crate::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub path: PathBuf,
    pub base: u64,
    pub len: u64,
    /// Whether the path is a dead link or a directory, so that the bytes cannot be read.
    pub is_missing: bool,
}

impl SegmentFile {
    pub fn end(&self) -> u64 {
        self.base + self.len
    }
}

#[derive(Clone, Debug, Default)]
pub struct Segments {
    files: Vec<SegmentFile>,
    strays: Vec<PathBuf>,
}

impl Segments {
    /// Lists the segments of `directories`. A directory that does not exist counts as empty.
    pub fn list(directories: &[PathBuf]) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut strays = Vec::new();
        for directory in directories {
            list_one(directory, &mut files, &mut strays)?;
        }
        let mut segments = Self { files: files.into_values().collect(), strays };
        segments.take_directories()?;
        segments.pass_over_misplaced();
        segments.guess_lengths();
        // Retention removes files from the front. If it did while they were listed, some are listed and others not.
        if segments.has_gap() && segments.has_lost_front() {
            return Self::list(directories);
        }
        Ok(segments)
    }

    fn has_gap(&self) -> bool {
        self.files.windows(2).any(|files| files[0].end() < files[1].base)
    }

    fn has_lost_front(&self) -> bool {
        self.files.first().is_some_and(|file| matches!(Place::look(&file.path), Ok(Place::Absent)))
    }

    /// Counts a directory with the name of a segment as a missing file, unless its offset is behind all files.
    fn take_directories(&mut self) -> Result<()> {
        let last = self.files.last().map_or(u64::MAX, |file| file.base);
        for path in std::mem::take(&mut self.strays) {
            let base = path.file_name().and_then(|name| name.to_str()).and_then(name::offset);
            let base = base.filter(|base| *base < last && self.files.iter().all(|file| file.base != *base));
            match base {
                Some(base) if place::is_directory(&path)? => {
                    self.files.push(SegmentFile { path, base, len: 0, is_missing: true });
                }
                _ => self.strays.push(path),
            }
        }
        self.files.sort_by_key(|file| file.base);
        Ok(())
    }

    /// Counts a file as stray if it begins inside the file before it, at an offset where no segment can begin.
    fn pass_over_misplaced(&mut self) {
        let size = self.file_size().unwrap_or(1);
        let mut end = 0;
        let files = std::mem::take(&mut self.files);
        for file in files {
            if file.base < end && !file.base.is_multiple_of(size) {
                self.strays.push(file.path);
                continue;
            }
            end = end.max(file.base + size.min(file.len));
            self.files.push(file);
        }
    }

    /// Guesses the lengths of missing files: up to the next file, or the length of most files. The length is at least one byte, otherwise
    /// the file would count as never written.
    fn guess_lengths(&mut self) {
        if self.first_without_file().is_none() {
            return;
        }
        let size = self.file_size().unwrap_or(1);
        let nexts: Vec<_> = self.files.iter().skip(1).map(|file| file.base).collect();
        for (index, file) in self.files.iter_mut().enumerate().filter(|(_, file)| file.is_missing) {
            file.len = nexts.get(index).map_or(size, |next| (next - file.base).min(size.max(1)));
        }
    }

    pub fn first_without_file(&self) -> Option<&Path> {
        self.files.iter().find(|file| file.is_missing).map(|file| &*file.path)
    }

    pub fn files(&self) -> &[SegmentFile] {
        &self.files
    }

    /// Returns the entries of the directories that are not segments. A 4.9.4 broker does not start if there are such files.
    pub fn strays(&self) -> &[PathBuf] {
        &self.strays
    }

    /// Returns the paths to remove with the queue: stray files that have the name of a segment, then all segments.
    pub fn paths_to_remove(&self) -> impl Iterator<Item = &Path> {
        let is_segment = |path: &&PathBuf| {
            path.is_file() && path.file_name().and_then(|name| name.to_str()).and_then(name::offset).is_some()
        };
        let strays = self.strays.iter().filter(is_segment);
        strays.chain(self.files.iter().map(|file| &file.path)).map(PathBuf::as_path)
    }

    pub fn start(&self) -> u64 {
        self.files.first().map_or(0, |f| f.base)
    }

    pub fn end(&self) -> u64 {
        self.files.last().map_or(0, SegmentFile::end)
    }

    /// Returns the size of most files, or `None` without files. This is the configured size, even if some files are
    /// damaged.
    pub fn file_size(&self) -> Option<u64> {
        // Count the distances between names as well as lengths, since a file may have been truncated.
        let steps: Vec<_> = self.files.windows(2).map(|w| w[1].base - w[0].base).collect();
        let lens = self.files.iter().filter(|f| !f.is_missing).map(|f| f.len);
        let mut counts = BTreeMap::new();
        for size in steps.iter().copied().chain(lens).filter(|size| *size > 0) {
            *counts.entry(size).or_insert(0_usize) += 1;
        }
        // On a tie the names decide: a file that is longer than the distance would hide the next file.
        counts.into_iter().max_by_key(|(size, count)| (*count, steps.contains(size), *size)).map(|(size, _)| size)
    }

    pub fn find(&self, offset: u64) -> Option<usize> {
        let after = self.files.partition_point(|f| f.base <= offset);
        let index = after.checked_sub(1)?;
        (offset < self.files[index].end()).then_some(index)
    }

    /// Opens the file at `index`. Fails if the file was removed since the listing.
    pub fn open(&self, index: usize, io: Io) -> Result<Segment> {
        Segment::open(&self.files[index].path, io)
    }
}

fn list_one(directory: &Path, files: &mut BTreeMap<u64, SegmentFile>, strays: &mut Vec<PathBuf>) -> Result<()> {
    for entry in place::entries(directory)? {
        let place = entry.look();
        let path = entry.path;
        let base = path.file_name().and_then(|n| n.to_str()).and_then(name::offset);
        match (base, place) {
            (Some(base), Ok(Place::There(meta))) if meta.is_file() => {
                files.insert(base, SegmentFile { path, base, len: meta.len(), is_missing: false });
            }
            (Some(base), Ok(Place::DeadLink)) => {
                // A file of the same name in another directory takes precedence.
                files.entry(base).or_insert(SegmentFile { path, base, len: 0, is_missing: true });
            }
            (Some(_), Err(error)) => return Err(error),
            // Retention may have removed the file since the listing.
            (_, Ok(Place::Absent)) => {}
            _ => strays.push(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn write(dir: &Path, name: &str, len: usize) {
        fs::write(dir.join(name), vec![0; len]).expect("written");
    }

    #[test]
    fn files_of_several_directories_are_one_queue() {
        let (a, b) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        write(a.path(), "00000000000000000000", 100);
        write(b.path(), "00000000000000000100", 100);
        write(a.path(), "00000000000000000200", 100);
        write(a.path(), "notes.txt", 5);
        let gone = a.path().join("nowhere");
        let segments = Segments::list(&[a.path().into(), b.path().into(), gone]).expect("listed");
        assert_eq!(segments.files().iter().map(|f| f.base).collect::<Vec<_>>(), [0, 100, 200]);
        assert_eq!(segments.strays().len(), 1);
        assert_eq!((segments.start(), segments.end(), segments.file_size()), (0, 300, Some(100)));
        assert_eq!([0, 99, 100, 299, 300].map(|o| segments.find(o)), [Some(0), Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn a_listing_from_which_files_went_is_told_from_a_gap() {
        let dir = tempfile::tempdir().expect("dir");
        for name in ["00000000000000000000", "00000000000000000100", "00000000000000000200", "00000000000000000300"] {
            write(dir.path(), name, 100);
        }
        let whole = Segments::list(&[dir.path().into()]).expect("listed");
        fs::remove_file(dir.path().join("00000000000000000100")).expect("removed");
        let gap = Segments::list(&[dir.path().into()]).expect("listed");
        assert_eq!(
            [&whole, &gap].map(|segments| (segments.has_gap(), segments.has_lost_front())),
            [(false, false), (true, false)]
        );
        fs::remove_file(dir.path().join("00000000000000000000")).expect("removed");
        assert!(gap.has_gap() && gap.has_lost_front());
        assert_eq!(Segments::list(&[dir.path().into()]).expect("listed").start(), 200);
    }

    #[test]
    fn a_short_file_does_not_change_the_size() {
        let dir = tempfile::tempdir().expect("dir");
        write(dir.path(), "00000000000000000000", 100);
        write(dir.path(), "00000000000000000100", 30);
        write(dir.path(), "00000000000000000200", 100);
        let segments = Segments::list(&[dir.path().into()]).expect("listed");
        assert_eq!(segments.file_size(), Some(100));
        assert_eq!(segments.find(150), None);
    }

    #[test]
    fn a_long_file_hides_no_other_one() {
        let dir = tempfile::tempdir().expect("dir");
        write(dir.path(), "00000000000000000000", 0);
        write(dir.path(), "00000000000000000100", 130);
        let segments = Segments::list(&[dir.path().into()]).expect("listed");
        assert_eq!((segments.file_size(), segments.strays().len()), (Some(100), 0));
    }

    #[test]
    fn a_link_that_leads_nowhere_keeps_its_place_among_the_files() {
        let dir = tempfile::tempdir().expect("dir");
        let dead = |name: &str| symlink(dir.path().join("not-mounted"), dir.path().join(name)).expect("linked");
        let list = || Segments::list(&[dir.path().into()]).expect("listed");
        dead("00000000000000000000");
        assert_eq!((list().start(), list().end(), list().file_size()), (0, 1, None));
        write(dir.path(), "00000000000000000100", 100);
        dead("00000000000000000200");
        let segments = list();
        assert_eq!((segments.start(), segments.end(), segments.file_size()), (0, 300, Some(100)));
        assert_eq!(segments.first_without_file(), Some(&*dir.path().join("00000000000000000000")));
        for index in [0, 2] {
            assert!(matches!(segments.open(index, Io::Pread), Err(Error::Corrupt { .. })));
        }
        fs::remove_file(dir.path().join("00000000000000000000")).expect("removed");
        assert!(segments.open(0, Io::Pread).expect_err("gone").is_not_found());
    }

    #[test]
    fn a_file_that_a_longer_one_hides_is_removed_with_its_queue_and_others_stay() {
        let dir = tempfile::tempdir().expect("dir");
        for base in ["00000000000000000000", "00000000000000000100"] {
            write(dir.path(), base, 150);
        }
        write(dir.path(), "notes.txt", 5);
        let segments = Segments::list(&[dir.path().into()]).expect("listed");
        assert_eq!(segments.files().iter().map(|file| file.base).collect::<Vec<_>>(), [0]);
        segments.paths_to_remove().try_for_each(crate::file::disk::remove_file).expect("removed");
        let left = fs::read_dir(dir.path()).expect("listed").map(|entry| entry.expect("a file").file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["notes.txt"]);
    }
}
