//! Blocks of a file. Tells which bytes the file system stores, and allocates blocks.
use std::fs::File;
use std::io;
use std::ops::Range;

/// Values of `f_type` for ext4, XFS and tmpfs, which write into allocated blocks in place. Other file systems may
/// write to new blocks and find the disk full.
#[cfg(target_os = "linux")]
const KEEPS_BLOCKS: [i64; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];

/// Allocates blocks for `len` bytes at `at` without changing them. Returns false if the file system or the operating system
/// does not support this. Fails with the error of the operating system, for example for a full disk. After an error some of
/// the blocks may be allocated.
pub fn allocate(file: &File, at: u64, len: u64) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return by_mode(file, rustix::fs::FallocateFlags::empty(), at, len);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, at);
        Ok(len == 0)
    }
}

/// Zeroes `len` bytes at `at` and frees the blocks within. Returns false if this is not supported. Fails with the error of the
/// operating system. After an error any of the bytes may be zero.
pub fn punch(file: &File, at: u64, len: u64) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return {
        use rustix::fs::FallocateFlags;
        by_mode(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len)
    };
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, at);
        Ok(len == 0)
    }
}

#[cfg(target_os = "linux")]
fn by_mode(file: &File, mode: rustix::fs::FallocateFlags, at: u64, len: u64) -> io::Result<bool> {
    use rustix::io::Errno;
    if len == 0 {
        return Ok(true);
    }
    loop {
        match rustix::fs::fallocate(file, mode, at, len) {
            // a signal interrupted the call, so it is repeated
            Err(Errno::INTR) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(false),
            done => return done.map(|()| true).map_err(io::Error::from),
        }
    }
}

/// Returns the ranges between `from` and `end` that the file system stores. Returns the whole range if the file
/// system does not report holes.
///
/// Must be called before the file is read. Blocks that the system has read ahead count as stored, so after reads the
/// result may be the whole file.
pub fn stored_ranges(file: &File, from: u64, end: u64) -> Vec<Range<u64>> {
    let mut stored = Vec::new();
    let mut at = next_stored(file, from, end);
    while at < end {
        let hole = next_hole(file, at).map_or(end, |hole| hole.clamp(at, end));
        // the file was truncated meanwhile
        if hole == at {
            break;
        }
        stored.push(at..hole);
        at = next_stored(file, hole, end);
    }
    stored
}

/// Returns the position of the next stored byte at or behind `at`; `end` if there is none. Returns `at` if the file
/// system does not report holes.
pub fn next_stored(file: &File, at: u64, end: u64) -> u64 {
    next_data(file, at).map_or(at, |next| next.unwrap_or(end).clamp(at, end.max(at)))
}

/// Returns the position of the next stored byte at or behind `at`, or `None` if there is none. Fails with
/// [`io::ErrorKind::Unsupported`] or another error if the file system does not report holes, or reports them wrongly.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    #[cfg(target_os = "linux")]
    return match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Ok(next) => Ok(Some(next)),
        // the rest of the file is a hole, or `at` is behind its end
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    };
    #[cfg(not(target_os = "linux"))]
    return unknown(file, at);
}

/// Returns the position of the next hole at or behind `at`, or the end of the file. Fails like [`next_data`], and if the file
/// ends before `at`.
fn next_hole(file: &File, at: u64) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(at))?);
    #[cfg(not(target_os = "linux"))]
    return unknown(file, at);
}

/// Fails with `Unsupported`, because APFS reports holes in places that were just written.
#[cfg(not(target_os = "linux"))]
fn unknown<T>(_file: &File, _at: u64) -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns whether the file system writes in place to allocated blocks.
pub fn keeps_blocks(file: &File) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return Ok(KEEPS_BLOCKS.contains(&rustix::fs::fstatfs(file)?.f_type));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        Ok(false)
    }
}
