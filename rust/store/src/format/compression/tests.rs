//! Bodies from the Java client, round trips, truncated and damaged input, and bombs.
use super::body::MIN_STEP;
use super::*;
use Compression::{Lz4, Zlib, Zstd};
use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
use std::io::Write;

const KINDS: [Compression; 3] = [Zlib, Lz4, Zstd];
/// Bodies from the Java client of 4.9.4: "compress me, " 632 and 775 times.
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

/// Returns data that is half text and half noise, and longer than a step, an LZ4 block of 64 KiB and a ZSTD block.
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
    for (checksums, mode) in [(true, BlockMode::Independent), (true, BlockMode::Linked), (false, BlockMode::Linked)] {
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
