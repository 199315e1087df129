//! Which records of a file were found to have the CRC that they tell: each body is read for it once, not for each who pulls it.
use crate::format::message::{MIN_LEN, Message};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// At most one record begins in so many bytes: none is shorter.
const SLOT: u64 = 64;
const _: () = assert!(MIN_LEN as u64 >= SLOT);

/// A bit for each place where a record may begin: 2 MiB for a file of 1 GiB, from the first question on.
#[derive(Debug, Default)]
pub struct Checked {
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl Checked {
    /// Whether the body of the record at a position has its CRC, or had it before; the file has `len` bytes.
    pub fn is_sound(&self, position: u64, len: u64, record: &[u8]) -> bool {
        let words = len.div_ceil(SLOT * u64::BITS as u64);
        let bits = self.bits.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        let (word, bit) = (position / SLOT / u64::BITS as u64, 1 << (position / SLOT % u64::BITS as u64));
        let Some(word) = bits.get(word as usize) else { return true };
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let is_sound = Message::decode(record).is_some_and(|message| message.body_crc_matches());
        // only what is sound is remembered: a damaged body is compared again, and may be mended meanwhile
        if is_sound {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        is_sound
    }
}
