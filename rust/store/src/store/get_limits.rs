//! Limits of one pull. They are lower for messages far behind the log's end, which a broker would read from the disk.
//!
//! Source: `DefaultMessageStore.isTheBatchFull`, `checkInDiskByCommitOffset`, `MessageStoreConfig`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLimits {
    /// Maximum number of messages in memory (`maxTransferCountOnMessageInMemory`).
    pub count_in_memory: usize,
    /// Maximum bytes of messages in memory (`maxTransferBytesOnMessageInMemory`).
    pub bytes_in_memory: i32,
    /// Maximum number of messages on the disk (`maxTransferCountOnMessageInDisk`).
    pub count_in_disk: usize,
    /// Maximum bytes of messages on the disk (`maxTransferBytesOnMessageInDisk`).
    pub bytes_in_disk: i32,
    /// Size of the end of the log that counts as being in memory, in bytes.
    pub memory: u64,
}

impl GetLimits {
    /// Returns a broker's default limits on a machine with `physical_memory` bytes. The broker expects 40 % of the
    /// memory to hold messages (`accessMessageInMemoryMaxRatio`).
    pub fn of_broker(physical_memory: u64) -> Self {
        Self {
            count_in_memory: 32,
            bytes_in_memory: 256 << 10,
            count_in_disk: 8,
            bytes_in_disk: 64 << 10,
            memory: Self::share(physical_memory, 40),
        }
    }

    /// Returns limits of `max_messages` messages, and of 256 KiB for every 32 messages. All messages count as being
    /// in memory.
    pub fn of_count(max_messages: usize) -> Self {
        let default = Self::of_broker(u64::MAX);
        let times = max_messages.div_ceil(default.count_in_memory).max(1);
        let bytes_in_memory = times.saturating_mul(default.bytes_in_memory as usize).min(i32::MAX as usize) as i32;
        Self { count_in_memory: max_messages, bytes_in_memory, memory: u64::MAX, ..default }
    }

    /// Returns a percentage of the memory in bytes, rounded as Java rounds it.
    pub fn share(physical_memory: u64, percent: u32) -> u64 {
        (physical_memory as f64 * (f64::from(percent) / 100.0)) as u64
    }

    /// Returns whether a message at `physical_offset` counts as being on the disk only.
    #[inline]
    pub fn is_in_disk(&self, physical_offset: i64, log_end: u64) -> bool {
        let behind = (log_end as i64).saturating_sub(physical_offset);
        u64::try_from(behind).is_ok_and(|behind| behind > self.memory)
    }

    /// Returns whether a batch has no room for another message. The first message always fits. The sum of bytes
    /// overflows as in Java, so a blank entry, whose size is 2 GiB, does not end a batch.
    #[inline]
    pub fn is_full(&self, (count, bytes): (usize, i32), max_messages: usize, next_size: i32, is_in_disk: bool) -> bool {
        if count == 0 || bytes == 0 {
            return false;
        }
        let (most, most_bytes) = match is_in_disk {
            true => (self.count_in_disk, self.bytes_in_disk),
            false => (self.count_in_memory, self.bytes_in_memory),
        };
        count >= max_messages.min(most) || bytes.wrapping_add(next_size) > most_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_those_of_a_broker() {
        let limits = GetLimits::of_broker(1000);
        assert_eq!(limits.memory, 400);
        assert_eq!([600, 599].map(|offset| limits.is_in_disk(offset, 1000)), [false, true]);
        let full = |count, bytes, most, size, disk| limits.is_full((count, bytes), most, size, disk);
        assert!(!full(0, 0, 1, i32::MAX, false) && !full(1, 100, 32, i32::MAX, false));
        assert_eq!([31, 32].map(|count| full(count, 1, 1000, 1, false)), [false, true]);
        assert_eq!([7, 8].map(|count| full(count, 1, 1000, 1, true)), [false, true]);
        assert_eq!([65_535, 65_536].map(|size| full(1, 1, 1000, size, true)), [false, true]);
        assert_eq!([262_143, 262_144].map(|size| full(1, 1, 1000, size, false)), [false, true]);
        assert!(full(3, 1, 3, 1, false));
    }

    #[test]
    fn who_asks_for_more_gets_more_bytes() {
        let limits = GetLimits::of_count(65);
        assert_eq!((limits.count_in_memory, limits.bytes_in_memory), (65, 3 << 18));
        assert!(!limits.is_in_disk(0, u64::MAX >> 1));
        assert_eq!(GetLimits::of_count(1 << 30).bytes_in_memory, i32::MAX);
    }
}
