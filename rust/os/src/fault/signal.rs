#![allow(unsafe_code, reason = "a handler of signals, and a map in place of another, cannot be said in safe Rust")]
//! An access to a page that no longer exists raises SIGBUS, which would end the process. This handler maps zeroes
//! over the missing pages and records the first of them. The code that read or wrote there then checks this position
//! and fails. Other faults are passed to the previous handler, such as Python's `faulthandler`. Only maps of stores
//! that this process has locked are guarded. A process that only reads stores gets no handler.
//!
//! The handler may run at any instruction, so it takes no lock and allocates nothing. It searches a table of atomics.
//! See `docs/decisions/0012-guarded-maps.md`.
use crate::pages;
use std::io;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

#[cfg(not(target_vendor = "apple"))]
use libc::__errno_location as errno_place;
#[cfg(target_vendor = "apple")]
use libc::__error as errno_place;

const CHUNK: usize = 1024;
// More maps than a process may have (`vm.max_map_count`).
const CHUNKS: usize = 64;
// Value of `lost_from` if no byte is lost.
const NONE: usize = usize::MAX;

static TABLE: [OnceLock<Box<[Slot]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static OWNER: Mutex<Owner> = Mutex::new(Owner { free: Vec::new(), used: 0, earlier: Vec::new() });
// Receives foreign faults: the handler that was installed when ours was last installed over it.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());
// Receives signals sent by a process: the handler that was installed before ours, the first time.
static FIRST: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// A mapped range of addresses. Its version is odd while the range is being changed, so that the handler never uses a
/// half-changed slot.
#[derive(Debug, Default)]
struct Slot {
    version: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    is_writable: AtomicBool,
    lost_from: AtomicUsize,
}

/// State behind a lock. The handler never uses it.
struct Owner {
    free: Vec<usize>,
    used: usize,
    /// Handlers that were replaced. They are kept until the process ends, because our handler may be about to call
    /// one of them.
    earlier: Vec<&'static mut libc::sigaction>,
}

/// Guards a mapped file until the guard is dropped. The guard must be dropped before the file is unmapped.
#[derive(Debug)]
pub struct Guard {
    number: usize,
}

impl Guard {
    /// Guards the map of `len` bytes at `start`. Fails with the error of the operating system for the handler;
    /// [`io::ErrorKind::OutOfMemory`] for more maps than a process may have.
    pub fn new(start: *const u8, len: usize, is_writable: bool) -> io::Result<Self> {
        let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        owner.come_first()?;
        let number = owner.free.pop().unwrap_or(owner.used);
        if number == CHUNK * CHUNKS {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        owner.used = owner.used.max(number + 1);
        TABLE[number / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect());
        let guard = Self { number };
        guard.change(start as usize, len, is_writable);
        Ok(guard)
    }

    #[inline]
    pub fn is_lost(&self) -> bool {
        self.lost_from() != NONE
    }

    /// Returns the position of the first missing byte that an access has hit; `usize::MAX` if there was no such access.
    #[inline]
    pub fn lost_from(&self) -> usize {
        slot(self.number).map_or(NONE, |slot| slot.lost_from.load(Ordering::Relaxed))
    }

    fn change(&self, start: usize, len: usize, is_writable: bool) {
        let Some(slot) = slot(self.number) else { return };
        slot.version.fetch_add(1, Ordering::SeqCst);
        slot.start.store(start, Ordering::SeqCst);
        slot.len.store(len, Ordering::SeqCst);
        slot.is_writable.store(is_writable, Ordering::SeqCst);
        slot.lost_from.store(NONE, Ordering::SeqCst);
        slot.version.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.change(0, 0, false);
        OWNER.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.number);
    }
}

/// Installs the handler again if another handler has replaced it. Does nothing if no map is guarded.
pub fn come_first() {
    let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    // a process that guards no map gets no handler
    if owner.used > owner.free.len() {
        let _ = owner.come_first();
    }
}

impl Owner {
    fn come_first(&mut self) -> io::Result<()> {
        // caches the page size, as the handler must not ask for it
        pages::size();
        let there = action_now()?;
        if there.sa_sigaction == on_fault as *const () as usize {
            return Ok(());
        }
        let entry = match self.earlier.iter().position(|earlier| is_same(earlier, &there)) {
            Some(at) => &mut *self.earlier[at] as *mut libc::sigaction,
            None => {
                let handler = Box::leak(Box::new(there));
                let address = handler as *mut libc::sigaction;
                self.earlier.push(handler);
                address
            }
        };
        let _ = FIRST.compare_exchange(null_mut(), entry, Ordering::SeqCst, Ordering::SeqCst);
        BEFORE.store(entry, Ordering::SeqCst);
        // SAFETY: all zero is an action without flags; the two fields are set before it is used.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the handler does what one may do, see there; the old action is not asked for.
        match unsafe { libc::sigaction(libc::SIGBUS, &ours, null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn action_now() -> io::Result<libc::sigaction> {
    let mut there = MaybeUninit::zeroed();
    // SAFETY: without a new action it only writes the one that is there, for which there is room.
    match unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), there.as_mut_ptr()) } {
        // SAFETY: it was written; all zero would be one, too.
        0 => Ok(unsafe { there.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn is_same(one: &libc::sigaction, other: &libc::sigaction) -> bool {
    (one.sa_sigaction, one.sa_flags) == (other.sa_sigaction, other.sa_flags)
}

#[inline]
fn slot(number: usize) -> Option<&'static Slot> {
    TABLE[number / CHUNK].get()?.get(number % CHUNK)
}

/// The signal handler. It only uses functions that are safe in a signal handler: atomics, `mmap`, `sigaction`,
/// `raise`, and the previous handler.
extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: a thread has its own errno, and the operating system gives a whole `siginfo_t` with SA_SIGINFO.
    let (errno, is_fault, address) = unsafe { (*errno_place(), is_fault((*info).si_code), (*info).si_addr()) };
    // a signal sent by a process has no address
    let is_healed = is_fault && heal(address as usize);
    // SAFETY: as above.
    unsafe { *errno_place() = errno };
    if !is_healed {
        let before = if is_fault { &BEFORE } else { &FIRST }.load(Ordering::SeqCst);
        hand_on(before, is_fault, (signal, info, context));
    }
}

/// Returns whether the processor raised the signal because of a fault. Otherwise a process has sent the signal.
fn is_fault(code: libc::c_int) -> bool {
    // on macOS, codes of sent signals are above 0 too
    if cfg!(target_vendor = "apple") { (1..=3).contains(&code) } else { code > 0 }
}

/// Maps zeroes from the page of `address` to the end of its guarded range, and records the position. Returns false for
/// an address outside of guarded ranges.
fn heal(address: usize) -> bool {
    let page = address & !(pages::size() - 1);
    for slot in TABLE.iter().map_while(OnceLock::get).flatten() {
        let version = slot.version.load(Ordering::SeqCst);
        let (start, len) = (slot.start.load(Ordering::SeqCst), slot.len.load(Ordering::SeqCst));
        let is_writable = slot.is_writable.load(Ordering::SeqCst);
        let is_whole = version.is_multiple_of(2) && slot.version.load(Ordering::SeqCst) == version;
        if !is_whole || !(start..start + len).contains(&address) {
            continue;
        }
        // the thread that faulted holds the map, so it is not unmapped meanwhile
        slot.lost_from.fetch_min(page - start, Ordering::SeqCst);
        // the whole rest, or if that fails this page alone, which is enough to continue
        return zeroes(page, start + len - page, is_writable) || zeroes(page, 1, is_writable);
    }
    false
}

fn zeroes(at: usize, len: usize, is_writable: bool) -> bool {
    let access = libc::PROT_READ | if is_writable { libc::PROT_WRITE } else { 0 };
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range is part of a map of ours, as its slot says, whose pages are gone: nothing is mapped over but that. Bytes
    // of an owned map may be changed by others at any time, so nobody relies on what they were.
    unsafe { libc::mmap(at as *mut libc::c_void, len, access, kind, -1, 0) != libc::MAP_FAILED }
}

/// Calls the previous handler of the signal.
fn hand_on(
    before: *const libc::sigaction,
    is_fault: bool,
    (signal, info, context): (libc::c_int, *mut libc::siginfo_t, *mut libc::c_void),
) {
    // SAFETY: it is null, or one of those that are kept as long as the process.
    let Some(before) = (unsafe { before.as_ref() }) else { return };
    // a fault cannot be ignored: with the default action restored below, it recurs and ends the process
    if is_fault && !matches!(before.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        // SAFETY: the operating system had the address from `sigaction`, as that of a function of the kind that the flag says.
        unsafe {
            if before.sa_flags & libc::SA_SIGINFO == 0 {
                let handler: extern "C" fn(libc::c_int) = transmute(before.sa_sigaction);
                handler(signal);
            } else {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    transmute(before.sa_sigaction);
                handler(signal, info, context);
            }
        }
        return;
    }
    // SAFETY: it was in place before. A fault comes again once this returns; a signal that was sent is sent again.
    unsafe {
        libc::sigaction(signal, before, null_mut());
        if !is_fault {
            libc::raise(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handler_is_put_on_top_again() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(100).expect("grown");
        let map = memmap2::MmapOptions::new().map_raw_read_only(file.as_file()).expect("mapped");
        let _guard = Guard::new(map.as_ptr(), map.len(), false).expect("guarded");
        let before = OWNER.lock().expect("no panic").earlier.len();
        for _ in 0..3 {
            let there = action_now().expect("asked");
            assert_eq!(there.sa_sigaction, on_fault as *const () as usize);
            come_first();
        }
        assert_eq!(OWNER.lock().expect("no panic").earlier.len(), before);
    }
}
