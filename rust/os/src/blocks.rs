//! The blocks of a file: which of its bytes have some, and room for bytes to come.
use std::fs::File;
use std::io;
use std::ops::Range;

/// `f_type` of ext4, XFS and tmpfs, where a write to an allocated block finds room. Others may write to a copy.
#[cfg(target_os = "linux")]
const KEEPS_BLOCKS: [i64; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];

/// Finds room on the disk for `len` bytes at `at`, which stay what they are; false where the file system, or this operating
/// system, has no call for it.
///
/// # Errors
/// What the operating system says, as for a full disk; some of the bytes may have room then.
pub fn allocate(file: &File, at: u64, len: u64) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return by_mode(file, rustix::fs::FallocateFlags::empty(), at, len);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, at);
        Ok(len == 0)
    }
}

/// Makes `len` bytes from `at` zero, and gives back the blocks that hold nothing else; false as of [`allocate`].
///
/// # Errors
/// What the operating system says; any of the bytes may be zero then.
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
            Err(Errno::INTR) => {}
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(false),
            done => return done.map(|()| true).map_err(io::Error::from),
        }
    }
}

/// Returns the parts from `from` to `end` that the file system stores; all of it where it does not know its holes.
///
/// Ask before you read any of it: of what is read ahead, blocks that were never written count as stored from then on, and who asked
/// between two reads would read all of the file.
pub fn stored_ranges(file: &File, from: u64, end: u64) -> Vec<Range<u64>> {
    let mut stored = Vec::new();
    let mut at = next_stored(file, from, end);
    while at < end {
        let hole = next_hole(file, at).map_or(end, |hole| hole.clamp(at, end));
        // where the file was cut off meanwhile nothing is behind
        if hole == at {
            break;
        }
        stored.push(at..hole);
        at = next_stored(file, hole, end);
    }
    stored
}

/// Start of the next stored bytes from `at` on: `end` where there are none, `at` where the file system does not know.
pub fn next_stored(file: &File, at: u64, end: u64) -> u64 {
    next_data(file, at).map_or(at, |next| next.unwrap_or(end).clamp(at, end.max(at)))
}

/// Start of the next stored bytes from `at` on; `None` where there are none.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] or another where the file system does not know its holes, or is not to be believed.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    #[cfg(target_os = "linux")]
    return match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Ok(next) => Ok(Some(next)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    };
    #[cfg(not(target_os = "linux"))]
    return unknown(file, at);
}

/// Start of the next hole from `at` on, or the end of the file.
///
/// # Errors
/// As of [`next_data`]; also where the file ends before `at`.
fn next_hole(file: &File, at: u64) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(at))?);
    #[cfg(not(target_os = "linux"))]
    return unknown(file, at);
}

/// APFS tells of holes where there is data that was just written.
#[cfg(not(target_os = "linux"))]
fn unknown<T>(_file: &File, _at: u64) -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns whether the file system writes to the blocks that were allocated, and to no others.
///
/// # Errors
/// What the operating system says.
pub fn keeps_blocks(file: &File) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return Ok(KEEPS_BLOCKS.contains(&rustix::fs::fstatfs(file)?.f_type));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        Ok(false)
    }
}
