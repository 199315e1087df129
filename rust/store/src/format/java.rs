//! Java's hash of strings, for tags, index keys and the order of hash maps.
//!
//! Source: `MessageExtBrokerInner.tagsString2tagsCode`, `java.lang.String.hashCode`, `HashMap.hash`, `HashMap.resize`,
//! `MessageDecoder.messageProperties2String`.

/// Returns the tag hash as a consume queue stores it. It is sign-extended from 32 bits, and 0 for a message without a
/// tag.
pub fn tags_code(tags: Option<&str>) -> i64 {
    tags.map_or(0, |t| i64::from(java_hash(t)))
}

/// Returns Java's `String.hashCode`: computed from UTF-16 code units, with 32 bits.
pub fn java_hash(text: &str) -> i32 {
    let step = |h: i32, unit: u16| h.wrapping_mul(31).wrapping_add(i32::from(unit));
    // A fast path for ASCII, which needs no decoding. Nearly all tags are ASCII.
    if text.is_ascii() { text.bytes().map(u16::from).fold(0, step) } else { text.encode_utf16().fold(0, step) }
}

type Pair<'a, T> = (&'a T, &'a T);

// RocketMQ writes property strings in the iteration order of a `java.util.HashMap`, so equal input must give equal bytes here.

/// Buckets of a new map. Their number doubles when the map is three quarters full.
const BUCKETS: usize = 16;

/// Returns the pairs in the order of a map into which they were put one by one. A repeated name keeps its place and takes the last value.
/// Names that are not UTF-8 are hashed as Java decodes them.
pub fn in_map_order<'a, T: AsRef<[u8]> + ?Sized>(pairs: impl Iterator<Item = Pair<'a, T>>) -> Vec<Pair<'a, T>> {
    let mut entries: Vec<(usize, Pair<'_, T>)> = Vec::with_capacity(BUCKETS);
    for (name, value) in pairs {
        match entries.iter_mut().find(|(_, (other, _))| other.as_ref() == name.as_ref()) {
            Some((_, entry)) => entry.1 = value,
            None => entries.push((spread(name.as_ref()), (name, value))),
        }
    }
    let mut buckets = BUCKETS;
    while entries.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    // The sort is stable: within a bucket entries keep the order of insertion.
    entries.sort_by_key(|(hash, _)| hash & (buckets - 1));
    entries.into_iter().map(|(_, pair)| pair).collect()
}

/// Returns the number of the bucket for `name`, in a `HashMap` or a `ConcurrentHashMap`. The map has `buckets` buckets,
/// a power of two.
pub fn bucket(name: &[u8], buckets: usize) -> usize {
    spread(name) & (buckets - 1)
}

#[inline]
fn spread(name: &[u8]) -> usize {
    // Java mixes the upper half of the hash into the lower half, since the bucket depends on the low bits only.
    let hash = java_hash(&String::from_utf8_lossy(name)).cast_unsigned();
    (hash ^ (hash >> 16)) as usize
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

    #[test]
    fn the_order_is_that_of_java() {
        let names = "zeta TAGS KEYS alpha UNIQ_KEY DELAY zeta WAIT REAL_TOPIC REAL_QID";
        let pairs = names.split(' ').enumerate().map(|(n, name)| (name.as_bytes(), &b"0123456789"[n..=n]));
        let text: Vec<_> = in_map_order(pairs).iter().map(|(name, _)| String::from_utf8_lossy(name)).collect();
        // In the order in which a 4.9.4 broker wrote the properties.
        assert_eq!(text.join(" "), "zeta REAL_TOPIC KEYS alpha UNIQ_KEY DELAY WAIT TAGS REAL_QID");
    }

    #[test]
    fn the_last_value_of_a_name_stays() {
        let pairs: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")];
        assert_eq!(in_map_order(pairs.into_iter()), [(&b"a"[..], &b"3"[..]), (b"b", b"2")]);
    }
}
