//! Computes a CRC of the last bytes of a log, starting at a record. It tells the log from other logs that continue
//! differently.
use crc32fast::Hasher;

/// Minimum number of bytes that the CRC covers.
pub const REACH: u64 = 64 << 10;

/// Two ranges that end at the log's end, with their CRCs. Once the shorter range is long enough, it replaces the
/// longer range.
#[derive(Debug)]
pub struct Trail {
    older: Stretch,
    younger: Stretch,
}

#[derive(Clone, Debug)]
struct Stretch {
    from: u64,
    crc: Hasher,
}

impl Stretch {
    fn new(from: u64) -> Self {
        Self { from, crc: Hasher::new() }
    }
}

impl Trail {
    pub fn new(from: u64) -> Self {
        Self { older: Stretch::new(from), younger: Stretch::new(from) }
    }

    pub fn from(&self) -> u64 {
        self.older.from
    }

    /// Returns the CRC of the bytes since [`from`](Self::from).
    pub fn crc(&self) -> u32 {
        self.older.crc.clone().finalize()
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.older.crc.update(bytes);
        self.younger.crc.update(bytes);
    }

    /// Called when a record ends at `position`, which is the end of the added bytes. The second range may begin here.
    pub fn record_ended(&mut self, position: u64) {
        if position - self.younger.from >= REACH {
            self.older = std::mem::replace(&mut self.younger, Stretch::new(position));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_back_far_enough_and_no_further_than_it_must() {
        let log: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let (mut trail, mut at) = (Trail::new(5), 5);
        for size in (1..).map(|n| n * 7919 % 5000) {
            if at + size > log.len() {
                break;
            }
            trail.add(&log[at..at + size]);
            at += size;
            trail.record_ended(at as u64);
            let from = trail.from() as usize;
            assert_eq!(trail.crc(), crc32fast::hash(&log[from..at]));
            assert!(
                from == 5 || (REACH as usize..2 * REACH as usize + 10_000).contains(&(at - from)),
                "{from} of {at}"
            );
        }
        assert!(trail.from() > 800_000);
    }
}
