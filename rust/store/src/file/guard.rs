#![allow(unsafe_code, reason = "a signal handler, and a map in the place of another one, cannot be said in safe Rust")]
//! What becomes of a map of a file that this process owns when another process shortens the file.
//!
//! A touch of a page that is not there any more is a SIGBUS, which ends the process. The handler here puts pages of zeroes in the
//! place of what is gone, and marks the map: who wrote to it or read from it asks the mark, and tells of the loss. It is there
//! only where a store is open for appending. What happens at addresses that are none of ours goes to the handler that was there
//! before.
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Maps that are watched at the same time; further ones are not.
const SLOTS: usize = 32_768;

/// A range of addresses; a start of 0 is none.
struct Slot {
    start: AtomicUsize,
    len: AtomicUsize,
    is_lost: AtomicBool,
}

static TABLE: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), len: AtomicUsize::new(0), is_lost: AtomicBool::new(false) } }; SLOTS];
/// Slots from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static PAGE: AtomicUsize = AtomicUsize::new(4096);
static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::uninit()));

/// What handled the signal before.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: it is written once, by `install`, before the handler that reads it can run.
unsafe impl Sync for Before {}

/// Watches a map until it is dropped, which must be before the map is.
#[derive(Debug)]
pub struct Guard {
    /// None where all slots are taken.
    slot: Option<usize>,
}

impl Guard {
    /// Watches `len` bytes from `start`, a map of a file that this process owns.
    pub fn new(start: *const u8, len: usize) -> Self {
        install();
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let used = USED.load(Ordering::Relaxed);
        let slot = free.pop().or((used < SLOTS).then_some(used));
        if let Some(slot) = slot {
            TABLE[slot].is_lost.store(false, Ordering::Relaxed);
            TABLE[slot].len.store(len, Ordering::Relaxed);
            TABLE[slot].start.store(start as usize, Ordering::Release);
            USED.store(used.max(slot + 1), Ordering::Release);
        }
        Self { slot }
    }

    /// Whether a part of the map was found to be gone.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.slot.is_some_and(|slot| TABLE[slot].is_lost.load(Ordering::Acquire))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            TABLE[slot].start.store(0, Ordering::Release);
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        }
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: all zeroes is a value of this type of C: no flags, no signals blocked, the default action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handle as *const () as usize;
        // the stack of its own that a thread may have; and it may come again while it runs
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: `handle` has the type that SA_SIGINFO asks for and does only what a signal handler may: atomics, mmap. The old
        // action is written where nobody reads before this returns, but the handler itself, which has none to ask until then.
        unsafe { libc::sigaction(libc::SIGBUS, &action, (*BEFORE.0.get()).as_mut_ptr()) };
    });
}

/// Handles SIGBUS.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a valid pointer with SA_SIGINFO; the fields read are those of every such signal.
    let (code, address, pid) = unsafe { ((*info).si_code, (*info).si_addr() as usize, (*info).si_pid()) };
    // what another handler of this process passes on, as Python's faulthandler: it comes again from the address itself
    if code <= 0 && pid == std::process::id() as i32 {
        return;
    }
    if code > 0 && restored(address) {
        return;
    }
    pass_on(signal, info, context);
}

/// Puts zeroes in the place of the map that holds `address`, from its page on; false for an address that is in none.
fn restored(address: usize) -> bool {
    let page = PAGE.load(Ordering::Relaxed);
    for slot in &TABLE[..USED.load(Ordering::Acquire)] {
        let start = slot.start.load(Ordering::Acquire);
        let len = slot.len.load(Ordering::Relaxed);
        if start == 0 || address < start || address - start >= len {
            continue;
        }
        let from = address - address % page;
        let len = (start + len - from).next_multiple_of(page);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range lies in a map that is ours as long as the slot has it, and behind the file's end: nobody can have read
        // anything there. `errno` is put back, as whoever was interrupted may be about to look at it.
        let mapped = unsafe {
            let errno = *libc::__errno_location();
            let mapped = libc::mmap(from as *mut c_void, len, access, kind, -1, 0);
            *libc::__errno_location() = errno;
            mapped
        };
        slot.is_lost.store(true, Ordering::Release);
        return mapped as usize == from;
    }
    false
}

/// Lets the handler that was there before have the signal; without one the process ends, as it would have.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `install` has written it before this handler could run.
    let before = unsafe { &*(*BEFORE.0.get()).as_ptr() };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: as in `install`. The instruction is tried again, and the default action is taken.
            unsafe {
                let action: libc::sigaction = MaybeUninit::zeroed().assume_init();
                libc::sigaction(signal, &action, ptr::null_mut());
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: it was given to sigaction with this flag, so it is a function of this type.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was given to sigaction without the flag, so it is a function of this type.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
