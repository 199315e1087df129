//! A configuration file of any bytes: what parses is written and read back as the same value, in a broker's order, too.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::format::config::{NAMES, check, in_broker_order, parse, to_fastjson};

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = parse(bytes) else { return };
    let written = to_fastjson(&value);
    assert_eq!(parse(written.as_bytes()).expect("what was written parses"), value, "{written}");
    let ordered = in_broker_order(value.clone());
    assert_eq!(ordered, value, "no entry is lost");
    for name in NAMES {
        assert_eq!(check(name, &ordered).is_ok(), check(name, &value).is_ok());
    }
});
