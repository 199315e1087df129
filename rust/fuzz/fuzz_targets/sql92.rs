//! Tag and SQL92 expressions of any text: parsing ends, and what parses can be asked.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::filter::{Sql92, TagExpression};

fuzz_target!(|text: &str| {
    if let Ok(tags) = TagExpression::parse(text) {
        let _ = (tags.is_all(), tags.matches(Some(b"TagA")), tags.codes_match(0));
    }
    if let Ok(condition) = Sql92::parse(text) {
        for value in [None, Some("1"), Some("a"), Some("1e400"), Some("TRUE"), Some("")] {
            let _ = condition.matches(|_| value);
        }
    }
});
