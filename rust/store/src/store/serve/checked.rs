//! Notes the records of a file whose body CRC was checked, so that each body is checked once, not at every pull.
use crate::format::message::{MIN_LEN, Message};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a slot. No record is shorter, so at most one record begins in a slot.
const SLOT: u64 = 64;
const _: () = assert!(MIN_LEN as u64 >= SLOT);

/// One bit for each slot. These are 2 MiB for a file of 1 GiB, allocated on first use.
#[derive(Debug, Default)]
pub struct CheckedBodies {
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl CheckedBodies {
    /// Returns whether the body of the record at `position` has the right CRC. A body that was found right before is
    /// not checked again. `len` is the length of the file.
    pub fn is_sound(&self, position: u64, len: u64, record: &[u8]) -> bool {
        let words = len.div_ceil(SLOT * u64::BITS as u64);
        let bits = self.bits.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        let (word, bit) = (position / SLOT / u64::BITS as u64, 1 << (position / SLOT % u64::BITS as u64));
        let Some(word) = bits.get(word as usize) else { return true };
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let is_sound = Message::decode(record).is_some_and(|message| message.body_crc_matches());
        // Only sound bodies are remembered. A damaged body is checked again, because it may be repaired meanwhile.
        if is_sound {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        is_sound
    }
}
