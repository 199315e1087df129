//! Message ids that a producer creates. They are unique without coordination, and contain the time of creation.
//!
//! Source: `MessageClientIDSetter`.
use rmqfast_store::format::message_id::UniqKey;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU16, Ordering};

/// Number of milliseconds by which the clock may lie before the start of the month. Ids then carry the start of the
/// month as their time.
const SET_BACK: i64 = 1_000_000;

/// Creates ids for all producers of a process.
#[derive(Debug)]
pub struct UniqueIds {
    ip: IpAddr,
    pid: u16,
    /// A random number, which separates processes with equal addresses and process ids. Java stores the hash of a class
    /// loader here.
    hash: i32,
    counter: AtomicU16,
    month_start: AtomicI64,
    next_month: AtomicI64,
}

impl UniqueIds {
    /// Creates the generator of a process. Only the lower 16 bits of `pid` are used.
    pub fn new(ip: IpAddr, pid: u32, hash: i32) -> Self {
        let month = || AtomicI64::new(i64::MIN);
        Self { ip, pid: pid as u16, hash, counter: AtomicU16::new(0), month_start: month(), next_month: month() }
    }

    /// Returns whether the month of the ids is over, so that [`begin_month`](Self::begin_month) must be called.
    #[inline]
    pub fn needs_month(&self, now_ms: i64) -> bool {
        now_ms >= self.next_month.load(Ordering::Acquire)
    }

    /// Sets the start of the current month and of the next month (in local time), in milliseconds since 1970.
    pub fn begin_month(&self, start_ms: i64, next_ms: i64) {
        // in this order: a thread that sees the new end must also see the new start
        self.month_start.store(start_ms, Ordering::Relaxed);
        self.next_month.store(next_ms, Ordering::Release);
    }

    #[inline]
    pub fn next(&self, now_ms: i64) -> UniqKey {
        let diff = now_ms.wrapping_sub(self.month_start.load(Ordering::Relaxed));
        let diff = if (-SET_BACK..0).contains(&diff) { 0 } else { diff };
        UniqKey {
            ip: self.ip,
            pid: self.pid,
            class_loader_hash: self.hash,
            time_diff_ms: diff as u32,
            counter: self.counter.fetch_add(1, Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_up_and_tell_the_time_since_the_month_began() {
        let ids = UniqueIds::new([10, 0, 0, 1].into(), 0x1_2345, -1);
        assert!(ids.needs_month(0));
        ids.begin_month(1000, 5000);
        assert!(!ids.needs_month(4999) && ids.needs_month(5000));
        let made = [ids.next(1255), ids.next(1255), ids.next(10), ids.next(-2_000_000)];
        assert_eq!(made[0].to_string(), "0A0000012345FFFFFFFF000000FF0000");
        assert_eq!(made[1].to_string(), "0A0000012345FFFFFFFF000000FF0001");
        assert_eq!((made[2].time_diff_ms, made[2].counter), (0, 2));
        assert_eq!(made[3].time_diff_ms, (-2_001_000_i32).cast_unsigned());
    }

    #[test]
    fn a_counter_that_is_at_its_end_begins_anew() {
        let ids = UniqueIds::new([10, 0, 0, 1].into(), 1, 1);
        ids.counter.store(u16::MAX, Ordering::Relaxed);
        assert_eq!([ids.next(0).counter, ids.next(0).counter], [u16::MAX, 0]);
    }
}
