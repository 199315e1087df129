//! Splits the bytes of a connection into frames.
//!
//! ```text
//! int32  length       of what follows
//! int32  mark         serialize type (8 bits), header length (24 bits)
//! bytes  header
//! bytes  body         the rest
//! ```
//!
//! Source: `NettyDecoder`, `RemotingCommand.decode`.
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of a frame, including its length field. RocketMQ's name for it is
    /// `com.rocketmq.remoting.frameMaxLength`.
    pub frame: usize,
    pub header: usize,
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // RocketMQ limits headers only by the frame: properties of 32 KiB may take 200 KiB here, as each separator is
        // escaped
        Self { frame: 16 << 20, header: (1 << 24) - 1, fields: 4096 }
    }
}

impl Limits {
    pub(crate) fn check_frame(&self, got: usize) -> Result<()> {
        check("frame", self.frame, got)
    }

    pub(crate) fn check_header(&self, got: usize) -> Result<()> {
        check("header", self.header, got)
    }

    pub(crate) fn check_fields(&self, got: usize) -> Result<()> {
        check("header fields", self.fields, got)
    }
}

fn check(what: &'static str, limit: usize, got: usize) -> Result<()> {
    if got > limit { Err(Error::TooLarge { what, limit, got }) } else { Ok(()) }
}

// Bytes of the length field.
const LENGTH: usize = 4;
// Bytes of the mark field.
const MARK: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SerializeType {
    #[default]
    Json,
    RocketMq,
}

impl SerializeType {
    /// Returns the number by which a frame names this encoding.
    pub fn number(self) -> u8 {
        match self {
            Self::Json => 0,
            Self::RocketMq => 1,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::RocketMq => "ROCKETMQ",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub serialize_type: SerializeType,
    pub header: &'a [u8],
    pub body: &'a [u8],
}

/// Returns the first frame of `bytes` and its length. Returns `None` if the frame is incomplete. Fails with
/// [`Error::TooLarge`] and [`Error::Malformed`], which the first eight bytes of the frame suffice to detect. After an
/// error the connection cannot be used any more.
pub fn first<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<(Frame<'a>, usize)>> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = length_of(i32::from_be_bytes(*length), limits)?;
    let Some(mark) = rest.first_chunk::<MARK>() else { return Ok(None) };
    let (serialize_type, header) = mark_of(u32::from_be_bytes(*mark), length, limits)?;
    let Some(frame) = rest.get(MARK..length) else { return Ok(None) };
    let (header, body) = frame.split_at(header);
    Ok(Some((Frame { serialize_type, header, body }, LENGTH + length)))
}

/// Returns the first frame without its body, and its length including the body. Returns `None` until the header is
/// complete. Fails like [`first`].
pub fn head<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<(Frame<'a>, usize)>> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = length_of(i32::from_be_bytes(*length), limits)?;
    let Some((mark, rest)) = rest.split_first_chunk::<MARK>() else { return Ok(None) };
    let (serialize_type, header) = mark_of(u32::from_be_bytes(*mark), length, limits)?;
    let frame = rest.get(..header).map(|header| Frame { serialize_type, header, body: &[] });
    Ok(frame.map(|frame| (frame, LENGTH + length)))
}

pub const BEFORE_HEADER: usize = LENGTH + MARK;

fn length_of(length: i32, limits: &Limits) -> Result<usize> {
    let Some(bytes) = usize::try_from(length).ok().filter(|length| *length >= MARK) else {
        return Err(Error::malformed("frame length", "at least 4", length));
    };
    // checked before any memory is allocated, as the length is only announced by the peer
    limits.check_frame(LENGTH + bytes)?;
    Ok(bytes)
}

fn mark_of(mark: u32, length: usize, limits: &Limits) -> Result<(SerializeType, usize)> {
    let serialize_type = match mark >> 24 {
        0 => SerializeType::Json,
        1 => SerializeType::RocketMq,
        other => return Err(Error::malformed("serialize type", "0 (JSON) or 1 (ROCKETMQ)", other)),
    };
    // the high byte is the serialize type
    let header = (mark & 0xFF_FFFF) as usize;
    if header > length - MARK {
        return Err(Error::malformed("header length", format!("at most {}", length - MARK), header));
    }
    limits.check_header(header)?;
    Ok((serialize_type, header))
}

/// Reserves the length and the mark (encoding, length of the header) of a frame in `out`. Returns their position, for
/// [`end`].
pub(crate) fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH + MARK]);
    at
}

/// Fills in the length and mark of the frame at `at`. Called after the header was appended. `body` is the length of
/// the frame's body.
pub(crate) fn end(out: &mut [u8], at: usize, serialize_type: SerializeType, body: usize) {
    let header = out.len() - at - LENGTH - MARK;
    let length = (MARK + header + body) as u32;
    let mark = u32::from(serialize_type.number()) << 24 | header as u32;
    out[at..at + LENGTH].copy_from_slice(&length.to_be_bytes());
    out[at + LENGTH..at + LENGTH + MARK].copy_from_slice(&mark.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: i32, mark: u32, rest: &[u8]) -> Vec<u8> {
        [&length.to_be_bytes()[..], &mark.to_be_bytes(), rest].concat()
    }

    #[test]
    fn a_frame_is_there_once_its_last_byte_is() {
        let whole = bytes(4 + 3 + 2, 1 << 24 | 3, b"hdrbo");
        for end in 0..whole.len() {
            assert_eq!(first(&whole[..end], &Limits::default()).expect("sound"), None);
            let head = head(&whole[..end], &Limits::default()).expect("sound");
            let expected = Frame { serialize_type: SerializeType::RocketMq, header: b"hdr", body: b"" };
            assert_eq!(head, (end >= 8 + 3).then_some((expected, whole.len())));
        }
        let more = [&whole[..], b"next"].concat();
        let (frame, used) = first(&more, &Limits::default()).expect("sound").expect("whole");
        assert_eq!(
            (frame.serialize_type, frame.header, frame.body),
            (SerializeType::RocketMq, &b"hdr"[..], &b"bo"[..])
        );
        assert_eq!(used, whole.len());
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_the_frame_is_there() {
        let limits = Limits { header: 1 << 16, ..Limits::default() };
        for wrong in [
            bytes(-1, 0, b""),
            bytes(3, 0, b""),
            bytes(10, 7, b""),
            bytes(10, 2 << 24, b""),
            bytes(limits.frame as i32 - 3, 0, b""),
            bytes(1 << 20, limits.header as u32 + 1, b""),
        ] {
            assert!(first(&wrong, &limits).is_err(), "{wrong:?}");
        }
        assert_eq!(first(&bytes(limits.frame as i32 - 4, 5, b""), &limits).expect("allowed"), None);
    }
}
