#![allow(unsafe_code, reason = "no safe function takes a lease")]
//! Read leases of files. While a lease is held, whoever opens the file for writing or truncates it waits for its end, or
//! for `/proc/sys/fs/lease-break-time` (45 s) if that is shorter. Linux has leases; other systems do not.
use std::fs::File;
use std::sync::Arc;

/// A read lease of an open file. It ends when this value is dropped.
#[derive(Debug)]
pub struct Lease(Arc<File>);

impl Lease {
    /// Takes a lease of `file`, which must be open for reading only and [local](is_local). `None` if the file is open for
    /// writing somewhere, or belongs to another user.
    #[must_use]
    pub fn take(file: &Arc<File>) -> Option<Self> {
        system::take(file).then(|| Self(file.clone()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        system::release(&self.0);
    }
}

/// Returns whether a file is on a file system of this machine, and known to keep leases. On that of a network, other machines
/// write without asking for them.
#[must_use]
pub fn is_local(file: &File) -> bool {
    system::is_local(file)
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod system {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// Values of `f_type` for ext4, XFS, tmpfs and btrfs.
    const LOCAL: [i64; 4] = [0xEF53, 0x5846_5342, 0x0102_1994, 0x9123_683E];
    // The libc crate lacks it.
    const F_SETSIG: libc::c_int = 10;

    pub fn is_local(file: &File) -> bool {
        rustix::fs::fstatfs(file).is_ok_and(|fs| LOCAL.contains(&fs.f_type))
    }

    pub fn take(file: &File) -> bool {
        // Without a signal of our choice a wish to write sends SIGIO, which ends the process. SIGURG is ignored unless
        // someone handles it. The end of a lease sets this back.
        if !control(file, F_SETSIG, libc::SIGURG) || !control(file, libc::F_SETLEASE, libc::F_RDLCK) {
            return false;
        }
        // From here on no signal is sent at all, so that nobody's handler is called.
        let is_silent = control(file, libc::F_SETOWN, 0);
        if !is_silent {
            release(file);
        }
        is_silent
    }

    pub fn release(file: &File) {
        control(file, libc::F_SETLEASE, libc::F_UNLCK);
    }

    fn control(file: &File, command: libc::c_int, argument: libc::c_int) -> bool {
        // SAFETY: the file is open, and the commands of this module take a number and write to no memory.
        unsafe { libc::fcntl(file.as_raw_fd(), command, argument) != -1 }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod system {
    use std::fs::File;

    pub fn is_local(_: &File) -> bool {
        false
    }

    pub fn take(_: &File) -> bool {
        false
    }

    pub fn release(_: &File) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::mpsc;

    fn reader(path: &Path) -> Arc<File> {
        Arc::new(File::open(path).expect("opened"))
    }

    /// Returns whether nobody has the file open for writing, or waits for that: only then there are more leases of it.
    fn is_free_of_writers(path: &Path) -> bool {
        Lease::take(&reader(path)).is_some()
    }

    #[test]
    fn a_writer_waits_for_the_end_of_a_lease_and_no_signal_ends_the_process() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.into_temp_path();
        let reader = reader(&path);
        let Some(lease) = Lease::take(&reader) else { return };
        assert!(is_free_of_writers(&path));
        let (opened, is_open) = mpsc::channel();
        let writer = std::thread::spawn({
            let path = path.to_path_buf();
            move || {
                let file = File::options().read(true).write(true).open(path).expect("opened");
                opened.send(()).expect("the test waits");
                file
            }
        });
        while is_free_of_writers(&path) {
            std::thread::yield_now();
        }
        assert!(is_open.try_recv().is_err(), "the writer waits");
        drop(lease);
        is_open.recv().expect("the writer goes on");
        let written = writer.join().expect("no panic");
        assert!(Lease::take(&reader).is_none(), "the file is open for writing");
        drop(written);
        assert!(Lease::take(&reader).is_some());
    }

    #[test]
    fn a_lease_that_was_taken_again_and_again_leaves_nothing_behind() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.into_temp_path();
        let reader = reader(&path);
        (0..1000).for_each(|_| drop(Lease::take(&reader)));
        File::options().write(true).open(&path).expect("opened without waiting");
    }
}
