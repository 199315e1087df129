//! The checkpoint: a file of 4096 bytes in which a broker records how much of the store is flushed.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | physicMsgTimestamp: store time, in milliseconds, up to which the commit log was flushed |
//! | 8 | i64 | logicsMsgTimestamp: store time up to which the consume queues were flushed |
//! | 16 | i64 | indexMsgTimestamp: store time up to which the index was flushed |
//! | 24 | i64 | masterFlushedOffset (5.x; 0 before) |
//! | 32 | i64 | confirmPhyOffset (5.x; 0 before) |
//! | 40 | | zero, or fields of a later version |
//! | 4064 | 4 | `REND`: begins this project's own fields, which RocketMQ leaves alone |
//! | 4068 | u64 | offset up to which the commit log was flushed |
//! | 4076 | i64 | copy of physicMsgTimestamp; RocketMQ changes only the original, so a difference shows that it has written to the store |
//! | 4084 | u32 | size of each file of the log |
//! | 4088 | u32 | CRC-32 of these 24 bytes |
//!
//! No checksum covers RocketMQ's times, so recovery uses them only as a hint where to start.
//!
//! Source: `StoreCheckpoint`.
use super::cursor::{Expected, Malformed, i32_at, i64_at};

pub const FILE_SIZE: usize = 4096;
/// Length of the fields of 4.9.4. A shorter checkpoint cannot be read.
pub const MIN_LEN: usize = 24;
/// Length of all of RocketMQ's fields, those of 5.x included.
const LEN: usize = 40;
/// Position of the fields of this project, which hold the flushed end of the log.
const END_AT: usize = 4064;
const END_MAGIC: [u8; 4] = *b"REND";
/// Length of the fields at `END_AT`, without the CRC that follows them.
const END_LEN: usize = 24;
/// Recovery starts this many milliseconds before the recorded times, as RocketMQ does.
const SAFETY_MS: i64 = 3000;

/// RocketMQ's fields. Times are in milliseconds, offsets are bytes of the commit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Store time of the last message flushed to the commit log.
    pub physic_msg_timestamp: i64,
    /// Store time of the last message whose consume-queue entry is flushed.
    pub logics_msg_timestamp: i64,
    /// Store time of the last message in a flushed index file.
    pub index_msg_timestamp: i64,
    /// Flushed offset of the master, as a 5.x slave received it.
    pub master_flushed_offset: i64,
    /// Offset up to which the replicas of a 5.x broker have confirmed the log.
    pub confirm_phy_offset: i64,
}

/// The offset up to which the commit log is flushed, and the size of each of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlushedEnd {
    pub offset: u64,
    pub file_size: u32,
}

impl Checkpoint {
    /// Decodes at least 24 bytes. Fields behind the last byte are 0.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let timestamp = |at| i64_at(bytes, at).ok_or_else(|| too_short(bytes));
        Ok(Self {
            physic_msg_timestamp: timestamp(0)?,
            logics_msg_timestamp: timestamp(8)?,
            index_msg_timestamp: timestamp(16)?,
            // A checkpoint of 4.9.4 may end here.
            master_flushed_offset: i64_at(bytes, 24).unwrap_or(0),
            confirm_phy_offset: i64_at(bytes, 32).unwrap_or(0),
        })
    }

    /// Overwrites RocketMQ's fields in `page` and keeps all other bytes, which a later version may have written. A page shorter than 40
    /// bytes takes the fields that fit; a page shorter than 24 bytes is an error.
    pub fn encode_into(&self, page: &mut [u8]) -> Result<(), Malformed> {
        if page.len() < MIN_LEN {
            return Err(too_short(page));
        }
        // `zip` ends with the page, so a short page takes the fields that fit.
        let (fields, _) = page.as_chunks_mut::<8>();
        for (field, value) in fields.iter_mut().zip(self.fields()) {
            *field = value.to_be_bytes();
        }
        Ok(())
    }

    pub fn encode(&self) -> [u8; FILE_SIZE] {
        let mut page = [0; FILE_SIZE];
        let (fields, _) = page[..LEN].as_chunks_mut::<8>();
        for (field, value) in fields.iter_mut().zip(self.fields()) {
            *field = value.to_be_bytes();
        }
        page
    }

    /// Returns the flushed end in `page`. `None` if it is missing or damaged, or if RocketMQ has written to the store
    /// later.
    pub fn flushed_end(&self, page: &[u8]) -> Option<FlushedEnd> {
        let bytes = page.get(END_AT..END_AT + END_LEN)?;
        let is_whole = page.get(END_AT + END_LEN..)?.first_chunk() == Some(&crc32fast::hash(bytes).to_be_bytes());
        // RocketMQ changes only its own time, so a difference to the copy shows that it has written since.
        let is_own = bytes.starts_with(&END_MAGIC) && i64_at(bytes, 12)? == self.physic_msg_timestamp;
        let (offset, file_size) = (u64::try_from(i64_at(bytes, 4)?).ok()?, u32::try_from(i32_at(bytes, 20)?).ok()?);
        Some(FlushedEnd { offset, file_size }).filter(|_| is_whole && is_own)
    }

    /// Writes the flushed end into `page`; `None` erases it. A change of `physic_msg_timestamp` makes the flushed end
    /// invalid.
    pub fn put_flushed_end(&self, end: Option<FlushedEnd>, page: &mut [u8; FILE_SIZE]) {
        let mut bytes = [0; END_LEN + 4];
        if let Some(end) = end {
            bytes[..4].copy_from_slice(&END_MAGIC);
            bytes[4..12].copy_from_slice(&end.offset.to_be_bytes());
            // The copy of RocketMQ's time, which makes the flushed end invalid once RocketMQ writes.
            bytes[12..20].copy_from_slice(&self.physic_msg_timestamp.to_be_bytes());
            bytes[20..24].copy_from_slice(&end.file_size.to_be_bytes());
            let crc = crc32fast::hash(&bytes[..END_LEN]);
            bytes[END_LEN..].copy_from_slice(&crc.to_be_bytes());
        }
        page[END_AT..END_AT + bytes.len()].copy_from_slice(&bytes);
    }

    /// Returns the store time before which both the commit log and the consume queues are flushed, in milliseconds; at least 0.
    pub fn min_timestamp(&self) -> i64 {
        // Like `StoreCheckpoint.getMinTimestamp`, which ignores the time of the index.
        self.physic_msg_timestamp.min(self.logics_msg_timestamp).saturating_sub(SAFETY_MS).max(0)
    }

    fn fields(&self) -> [i64; LEN / 8] {
        [
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_phy_offset,
        ]
    }
}

fn too_short(bytes: &[u8]) -> Malformed {
    Malformed {
        field: "checkpoint",
        at: bytes.len(),
        expected: Expected::AtLeast(MIN_LEN as i64),
        got: bytes.len() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Checkpoint = Checkpoint {
        physic_msg_timestamp: 1_795_231_251_387,
        logics_msg_timestamp: 1_795_231_251_380,
        index_msg_timestamp: 1_795_231_244_724,
        master_flushed_offset: -1,
        confirm_phy_offset: 2_515_548,
    };

    #[test]
    fn a_checkpoint_of_a_real_broker_decodes_and_encodes() {
        // From a stopped 4.9.4 broker: the first 24 bytes. Zeroes follow.
        let mut page = [0; FILE_SIZE];
        for (at, low) in [(0, 0xFC1E_FBBB_u32), (8, 0xFC1E_FBBB), (16, 0xFC1E_E1B4)] {
            page[at..at + 8].copy_from_slice(&(0x01A1 << 32 | u64::from(low)).to_be_bytes());
        }
        let checkpoint = Checkpoint::decode(&page).expect("a page");
        assert_eq!(
            (checkpoint.physic_msg_timestamp, checkpoint.index_msg_timestamp),
            (1_795_231_251_387, 1_795_231_244_724)
        );
        assert_eq!(checkpoint.encode(), page);
    }

    #[test]
    fn all_fields_round_trip_and_the_tail_is_preserved() {
        let mut page = vec![0xEE; FILE_SIZE];
        FULL.encode_into(&mut page).expect("a page");
        assert_eq!(Checkpoint::decode(&page), Ok(FULL));
        assert!(page[LEN..].iter().all(|b| *b == 0xEE));
        assert_eq!(Checkpoint::decode(&FULL.encode()), Ok(FULL));
    }

    #[test]
    fn a_truncated_checkpoint_is_refused_below_the_fields_of_4_9_4() {
        let page = FULL.encode();
        let error = Checkpoint::decode(&page[..23]).expect_err("one byte is missing");
        assert_eq!(error.to_string(), "checkpoint at +23: expected at least 24, got 23");
        let old = Checkpoint::decode(&page[..24]).expect("4.9.4 has no more");
        assert_eq!((old.index_msg_timestamp, old.confirm_phy_offset), (FULL.index_msg_timestamp, 0));
        assert!(FULL.encode_into(&mut [0; 23]).is_err());
    }

    #[test]
    fn a_flipped_byte_is_another_time_and_nothing_else() {
        let mut page = FULL.encode();
        page[15] ^= 1;
        let flipped = Checkpoint::decode(&page).expect("no checksum");
        assert_eq!(flipped, Checkpoint { logics_msg_timestamp: FULL.logics_msg_timestamp ^ 1, ..FULL });
    }

    #[test]
    fn the_flushed_end_round_trips_and_holds_for_its_time_only() {
        let mut page = FULL.encode();
        assert_eq!(FULL.flushed_end(&page), None);
        let end = Some(FlushedEnd { offset: 0x0102_0304_0506, file_size: 1 << 30 });
        FULL.put_flushed_end(end, &mut page);
        assert_eq!((FULL.flushed_end(&page), Checkpoint::decode(&page)), (end, Ok(FULL)));
        assert_eq!(FULL.flushed_end(&page[..FILE_SIZE - 5]), None);
        let later = Checkpoint { physic_msg_timestamp: FULL.physic_msg_timestamp + 1, ..FULL };
        assert_eq!(later.flushed_end(&page), None);
        for at in END_AT..END_AT + END_LEN + 4 {
            let mut flipped = page;
            flipped[at] ^= 4;
            assert_eq!(FULL.flushed_end(&flipped), None, "{at}");
        }
        FULL.put_flushed_end(None, &mut page);
        assert_eq!((FULL.flushed_end(&page), page), (None, FULL.encode()));
    }

    #[test]
    fn recovery_starts_three_seconds_early_and_never_before_zero() {
        assert_eq!(FULL.min_timestamp(), 1_795_231_248_380);
        let hostile = Checkpoint { physic_msg_timestamp: i64::MIN, ..FULL };
        assert_eq!((Checkpoint::default().min_timestamp(), hostile.min_timestamp()), (0, 0));
    }
}
