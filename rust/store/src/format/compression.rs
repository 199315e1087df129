//! Compressed message bodies. The system flag names the codec; the length of the decompressed body is limited.
//!
//! | sysFlag & 0x700 | codec | stored bytes | further bytes behind them |
//! |---|---|---|---|
//! | 0x000, 0x300 | ZLIB | an RFC 1950 stream | ignored |
//! | 0x100 | LZ4 | LZ4 frames | up to 3 bytes are ignored; more bytes must be another frame, which may be skippable |
//! | 0x200 | ZSTD | Zstandard frames | must be another frame |
//!
//! Java's streams accept the same bytes, except that its ZLIB returns an empty body for an empty input, which is an error
//! here. A flipped byte is detected by the checksum of ZLIB. LZ4 and ZSTD, as Java writes them, have no checksum, so only
//! the record's BODYCRC detects it.
//!
//! Source: `CompressionType.findByValue`, `ZlibCompressor`, `Lz4Compressor`, `ZstdCompressor`.
use super::cursor::{Expected, Malformed};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

mod body;
mod lz4;

use body::{Body, broken};

/// Bit of the system flag that says that the body is compressed.
pub const COMPRESSED_FLAG: i32 = 0x1;
/// Bits of the system flag that name the codec.
pub const TYPE_MASK: i32 = 0x700;

/// Largest window of a ZSTD frame, as a power of two: 128 MiB, as in Java. Memory is allocated only for the part in use.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// An RFC 1950 stream. The default of clients.
    Zlib,
    Lz4,
    Zstd,
}

impl Compression {
    /// Returns the codec that the system flag names. [`COMPRESSED_FLAG`] tells whether the body is compressed at all.
    pub fn from_sys_flag(sys_flag: i32) -> Result<Self, Malformed> {
        match (sys_flag & TYPE_MASK) >> 8 {
            // Older clients leave the type at 0 and use ZLIB.
            0 | 3 => Ok(Self::Zlib),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Zstd),
            // 36 is the position of the system flag in a record.
            other => {
                Err(Malformed { field: "compression type", at: 36, expected: Expected::AtMost(3), got: other.into() })
            }
        }
    }

    /// Returns the bits to set in the system flag, [`COMPRESSED_FLAG`] included.
    pub fn sys_flag(self) -> i32 {
        COMPRESSED_FLAG
            | match self {
                Self::Zlib => 0x300,
                Self::Lz4 => 0x100,
                Self::Zstd => 0x200,
            }
    }
}

/// Decompresses `input` and appends the body to `out`. A body longer than `cap` bytes and a truncated input are errors; after an error
/// `out` is unchanged.
///
/// Memory grows with the actual output, not with a claimed length: `out` doubles as needed. In addition LZ4 takes up to 12 MiB, for frames
/// that no client of RocketMQ writes, and ZSTD takes the frame's window.
pub fn decompress_into(kind: Compression, input: &[u8], cap: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut body = Body::behind(out, cap);
    let result = match kind {
        _ if input.is_empty() => Err(broken(0, "a compressed stream", 0)),
        Compression::Zlib => zlib(input, &mut body),
        Compression::Lz4 => lz4::decompress(input, &mut body),
        Compression::Zstd => zstd(input, &mut body),
    };
    if result.is_err() {
        body.clear();
    }
    result
}

/// Compresses a body. `level` is clamped to the codec's range and has no effect on LZ4; RocketMQ's default is 5.
pub fn compress(kind: Compression, input: &[u8], level: i32) -> Vec<u8> {
    match kind {
        Compression::Zlib => zlib_compress(input, level.clamp(0, 9).unsigned_abs()),
        Compression::Lz4 => lz4::compress(input),
        // Fails only without memory, since the level is in range.
        Compression::Zstd => zstd::bulk::compress(input, level.clamp(1, 22)).expect("memory for a zstd frame"),
    }
}

fn zlib(input: &[u8], body: &mut Body) -> Result<(), Malformed> {
    let mut decoder = Decompress::new(true);
    loop {
        let mut ended = false;
        let filled = body.fill(|room| {
            let (read, wrote) = (decoder.total_in() as usize, decoder.total_out());
            let status = decoder
                .decompress(&input[read..], room, FlushDecompress::None)
                .map_err(|_| broken(decoder.total_in() as usize, "a sound zlib stream", input.len() as i64))?;
            ended = status == Status::StreamEnd;
            Ok((decoder.total_out() - wrote) as usize)
        })?;
        // A decoder that leaves room in the buffer has used up its input.
        match (ended, filled) {
            (true, _) => return Ok(()),
            (false, true) => {}
            (false, false) => return Err(broken(input.len(), "a zlib stream with its end", input.len() as i64)),
        }
    }
}

fn zlib_compress(input: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = Compress::new(flate2::Compression::new(level), true);
    // Expect half of the input. The vector grows if that is not enough.
    let mut out = Vec::with_capacity(input.len() / 2 + 64);
    loop {
        let read = encoder.total_in() as usize;
        match encoder.compress_vec(&input[read..], &mut out, FlushCompress::Finish).expect("memory for a zlib stream") {
            Status::StreamEnd => return out,
            // The vector is full: make room and continue.
            Status::Ok | Status::BufError => out.reserve(out.len().max(64)),
        }
    }
}

fn zstd(input: &[u8], body: &mut Body) -> Result<(), Malformed> {
    let unsound = |at: usize| move |_: std::io::Error| broken(at, "a sound zstd frame", input.len() as i64);
    let mut decoder = Decoder::new().map_err(unsound(0))?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).map_err(unsound(0))?;
    let mut stored = InBuffer::around(input);
    loop {
        let mut frame_rest = 0;
        let filled = body.fill(|room| {
            let mut room = OutBuffer::around(room);
            frame_rest = decoder.run(&mut stored, &mut room).map_err(unsound(stored.pos()))?;
            Ok(room.pos())
        })?;
        // A frame without its end makes no more progress once the input is used up.
        match (frame_rest == 0, stored.pos() == input.len()) {
            // The last frame ends with the input. Otherwise another frame follows.
            (true, true) => return Ok(()),
            (false, true) if !filled => {
                return Err(broken(input.len(), "a zstd frame with its end", input.len() as i64));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
