//! The ordered files of a commit log or a consume queue, found in one directory or several.
//!
//! File sizes are not written anywhere: they follow from the files. Stray files are passed over, as a reader must not
//! refuse what a broker's operator left behind.
//!
//! Source: `MappedFileQueue.doLoad`, `MultiPathMappedFileQueue`.
use super::name;
use super::segment::{Io, Segment};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One file: where it is, the offset of its first byte, its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Where it is.
    pub path: PathBuf,
    /// Offset of its first byte.
    pub base: u64,
    /// Bytes it had when listed.
    pub len: u64,
}

impl SegmentFile {
    /// Offset behind its last byte.
    pub fn end(&self) -> u64 {
        self.base + self.len
    }
}

/// Files in the order of their offsets.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    files: Vec<SegmentFile>,
    strays: Vec<PathBuf>,
}

impl Segments {
    /// Lists the segments of `directories`; those that do not exist hold none.
    ///
    /// # Errors
    /// [`Error::Io`] for a directory that cannot be read.
    pub fn list(directories: &[PathBuf]) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut strays = Vec::new();
        for directory in directories {
            list_one(directory, &mut files, &mut strays)?;
        }
        Ok(Self { files: files.into_values().collect(), strays })
    }

    /// In order of offset.
    pub fn files(&self) -> &[SegmentFile] {
        &self.files
    }

    /// Entries of the directories that are no segments; a 4.9.4 broker does not start beside one.
    pub fn strays(&self) -> &[PathBuf] {
        &self.strays
    }

    /// Offset of the first byte, 0 where there are no files.
    pub fn start(&self) -> u64 {
        self.files.first().map_or(0, |f| f.base)
    }

    /// Offset behind the last byte, 0 where there are no files.
    pub fn end(&self) -> u64 {
        self.files.last().map_or(0, SegmentFile::end)
    }

    /// The size that most files have: the configured one, however damaged some are.
    pub fn file_size(&self) -> Option<u64> {
        // names tell the size as well as lengths do: a file that was cut off does not count alone
        let steps = self.files.windows(2).map(|w| w[1].base - w[0].base);
        let mut counts = BTreeMap::new();
        for size in steps.chain(self.files.iter().map(|f| f.len)).filter(|size| *size > 0) {
            *counts.entry(size).or_insert(0_usize) += 1;
        }
        counts.into_iter().max_by_key(|(size, count)| (*count, *size)).map(|(size, _)| size)
    }

    /// Index of the file that holds `offset`, or `None` in a gap and outside.
    pub fn find(&self, offset: u64) -> Option<usize> {
        let after = self.files.partition_point(|f| f.base <= offset);
        let index = after.checked_sub(1)?;
        (offset < self.files[index].end()).then_some(index)
    }

    /// Opens the file at `index`.
    ///
    /// # Errors
    /// [`Error::Io`] with the path: the file may have been removed since it was listed.
    pub fn open(&self, index: usize, io: Io) -> Result<Segment> {
        Segment::open(&self.files[index].path, io)
    }
}

fn list_one(directory: &Path, files: &mut BTreeMap<u64, SegmentFile>, strays: &mut Vec<PathBuf>) -> Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| Error::io(directory, e))?,
    };
    for entry in entries {
        let path = entry.map_err(|e| Error::io(directory, e))?.path();
        let base = path.file_name().and_then(|n| n.to_str()).and_then(name::offset);
        match (base, fs::metadata(&path)) {
            (Some(base), Ok(meta)) if meta.is_file() => {
                files.insert(base, SegmentFile { path, base, len: meta.len() });
            }
            // Retention may remove a file between the listing and the look at it.
            (_, Err(e)) if e.kind() == io::ErrorKind::NotFound => {}
            _ => strays.push(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_short_file_does_not_change_the_size() {
        let dir = tempfile::tempdir().expect("dir");
        write(dir.path(), "00000000000000000000", 100);
        write(dir.path(), "00000000000000000100", 30);
        write(dir.path(), "00000000000000000200", 100);
        let segments = Segments::list(&[dir.path().into()]).expect("listed");
        assert_eq!(segments.file_size(), Some(100));
        assert_eq!(segments.find(150), None);
    }
}
