//! LZ4 frames: a fast path for the frames that RocketMQ's clients write, and the general decoder for all others.
use super::body::{Body, broken};
use crate::format::cursor::Malformed;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::io::{Read, Write};

const MAGIC: u32 = 0x184D_2204;
/// First of the sixteen magic numbers of skippable frames, which differ in their low four bits.
const SKIPPABLE: u32 = 0x184D_2A50;
/// Frame flags that RocketMQ's clients write: version 01, independent blocks, no checksums. The second value adds the content size.
const PLAIN: [u8; 2] = [0x60, 0x68];

pub(super) fn decompress(input: &[u8], body: &mut Body) -> Result<(), Malformed> {
    let mut rest = input;
    // Frames may follow each other. Up to 3 bytes behind the last frame are ignored, as in Java.
    while let Some((magic, after)) = rest.split_first_chunk() {
        let at = input.len() - rest.len();
        let magic = u32::from_le_bytes(*magic);
        rest = if magic & !0xF == SKIPPABLE {
            skip_frame(after).ok_or_else(|| broken(at, "a skippable lz4 frame with its end", rest.len() as i64))?
        } else if magic != MAGIC {
            return Err(broken(at, "the magic number of an lz4 frame", magic.into()));
        } else if after.first().is_some_and(|flags| PLAIN.contains(flags)) {
            plain(after, body).map_err(|e| Malformed { at: at + 4 + e.at, ..e })?
        } else {
            other(rest, body).map_err(|e| Malformed { at: at + e.at, ..e })?
        };
    }
    if rest.len() < input.len() { Ok(()) } else { Err(broken(0, "an lz4 frame", input.len() as i64)) }
}

/// Returns the bytes behind a skippable frame, or `None` if the frame is truncated. `frame` begins behind the magic
/// number.
fn skip_frame(frame: &[u8]) -> Option<&[u8]> {
    let (len, rest) = frame.split_first_chunk()?;
    rest.get(u32::from_le_bytes(*len) as usize..)
}

/// Decompresses a frame that has the `PLAIN` flags, directly into the body. This is faster than the general decoder,
/// which clears 4 MiB for each frame. `frame` begins behind the magic number. Returns the bytes behind the frame.
fn plain<'a>(frame: &'a [u8], body: &mut Body) -> Result<&'a [u8], Malformed> {
    let cut_off = || broken(frame.len(), "an lz4 frame with its end", frame.len() as i64);
    // The flags and the block size, then the content size if the flags announce it.
    let header = if frame[0] & 0x08 == 0 { 2 } else { 10 };
    let (described, rest) = frame.split_at_checked(header).ok_or_else(cut_off)?;
    let (check, mut rest) = rest.split_first().ok_or_else(cut_off)?;
    // The checksum of the header is the second byte of its hash.
    let block_max = match (described[1], (xxh32_short(described) >> 8) as u8 == *check) {
        // The upper four bits are 4 to 7, for blocks of 64 KiB to 4 MiB.
        (size @ (0x40 | 0x50 | 0x60 | 0x70), true) => 1_usize << (8 + 2 * (size >> 4)),
        _ => return Err(broken(1, "a sound lz4 frame header", described[1].into())),
    };
    let start = body.len();
    loop {
        let (size, after) = rest.split_first_chunk().ok_or_else(cut_off)?;
        let size = u32::from_le_bytes(*size);
        // Java masks the size before it compares, so the end mark may have the bit of an uncompressed block.
        if size & 0x7FFF_FFFF == 0 {
            rest = after;
            break;
        }
        let (block, after) = after.split_at_checked((size & 0x7FFF_FFFF) as usize).ok_or_else(cut_off)?;
        let at = frame.len() - after.len() - block.len();
        block_into(block, size >> 31 == 0, block_max, body).map_err(|e| Malformed { at, ..e })?;
        rest = after;
    }
    match described[2..].first_chunk().map(|size| u64::from_le_bytes(*size)) {
        // The header announces the size of the content.
        Some(size) if size != (body.len() - start) as u64 => {
            Err(broken(2, "the content size of the frame", size as i64))
        }
        _ => Ok(rest),
    }
}

/// Decompresses one block. Computes its size first, so that memory is reserved only for bytes that exist.
fn block_into(block: &[u8], compressed: bool, block_max: usize, body: &mut Body) -> Result<(), Malformed> {
    let unsound = || broken(0, "a sound lz4 block", block.len() as i64);
    let len = if compressed { block_len(block).ok_or_else(unsound)? } else { block.len() };
    // The header limits the size of a block, stored and decompressed.
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

/// Returns the decompressed length of a block, which is the sum of its literals and matches. `None` if a sequence is truncated.
fn block_len(block: &[u8]) -> Option<usize> {
    let (mut at, mut len) = (0, 0_usize);
    let extended = |short: u8, at: &mut usize| {
        let mut total = usize::from(short);
        // A length of 15 continues in further bytes, up to the first byte below 255.
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
        // The last sequence of a block has literals only.
        if at >= block.len() {
            return (at == block.len()).then_some(len);
        }
        // A match is two bytes of offset and at least four bytes of output.
        at += 2;
        len += 4 + extended(token & 15, &mut at)?;
    }
    None
}

/// Decompresses a frame with checksums or linked blocks. `frame` begins with the magic number. Returns the bytes behind the frame.
fn other<'a>(frame: &'a [u8], body: &mut Body) -> Result<&'a [u8], Malformed> {
    let mut decoder = FrameDecoder::new(FrameInput { rest: frame, cut_off: false });
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
    let FrameInput { rest, cut_off } = decoder.into_inner();
    if cut_off { Err(broken(frame.len(), "an lz4 frame with its end", len)) } else { Ok(rest) }
}

/// The decoder's input. Notes reads past the end of the frame, because the decoder does not report them.
struct FrameInput<'a> {
    rest: &'a [u8],
    cut_off: bool,
}

impl Read for FrameInput<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.cut_off |= self.rest.len() < room.len();
        self.rest.read(room)
    }
}

pub(super) fn compress(input: &[u8]) -> Vec<u8> {
    // Java reads frames with independent blocks only.
    let info = FrameInfo::new().block_size(BlockSize::Auto).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::with_capacity(input.len() / 2 + 64));
    encoder.write_all(input).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// Computes XXH32 with seed 0 of fewer than 16 bytes, such as a frame header.
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
