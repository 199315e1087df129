//! A compressed body of any bytes: no more than the cap comes out, nothing on an error.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::format::compression::{Compression, decompress_into};

const CAP: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, input)) = bytes.split_first() else { return };
    let Ok(kind) = Compression::from_sys_flag(i32::from(kind & 7) << 8) else { return };
    let mut out = b"before".to_vec();
    match decompress_into(kind, input, CAP, &mut out) {
        Ok(()) => assert!(out.len() <= CAP + 6),
        Err(_) => assert_eq!(out, b"before"),
    }
});
