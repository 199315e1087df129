//! A compressed body: which codec the system flag names, and the codecs with a limit on what they may give.
//!
//! | sysFlag & 0x700 | codec | bytes | what follows the stream |
//! |---|---|---|---|
//! | 0x000, 0x300 | ZLIB | an RFC 1950 stream | is ignored |
//! | 0x100 | LZ4 | LZ4 frames | up to 3 bytes are ignored; more must be a frame, read on or skippable |
//! | 0x200 | ZSTD | Zstandard frames | must be a frame, read on |
//!
//! That is what the streams of Java do. ZLIB carries an Adler-32 and notices a flipped byte; LZ4 and ZSTD as Java
//! writes them carry no checksum: a flip in their literals shows only in the record's BODYCRC, of the stored bytes.
//! An empty input is no stream and malformed, where Java's ZLIB gives an empty body: no client compresses one.
//!
//! Source: `CompressionType.findByValue`, `ZlibCompressor`, `Lz4Compressor`, `ZstdCompressor`.
use super::malformed::{Expected, Malformed};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::io::{Read, Write};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// The system flag's bit that says the body is compressed.
pub const COMPRESSED_FLAG: i32 = 0x1;
/// The system flag's bits that name the codec.
pub const TYPE_MASK: i32 = 0x700;

/// The least room that a decoder is given at a time, in bytes.
const MIN_STEP: usize = 4096;
/// The largest window of a ZSTD frame: 2^27 = 128 MiB, as in Java. Only what is used of it becomes memory.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
const LZ4_MAGIC: u32 = 0x184D_2204;
/// Sixteen magics, told apart by their low four bits.
const LZ4_SKIPPABLE: u32 = 0x184D_2A50;
/// Version 01, independent blocks, no checksums: what RocketMQ's client writes. The second adds the content's size.
const LZ4_PLAIN: [u8; 2] = [0x60, 0x68];

/// The codec of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1950, what the client does by default.
    Zlib,
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Compression {
    /// The codec that the system flag names; whether the body is compressed at all is [`COMPRESSED_FLAG`].
    pub fn from_sys_flag(sys_flag: i32) -> Result<Self, Malformed> {
        match (sys_flag & TYPE_MASK) >> 8 {
            0 | 3 => Ok(Self::Zlib),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Zstd),
            // The flag's place in a record.
            other => {
                Err(Malformed { field: "compression type", at: 36, expected: Expected::AtMost(3), got: other.into() })
            }
        }
    }

    /// The bits to set in the system flag, [`COMPRESSED_FLAG`] included.
    pub fn sys_flag(self) -> i32 {
        COMPRESSED_FLAG
            | match self {
                Self::Zlib => 0x300,
                Self::Lz4 => 0x100,
                Self::Zstd => 0x200,
            }
    }
}

/// Appends the body that `input` holds compressed to `out`.
///
/// At most `cap` bytes: `out` grows with what was decompressed, doubling, and by no more than `cap` or its own length;
/// the codecs need up to 12 MiB (LZ4 frames that no client of RocketMQ writes) or the frame's window (ZSTD) beside it.
/// If the input is cut off, garbage or decompresses to more, `out` is as it was.
pub fn decompress_into(kind: Compression, input: &[u8], cap: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut body = Body { start: out.len(), cap, out };
    let result = match kind {
        _ if input.is_empty() => Err(broken(0, "a compressed stream", 0)),
        Compression::Zlib => zlib(input, &mut body),
        Compression::Lz4 => lz4(input, &mut body),
        Compression::Zstd => zstd(input, &mut body),
    };
    if result.is_err() {
        body.out.truncate(body.start);
    }
    result
}

/// Compresses a body; `level` is the codec's own, brought into its range, and LZ4 has none. RocketMQ's is 5.
///
/// # Panics
/// If memory runs out.
pub fn compress(kind: Compression, input: &[u8], level: i32) -> Vec<u8> {
    match kind {
        Compression::Zlib => zlib_compress(input, level.clamp(0, 9).unsigned_abs()),
        Compression::Lz4 => lz4_compress(input),
        Compression::Zstd => zstd::bulk::compress(input, level.clamp(1, 22)).expect("memory for a zstd frame"),
    }
}

/// The end of the output where the body grows.
struct Body<'a> {
    start: usize,
    cap: usize,
    out: &'a mut Vec<u8>,
}

impl Body<'_> {
    fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Room for `want` more bytes, zeroed, and where it starts. A vector's own doubling would pass the cap.
    fn extend(&mut self, want: usize) -> usize {
        let at = self.out.len();
        let limit = (2 * self.start).max(self.start.saturating_add(self.cap));
        let capacity = (2 * self.out.capacity()).min(limit).max(at + want);
        if at + want > self.out.capacity() {
            self.out.reserve_exact(capacity - at);
        }
        self.out.resize(at + want, 0);
        at
    }

    /// Lets `write` fill as much room again, up to one byte past the cap to notice more, and say how much it wrote.
    /// Gives whether the room was filled.
    fn fill(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, Malformed>) -> Result<bool, Malformed> {
        let want = self.len().max(MIN_STEP).min((self.cap - self.len()).saturating_add(1));
        let at = self.extend(want);
        let written = write(&mut self.out[at..])?;
        self.out.truncate(at + written);
        self.check(0)?;
        Ok(written == want)
    }

    /// Refuses `more` bytes that would pass the cap.
    fn check(&self, more: usize) -> Result<(), Malformed> {
        let got = self.len().saturating_add(more);
        if got <= self.cap {
            return Ok(());
        }
        Err(Malformed { field: "body", at: 0, expected: Expected::AtMost(self.cap as i64), got: got as i64 })
    }
}

fn broken(at: usize, expected: &'static str, got: i64) -> Malformed {
    Malformed { field: "body", at, expected: Expected::Words(expected), got }
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
        match (ended, filled) {
            (true, _) => return Ok(()),
            (false, true) => {}
            (false, false) => return Err(broken(input.len(), "a zlib stream with its end", input.len() as i64)),
        }
    }
}

fn zlib_compress(input: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = Compress::new(flate2::Compression::new(level), true);
    let mut out = Vec::with_capacity(input.len() / 2 + 64);
    loop {
        let read = encoder.total_in() as usize;
        match encoder.compress_vec(&input[read..], &mut out, FlushCompress::Finish).expect("memory for a zlib stream") {
            Status::StreamEnd => return out,
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
        let mut left_in_frame = 0;
        let filled = body.fill(|room| {
            let mut room = OutBuffer::around(room);
            left_in_frame = decoder.run(&mut stored, &mut room).map_err(unsound(stored.pos()))?;
            Ok(room.pos())
        })?;
        match (left_in_frame == 0, stored.pos() == input.len()) {
            (true, true) => return Ok(()),
            (false, true) if !filled => {
                return Err(broken(input.len(), "a zstd frame with its end", input.len() as i64));
            }
            _ => {}
        }
    }
}

fn lz4(input: &[u8], body: &mut Body) -> Result<(), Malformed> {
    let mut rest = input;
    while let Some((magic, after)) = rest.split_first_chunk() {
        let at = input.len() - rest.len();
        let magic = u32::from_le_bytes(*magic);
        rest = if magic & !0xF == LZ4_SKIPPABLE {
            skipped(after).ok_or_else(|| broken(at, "a skippable lz4 frame with its end", rest.len() as i64))?
        } else if magic != LZ4_MAGIC {
            return Err(broken(at, "the magic number of an lz4 frame", magic.into()));
        } else if after.first().is_some_and(|flags| LZ4_PLAIN.contains(flags)) {
            lz4_plain(after, body).map_err(|e| Malformed { at: at + 4 + e.at, ..e })?
        } else {
            lz4_other(rest, body).map_err(|e| Malformed { at: at + e.at, ..e })?
        };
    }
    if rest.len() < input.len() { Ok(()) } else { Err(broken(0, "an lz4 frame", input.len() as i64)) }
}

/// What follows a skippable frame, its magic already read.
fn skipped(frame: &[u8]) -> Option<&[u8]> {
    let (len, rest) = frame.split_first_chunk()?;
    rest.get(u32::from_le_bytes(*len) as usize..)
}

/// A frame as RocketMQ writes them, from its flags on: straight into the body, as the general decoder would clear
/// 4 MiB for each. Returns what follows.
fn lz4_plain<'a>(frame: &'a [u8], body: &mut Body) -> Result<&'a [u8], Malformed> {
    let cut_off = || broken(frame.len(), "an lz4 frame with its end", frame.len() as i64);
    let header = if frame[0] & 0x08 == 0 { 2 } else { 10 };
    let (described, rest) = frame.split_at_checked(header).ok_or_else(cut_off)?;
    let (check, mut rest) = rest.split_first().ok_or_else(cut_off)?;
    let block_max = match (described[1], (xxh32_short(described) >> 8) as u8 == *check) {
        (size @ (0x40 | 0x50 | 0x60 | 0x70), true) => 1_usize << (8 + 2 * (size >> 4)),
        _ => return Err(broken(1, "a sound lz4 frame header", described[1].into())),
    };
    let start = body.len();
    loop {
        let (size, after) = rest.split_first_chunk().ok_or_else(cut_off)?;
        let size = u32::from_le_bytes(*size);
        // Java masks before it compares, so the end may carry the bit of an uncompressed block.
        if size & 0x7FFF_FFFF == 0 {
            rest = after;
            break;
        }
        let (block, after) = after.split_at_checked((size & 0x7FFF_FFFF) as usize).ok_or_else(cut_off)?;
        let at = frame.len() - after.len() - block.len();
        lz4_block(block, size >> 31 == 0, block_max, body).map_err(|e| Malformed { at, ..e })?;
        rest = after;
    }
    match described[2..].first_chunk().map(|size| u64::from_le_bytes(*size)) {
        Some(size) if size != (body.len() - start) as u64 => {
            Err(broken(2, "the content size of the frame", size as i64))
        }
        _ => Ok(rest),
    }
}

/// One block; its size is counted before room is made for it.
fn lz4_block(block: &[u8], compressed: bool, block_max: usize, body: &mut Body) -> Result<(), Malformed> {
    let unsound = || broken(0, "a sound lz4 block", block.len() as i64);
    let len = if compressed { lz4_block_len(block).ok_or_else(unsound)? } else { block.len() };
    if len > block_max || block.len() > block_max {
        return Err(unsound());
    }
    body.check(len)?;
    if !compressed {
        body.out.extend_from_slice(block);
        return Ok(());
    }
    let at = body.extend(len);
    match lz4_flex::block::decompress_into(block, &mut body.out[at..]) {
        Ok(written) if written == len => Ok(()),
        _ => Err(unsound()),
    }
}

/// The length that a block decompresses to: the sum of its literals and matches. `None` if a sequence is cut off.
fn lz4_block_len(block: &[u8]) -> Option<usize> {
    let (mut at, mut len) = (0, 0_usize);
    let extended = |short: u8, at: &mut usize| {
        let mut total = usize::from(short);
        let mut more = short == 15;
        while more {
            let byte = *block.get(*at)?;
            *at += 1;
            total += usize::from(byte);
            more = byte == 255;
        }
        Some(total)
    };
    while let Some(token) = block.get(at) {
        at += 1;
        let literals = extended(token >> 4, &mut at)?;
        at += literals;
        len += literals;
        if at >= block.len() {
            return (at == block.len()).then_some(len);
        }
        at += 2;
        len += 4 + extended(token & 15, &mut at)?;
    }
    None
}

/// A frame with checksums or linked blocks, its magic included. Returns what follows.
fn lz4_other<'a>(frame: &'a [u8], body: &mut Body) -> Result<&'a [u8], Malformed> {
    let mut decoder = FrameDecoder::new(Stored { rest: frame, cut_off: false });
    let len = frame.len() as i64;
    while body.fill(|room| {
        let mut written = 0;
        while written < room.len() {
            match decoder.read(&mut room[written..]).map_err(|_| broken(0, "a sound lz4 frame", len))? {
                0 => break,
                n => written += n,
            }
        }
        Ok(written)
    })? {}
    let Stored { rest, cut_off } = decoder.into_inner();
    if cut_off { Err(broken(frame.len(), "an lz4 frame with its end", len)) } else { Ok(rest) }
}

/// Notices what the decoder keeps to itself: that it asked for bytes past the end.
struct Stored<'a> {
    rest: &'a [u8],
    cut_off: bool,
}

impl Read for Stored<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.cut_off |= self.rest.len() < room.len();
        self.rest.read(room)
    }
}

fn lz4_compress(input: &[u8]) -> Vec<u8> {
    // Java reads independent blocks only.
    let info = FrameInfo::new().block_size(BlockSize::Auto).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::with_capacity(input.len() / 2 + 64));
    encoder.write_all(input).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// XXH32 with seed 0 of fewer than 16 bytes: of a frame header.
fn xxh32_short(bytes: &[u8]) -> u32 {
    const PRIMES: [u32; 5] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1];
    let (words, tail) = bytes.as_chunks();
    let mut h = PRIMES[4].wrapping_add(bytes.len() as u32);
    for word in words {
        h = h.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIMES[2])).rotate_left(17).wrapping_mul(PRIMES[3]);
    }
    for byte in tail {
        h = h.wrapping_add(u32::from(*byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    h = (h ^ h >> 15).wrapping_mul(PRIMES[1]);
    h = (h ^ h >> 13).wrapping_mul(PRIMES[2]);
    h ^ h >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use Compression::{Lz4, Zlib, Zstd};

    const KINDS: [Compression; 3] = [Zlib, Lz4, Zstd];
    /// Bodies of the Java client of 4.9.4: "compress me, " 632 and 775 times.
    const JAVA_LZ4: &str = "04224d1860707337000000df636f6d7072657373206d652c200d00ffffffffffffffff\
                            ffffffffffffffffffffffffffffffffffffffffffffffff1350206d652c2000000000";
    const JAVA_ZSTD: &str = "28b52ffd0058ac000068636f6d7072657373206d652c2001004b07f8f905010000";
    const ZLIB_ABC: &str = "789c4b4c4a0600024d0127";

    fn unhex(text: &str) -> Vec<u8> {
        let digit = |c: u8| (c as char).to_digit(16).expect("a digit") as u8;
        text.as_bytes().as_chunks().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
    }

    fn decompress(kind: Compression, input: &[u8], cap: usize) -> Result<Vec<u8>, Malformed> {
        let mut out = b"before".to_vec();
        let result = decompress_into(kind, input, cap, &mut out);
        assert!(out.starts_with(b"before") && (result.is_ok() || out.len() == 6), "{kind:?}: out is not restored");
        result.map(|()| out.split_off(6))
    }

    /// Half text, half noise, longer than a step, an LZ4 block of 64 KiB and a ZSTD block.
    fn sample(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let noise = move |i: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (i / 1000).is_multiple_of(2) { (state >> 56) as u8 } else { b"compress me, "[i % 13] }
        };
        (0..len).map(noise).collect()
    }

    #[test]
    fn the_system_flag_names_the_codec() {
        for (sys_flag, kind) in [(0x1, Zlib), (0x301, Zlib), (0x101, Lz4), (0x201, Zstd), (!0x700 | 0x200, Zstd)] {
            assert_eq!(Compression::from_sys_flag(sys_flag), Ok(kind));
        }
        let error = Compression::from_sys_flag(0x401).expect_err("there is no type 4");
        assert_eq!(error.to_string(), "compression type at +36: expected at most 3, got 4");
        assert!(KINDS.iter().all(|kind| Compression::from_sys_flag(kind.sys_flag()) == Ok(*kind)));
    }

    #[test]
    fn bodies_of_the_java_client_decompress() {
        assert_eq!(decompress(Lz4, &unhex(JAVA_LZ4), 8216), Ok(b"compress me, ".repeat(632)));
        assert_eq!(decompress(Zstd, &unhex(JAVA_ZSTD), 10_075), Ok(b"compress me, ".repeat(775)));
        assert_eq!(decompress(Zlib, &unhex(ZLIB_ABC), 3), Ok(b"abc".to_vec()));
    }

    #[test]
    fn all_codecs_round_trip_at_any_level_up_to_the_cap_and_not_one_byte_past_it() {
        for kind in KINDS {
            for (len, level) in [(1, 5), (4095, 5), (4096, 5), (4097, 1), (300_000, 9), (5 << 20, -7)] {
                let body = sample(len);
                let stored = compress(kind, &body, level);
                assert!(decompress(kind, &stored, len) == Ok(body), "{kind:?} {len}");
                let error = decompress(kind, &stored, len - 1).expect_err("one byte too many");
                assert_eq!((error.field, error.expected), ("body", Expected::AtMost(len as i64 - 1)), "{kind:?} {len}");
            }
        }
    }

    #[test]
    fn a_truncated_stream_is_malformed_wherever_it_is_cut() {
        for kind in KINDS {
            let stored = compress(kind, &sample(20_000), 5);
            for len in (0..stored.len()).step_by(97).chain(stored.len() - 16..stored.len()) {
                let error = decompress(kind, &stored[..len], 1 << 20).expect_err("cut off");
                assert_eq!(error.field, "body", "{kind:?} {len}");
            }
        }
    }

    #[test]
    fn a_flipped_byte_of_a_zlib_stream_is_noticed_and_of_the_others_never_passes_the_cap() {
        for kind in KINDS {
            let stored = compress(kind, &sample(20_000), 5);
            for at in (0..stored.len()).step_by(61) {
                let mut flipped = stored.clone();
                flipped[at] ^= 0x10;
                match decompress(kind, &flipped, 20_000) {
                    Ok(body) => assert!(kind != Zlib && body.len() <= 20_000, "{kind:?} {at}"),
                    Err(error) => assert!(["body"].contains(&error.field)),
                }
            }
            assert!(decompress(kind, b"neither codec ever wrote this", 1000).is_err());
        }
    }

    #[test]
    fn what_follows_the_stream_is_treated_as_in_java() {
        let twice = |kind| compress(kind, b"abc", 5).repeat(2);
        assert_eq!(decompress(Zlib, &twice(Zlib), 10), Ok(b"abc".to_vec()));
        assert_eq!(decompress(Lz4, &twice(Lz4), 10), Ok(b"abcabc".to_vec()));
        assert_eq!(decompress(Zstd, &twice(Zstd), 10), Ok(b"abcabc".to_vec()));
        let followed = |kind, tail: &[u8]| decompress(kind, &[&compress(kind, b"abc", 5)[..], tail].concat(), 10);
        assert!(followed(Zlib, b"garbage").is_ok() && followed(Lz4, b"gar").is_ok());
        assert!(followed(Lz4, b"garbage").is_err() && followed(Zstd, b"garbage").is_err());
        assert!(followed(Lz4, &[0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7]).is_ok());
        assert!(followed(Lz4, &[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 7, 7]).is_err());
    }

    #[test]
    fn lz4_frames_with_checksums_sizes_and_linked_blocks_are_read_and_checked() {
        let body = sample(300_000);
        for (checksums, mode) in [(true, BlockMode::Independent), (true, BlockMode::Linked), (false, BlockMode::Linked)]
        {
            let info = FrameInfo::new().block_mode(mode).block_checksums(checksums).content_checksum(checksums);
            let mut encoder = FrameEncoder::with_frame_info(info.content_size(Some(300_000)), Vec::new());
            encoder.write_all(&body).expect("a vector");
            let mut stored = encoder.finish().expect("a vector");
            assert!(decompress(Lz4, &stored, 300_000) == Ok(body.clone()));
            assert!(decompress(Lz4, &stored[..stored.len() - 1], 300_000).is_err());
            assert!(decompress(Lz4, &stored, 299_999).is_err());
            let last = stored.len() - 1;
            stored[last] ^= u8::from(checksums);
            assert_eq!(decompress(Lz4, &stored, 300_000).is_err(), checksums);
        }
        let mut stored = FrameEncoder::with_frame_info(FrameInfo::new().content_size(Some(4)), Vec::new());
        stored.write_all(b"abcd").expect("a vector");
        let mut stored = stored.finish().expect("a vector");
        assert_eq!(decompress(Lz4, &stored, 4), Ok(b"abcd".to_vec()));
        stored[4] ^= 0x20;
        assert!(decompress(Lz4, &stored, 4).is_err(), "the header's check byte");
    }

    #[test]
    fn a_bomb_costs_no_more_than_the_cap() {
        for kind in KINDS {
            let bomb = compress(kind, &vec![0; 64 << 20], 9);
            let mut out = Vec::new();
            assert!(decompress_into(kind, &bomb, 1 << 20, &mut out).is_err());
            assert!(out.is_empty() && out.capacity() <= (1 << 20) + MIN_STEP, "{kind:?}: {}", out.capacity());
        }
        // A frame header that asks for a window of 2^28 bytes.
        assert!(decompress(Zstd, &[0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x90, 1, 0, 0], 1 << 20).is_err());
    }
}
