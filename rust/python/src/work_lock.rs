//! A lock for work that looks for Ctrl-C amid it: handlers of signals are Python code, run by the thread that works.
use rmqfast_store::{Error, Result};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock that tells its holder's thread that it has it already: to wait for itself would be for ever.
#[derive(Debug)]
pub struct WorkLock<T> {
    value: Mutex<T>,
    /// The thread that has the lock; 0 where none has.
    holder: AtomicUsize,
}

/// The value, until this is dropped.
pub struct WorkGuard<'a, T> {
    value: MutexGuard<'a, T>,
    holder: &'a AtomicUsize,
}

impl<T> WorkLock<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicUsize::new(0) }
    }

    /// The value of `what`; other threads are waited for.
    ///
    /// # Errors
    /// [`Error::InUse`]: this thread has it, and runs the handler of a signal.
    pub fn lock(&self, what: &'static str) -> Result<WorkGuard<'_, T>> {
        let this = this_thread();
        // only this thread writes its own number
        if self.holder.load(Ordering::Relaxed) == this {
            return Err(Error::InUse { what });
        }
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.holder.store(this, Ordering::Relaxed);
        Ok(WorkGuard { value, holder: &self.holder })
    }

    /// The value, if nobody has it.
    pub fn try_lock(&self) -> Option<WorkGuard<'_, T>> {
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
        // before the lock is free for the next one
        self.holder.store(0, Ordering::Relaxed);
    }
}

/// A number of this thread, which no other thread that lives has.
fn this_thread() -> usize {
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
