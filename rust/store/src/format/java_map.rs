//! The iteration order of a `java.util.HashMap` of texts. RocketMQ rewrites property strings in this order, so equal input gives equal
//! bytes.
//!
//! Source: `HashMap.hash`, `HashMap.resize`, `MessageDecoder.messageProperties2String`.
use super::tag::java_hash;

type Pair<'a, T> = (&'a T, &'a T);

/// Buckets of a new map. It doubles when it is three quarters full.
const BUCKETS: usize = 16;

/// The pairs in the order of a map that they were put into one by one. A repeated name keeps its place and takes the last value. Names
/// that are not UTF-8 hash as Java would decode them.
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
    // A stable sort: within a bucket the order is that of insertion.
    entries.sort_by_key(|(hash, _)| hash & (buckets - 1));
    entries.into_iter().map(|(_, pair)| pair).collect()
}

/// The bucket of `name`, among a power of two; the same in a `ConcurrentHashMap`.
pub fn bucket(name: &[u8], buckets: usize) -> usize {
    spread(name) & (buckets - 1)
}

#[inline]
fn spread(name: &[u8]) -> usize {
    let hash = java_hash(&String::from_utf8_lossy(name)).cast_unsigned();
    (hash ^ (hash >> 16)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_java() {
        let names = "zeta TAGS KEYS alpha UNIQ_KEY DELAY zeta WAIT REAL_TOPIC REAL_QID";
        let pairs = names.split(' ').enumerate().map(|(n, name)| (name.as_bytes(), &b"0123456789"[n..=n]));
        let text: Vec<_> = in_map_order(pairs).iter().map(|(name, _)| String::from_utf8_lossy(name)).collect();
        // as DefaultMessageStore of 4.9.4 wrote them
        assert_eq!(text.join(" "), "zeta REAL_TOPIC KEYS alpha UNIQ_KEY DELAY WAIT TAGS REAL_QID");
    }

    #[test]
    fn the_last_value_of_a_name_stays() {
        let pairs: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")];
        assert_eq!(in_map_order(pairs.into_iter()), [(&b"a"[..], &b"3"[..]), (b"b", b"2")]);
    }
}
