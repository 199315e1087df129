//! Wakes threads that wait for the log to grow, to send new records to slaves.
//!
//! Source: `WaitNotifyObject`, `HAService.getWaitNotifyObject`.
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct LogGrowth {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    grown: Condvar,
}

impl LogGrowth {
    /// Wakes all waiting threads, which then check the log again.
    #[inline]
    pub fn notify(&self) {
        // Published bytes must be visible before the number of waiters is read.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // A waiter checks under this lock. So it has either seen the growth, or waits now and is woken.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.grown.notify_all();
    }

    /// Waits until `is_enough` returns true, but at most for `timeout`. The condition is checked after each growth.
    pub fn wait(&self, timeout: Duration, is_enough: impl Fn() -> bool) {
        if is_enough() {
            return;
        }
        // Counted before the condition is checked again, so that `notify` sees this waiter.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.grown.wait_timeout_while(guard, timeout, |()| !is_enough()));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn no_growth_is_missed() {
        let (growth, end) = (LogGrowth::default(), AtomicU64::new(0));
        let seen = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let position = end.fetch_add(1, Ordering::Release) + 1;
                    growth.notify();
                    // The next growth waits until this growth was seen, so a missed notification ends the test.
                    growth.wait(Duration::from_secs(60), || seen.load(Ordering::Acquire) >= position);
                    assert!(seen.load(Ordering::Acquire) >= position, "missed {position}");
                }
            });
            let mut position = 0;
            while position < 20_000 {
                growth.wait(Duration::from_secs(60), || end.load(Ordering::Acquire) > position);
                position = end.load(Ordering::Acquire);
                seen.store(position, Ordering::Release);
                growth.notify();
            }
        });
    }
}
