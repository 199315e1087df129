//! A clock that always runs forward and cannot be set.

/// Returns milliseconds since an arbitrary moment, including the time during which the machine slept. Changes of the
/// system time have no effect.
pub fn steady_ms() -> i64 {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        // on macOS the monotonic clock continues while the machine sleeps
        #[cfg(target_vendor = "apple")]
        let clock = ClockId::Monotonic;
        #[cfg(not(target_vendor = "apple"))]
        let clock = ClockId::Boottime;
        let time = clock_gettime(clock);
        time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
    }
    #[cfg(windows)]
    {
        use std::sync::LazyLock;
        use std::time::Instant;
        // the performance counter continues while the machine sleeps
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_millis() as i64
    }
}

/// Returns the time of day in milliseconds since 1970. On Linux it is that of the last tick, which is late by up to
/// 10 ms and costs a fifth of the exact one.
pub fn tick_ms() -> i64 {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::RealtimeCoarse);
        time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::time::{SystemTime, UNIX_EPOCH};
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn a_tick_is_near_the_time_of_day() {
        let exact = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
        let (before, tick, after) = (exact(), tick_ms(), exact());
        assert!((before - 20..=after).contains(&tick));
    }

    #[test]
    fn it_never_goes_back() {
        let first = steady_ms();
        assert!(first >= 0 && steady_ms() >= first);
    }
}
