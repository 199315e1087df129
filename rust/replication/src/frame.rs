//! Frames of an HA connection: reports of a slave, frames of a master. There is no magic, no version and no checksum.
//!
//! Source: `HAConnection.ReadSocketService`, `HAConnection.WriteSocketService`, `HAClient.dispatchReadRequest`.
use crate::end::End;

/// Bytes of a report.
pub const REPORT_LEN: usize = 8;
/// Bytes before the log's in a frame.
pub const HEADER_LEN: usize = 12;
/// Bytes of a frame at most: a slave of RocketMQ reads into a buffer of this size, and is stuck with a larger one.
pub const MAX_FRAME: usize = 4 << 20;
/// The position that a follower reports if it is no replica: below each position that a send waits for, and further behind the
/// master than `haSlaveFallbehindMax` lets a slave be.
pub const NO_REPLICA: i64 = -(1 << 62);

/// Returns a report: where to begin, then what the reader has.
pub fn report(offset: i64) -> [u8; REPORT_LEN] {
    offset.to_be_bytes()
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Position of its bytes in the log.
    pub offset: u64,
    /// Count of its bytes; 0 in a keep-alive.
    pub size: usize,
}

impl Header {
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&(self.size as u32).to_be_bytes());
        bytes
    }

    /// Reads the header of the frame that goes on at `expected`.
    ///
    /// # Errors
    /// [`End::Frame`] for one of another place, or of a size that no master sends.
    pub fn decode(bytes: [u8; HEADER_LEN], expected: u64) -> Result<Self, End> {
        let [a, b, c, d, e, f, g, h, size @ ..] = bytes;
        let offset = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let size = i32::from_be_bytes(size);
        if u64::try_from(offset) != Ok(expected) {
            return Err(End::Frame { at: expected, reason: format!("offset: expected {expected}, got {offset}") });
        }
        match usize::try_from(size) {
            Ok(size) if size <= MAX_FRAME => Ok(Self { offset: expected, size }),
            _ => Err(End::Frame { at: expected, reason: format!("size: expected 0 to {MAX_FRAME}, got {size}") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(offset: i64, size: i32) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes[8..].copy_from_slice(&size.to_be_bytes());
        bytes
    }

    #[test]
    fn a_frame_goes_on_where_the_last_one_ended() {
        let header = Header::decode(bytes(77, 32 << 10), 77).expect("a frame");
        assert_eq!(header, Header { offset: 77, size: 32 << 10 });
        assert_eq!(Header::decode(bytes(77, 0), 77).expect("a keep-alive").size, 0);
    }

    #[test]
    fn another_place_and_impossible_sizes_end_it() {
        for (offset, size) in
            [(78, 1), (-1, 1), (i64::MIN, 1), (i64::MAX, 1), (77, -1), (77, i32::MIN), (77, (4 << 20) + 1)]
        {
            let end = Header::decode(bytes(offset, size), 77).expect_err("refused");
            assert!(matches!(end, End::Frame { at: 77, .. }), "{end}");
        }
    }
}
