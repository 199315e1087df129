//! A property string of any bytes: the last of a name wins, and no part is empty.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::format::properties;

fuzz_target!(|bytes: &[u8]| {
    let mut last = std::collections::HashMap::new();
    for (name, value) in properties::iter(bytes) {
        assert!(!name.is_empty() && !value.is_empty());
        last.insert(name, value);
    }
    for (name, value) in last.iter().take(64) {
        if let Ok(name) = std::str::from_utf8(name) {
            assert_eq!(properties::get(bytes, name), Some(*value));
        }
    }
});
