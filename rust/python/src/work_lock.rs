//! A lock for work that checks for Ctrl-C. Signal handlers are Python code that runs in the working thread, so a
//! handler may try to take the lock again.
use rmqfast_store::{Error, Result};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock that returns an error if the thread that holds it takes it again. A plain lock would wait forever.
#[derive(Debug)]
pub struct WorkLock<T> {
    value: Mutex<T>,
    /// The thread that holds the lock, as a number; 0 while the lock is free.
    holder: AtomicUsize,
}

pub struct WorkGuard<'a, T> {
    value: MutexGuard<'a, T>,
    holder: &'a AtomicUsize,
}

impl<T> WorkLock<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicUsize::new(0) }
    }

    /// Waits for the lock and takes it. `what` names the locked object in errors.
    ///
    /// # Errors
    /// [`Error::InUse`]: this thread holds the lock and is in a signal handler.
    pub fn lock(&self, what: &'static str) -> Result<WorkGuard<'_, T>> {
        let this = this_thread();
        // relaxed is enough, since only this thread writes its own number
        if self.holder.load(Ordering::Relaxed) == this {
            return Err(Error::InUse { what });
        }
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.holder.store(this, Ordering::Relaxed);
        Ok(WorkGuard { value, holder: &self.holder })
    }

    /// Takes the lock if it is free, otherwise returns `None`.
    pub fn try_lock(&self) -> Option<WorkGuard<'_, T>> {
        // cannot deadlock, so the holder need not be compared with this thread
        let value = self.value.try_lock().ok()?;
        self.holder.store(this_thread(), Ordering::Relaxed);
        Some(WorkGuard { value, holder: &self.holder })
    }
}

impl<T> Deref for WorkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for WorkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for WorkGuard<'_, T> {
    fn drop(&mut self) {
        // cleared before the lock is released to the next thread
        self.holder.store(0, Ordering::Relaxed);
    }
}

/// Returns the address of a thread-local, a number that no two living threads share.
fn this_thread() -> usize {
    // the standard library does not give a thread's id as a number
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_has_it_hears_so_and_others_wait() {
        let lock = WorkLock::new(1);
        let mut held = lock.lock("this").expect("free");
        assert!(matches!(lock.lock("this"), Err(Error::InUse { what: "this" })));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| *lock.lock("this").expect("of another thread"));
            *held = 2;
            drop(held);
            assert_eq!(other.join().expect("no panic"), 2);
        });
        assert_eq!(lock.try_lock().map(|held| *held), Some(2));
        assert_eq!(*lock.lock("this").expect("free again"), 2);
    }
}
