//! Frames of the HA protocol: reports of a slave and frames of a master. Frames have no magic number, no version and
//! no checksum.
//!
//! Source: `HAConnection.ReadSocketService`, `HAConnection.WriteSocketService`, `HAClient.dispatchReadRequest`.
use crate::end::End;

pub const REPORT_LEN: usize = 8;
pub const HEADER_LEN: usize = 12;
/// Maximum bytes of the log in a frame. RocketMQ's slaves use a buffer of this size, and hang if a frame is larger.
pub const MAX_FRAME: usize = 4 << 20;
/// Position that a follower reports if it is not a replica. The position is too low for any send to wait for it, and
/// further behind than `haSlaveFallbehindMax` allows.
pub const NO_REPLICA: i64 = -(1 << 62);

/// Encodes a report. The first report of a connection requests a start position. Later reports acknowledge positions.
pub fn report(offset: i64) -> [u8; REPORT_LEN] {
    offset.to_be_bytes()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Position of the frame's bytes in the log.
    pub offset: u64,
    /// Number of bytes; 0 for a keep-alive.
    pub size: usize,
}

impl Header {
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&(self.size as u32).to_be_bytes());
        bytes
    }

    /// Parses a frame's header. Checks that the bytes of the frame begin at position `expected`.
    ///
    /// # Errors
    /// [`End::Frame`] for another position or an impossible size.
    pub fn decode(bytes: [u8; HEADER_LEN], expected: u64) -> Result<Self, End> {
        let [a, b, c, d, e, f, g, h, size @ ..] = bytes;
        let offset = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let size = i32::from_be_bytes(size);
        // frames are contiguous, so another position means lost bytes or another log
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
