//! The tag hash. It is Java's `String.hashCode`: computed from UTF-16 code units, with 32 bits.
//!
//! Source: `MessageExtBrokerInner.tagsString2tagsCode`, `java.lang.String.hashCode`.

/// Returns the tag hash as a consume queue stores it. It is sign-extended from 32 bits, and 0 for a message without a
/// tag.
pub fn tags_code(tags: Option<&str>) -> i64 {
    tags.map_or(0, |t| i64::from(java_hash(t)))
}

pub fn java_hash(text: &str) -> i32 {
    let step = |h: i32, unit: u16| h.wrapping_mul(31).wrapping_add(i32::from(unit));
    // A fast path for ASCII, which needs no decoding. Nearly all tags are ASCII.
    if text.is_ascii() { text.bytes().map(u16::from).fold(0, step) } else { text.encode_utf16().fold(0, step) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_java() {
        for (text, hash) in [
            ("TagA", 2_598_919),
            ("TagB", 2_598_920),
            ("*", 42),
            ("订单", 1_129_459),
            ("😀", 1_772_899),
            ("polygenelubricants", i32::MIN),
            ("", 0),
        ] {
            assert_eq!(java_hash(text), hash, "{text}");
        }
    }

    #[test]
    fn tags_code_is_sign_extended() {
        assert_eq!(tags_code(Some("polygenelubricants")), -2_147_483_648);
        assert_eq!(tags_code(None), 0);
    }
}
