//! A configuration file of any bytes: what parses is written and read back as the same value.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::format::config::{parse, to_fastjson};

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = parse(bytes) else { return };
    let written = to_fastjson(&value);
    assert_eq!(parse(written.as_bytes()).expect("what was written parses"), value, "{written}");
});
