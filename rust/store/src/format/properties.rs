//! The property string of a message: `name 0x01 value 0x02 name 0x01 value`, in UTF-8.
//!
//! 4.9.4 omits the last 0x02 and 5.x writes it; both forms are read. A property without a name or a value is skipped. Of a repeated name
//! the last value counts. A value may contain 0x01.
//! 5.x can end the properties with a CRC of the record before it, in 20 reserved bytes: `__CRC32#` 0x01 ten digits 0x02.
//!
//! Source: `MessageDecoder.messageProperties2String`, `string2messageProperties`, `createCrc32` (5.x).
use memchr::memchr;

pub const NAME_END: u8 = 1;
pub const PROPERTY_END: u8 = 2;
/// Maximum length of the property string. The record stores the length as `i16`.
pub const MAX_LEN: usize = i16::MAX as usize;
/// Length of the 5.x property CRC, with its name and separators.
pub const CRC_LEN: usize = 20;
const CRC_NAME: &[u8] = b"__CRC32#\x01";

/// Keys for the index, separated by spaces.
pub const KEYS: &str = "KEYS";
pub const TAGS: &str = "TAGS";
/// Unique id of the message, set by the producer.
pub const UNIQ_KEY: &str = "UNIQ_KEY";
/// Delay level, 1 to 18, in decimal digits.
pub const DELAY: &str = "DELAY";
/// Names of additional queues that list the message, separated by commas (light message queues).
pub const MULTI_DISPATCH: &str = "INNER_MULTI_DISPATCH";
/// Offsets of the message in the queues of `MULTI_DISPATCH`, in the same order.
pub const MULTI_QUEUE_OFFSET: &str = "INNER_MULTI_QUEUE_OFFSET";

/// Iterates over the properties in stored order, repeated names included.
pub fn iter(properties: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = properties;
    let parts = std::iter::from_fn(move || {
        let (part, behind) = match memchr(PROPERTY_END, rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        let is_over = rest.is_empty();
        rest = behind;
        (!is_over).then_some(part)
    });
    parts.filter_map(|part| {
        let name_end = memchr(NAME_END, part)?;
        // Java skips a property with an empty name or value.
        (name_end >= 1 && name_end + 1 < part.len()).then(|| (&part[..name_end], &part[name_end + 1..]))
    })
}

/// Returns the last value of `name`, or `None`.
#[inline]
pub fn get<'a>(properties: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // Java puts the properties into a map one by one, so the last value stays.
    iter(properties).filter(|(n, _)| *n == name.as_bytes()).last().map(|(_, v)| v)
}

/// Returns whether a name or value can be stored. It must not contain a separator.
pub fn is_storable(text: &str) -> bool {
    !text.bytes().any(|b| b == NAME_END || b == PROPERTY_END)
}

/// Appends a property, and the separator 0x02 behind it.
pub fn push(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.push(NAME_END);
    out.extend_from_slice(value.as_bytes());
    out.push(PROPERTY_END);
}

/// Appends the bytes reserved for the 5.x property CRC. [`seal_crc`] fills in the digits once the record is final.
pub fn reserve_crc(out: &mut Vec<u8>) {
    // The property before must end with its separator.
    if out.last().is_some_and(|b| *b != PROPERTY_END) {
        out.push(PROPERTY_END);
    }
    out.extend_from_slice(CRC_NAME);
    out.extend_from_slice(b"0000000000\x02");
}

/// Writes the CRC of the record into the bytes that [`reserve_crc`] has appended.
pub fn seal_crc(record: &mut [u8]) {
    let Some(split) = record.len().checked_sub(CRC_LEN) else { return };
    let digits = crc_digits(&record[..split]);
    record[split + CRC_NAME.len()..split + CRC_NAME.len() + 10].copy_from_slice(&digits);
}

/// Returns whether the property CRC at the end of `record` is correct. `None` if the record has no property CRC.
#[inline]
pub fn check_crc(record: &[u8]) -> Option<bool> {
    let split = record.len().checked_sub(CRC_LEN)?;
    let tail = &record[split..];
    let digits = tail.strip_prefix(CRC_NAME)?.strip_suffix(&[PROPERTY_END])?;
    Some(digits == crc_digits(&record[..split]))
}

/// Formats a CRC as ten digits, least significant first, padded with `0`.
fn crc_digits(bytes: &[u8]) -> [u8; 10] {
    // The sign bit is cleared, as in the CRC of a body (`UtilAll.crc32`).
    let mut crc = crc32fast::hash(bytes) & 0x7FFF_FFFF;
    std::array::from_fn(|_| {
        let digit = b'0' + (crc % 10) as u8;
        crc /= 10;
        digit
    })
}

/// The properties that a store uses to list a message in consume queues and index. Of a repeated name the last value counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownProperties<'a> {
    pub tags: Option<&'a [u8]>,
    pub keys: Option<&'a [u8]>,
    pub uniq_key: Option<&'a [u8]>,
    pub delay: Option<&'a [u8]>,
    /// The names of additional queues, separated by commas.
    pub multi_dispatch: Option<&'a [u8]>,
}

impl<'a> KnownProperties<'a> {
    #[inline]
    pub fn of(properties: &'a [u8]) -> Self {
        let mut named = Self::default();
        iter(properties).for_each(|(name, value)| named.note(name, value));
        named
    }

    /// Stores the value of a property, if the store needs the property.
    #[inline]
    pub fn note(&mut self, name: &[u8], value: &'a [u8]) {
        match name {
            _ if name == KEYS.as_bytes() => self.keys = Some(value),
            _ if name == TAGS.as_bytes() => self.tags = Some(value),
            _ if name == UNIQ_KEY.as_bytes() => self.uniq_key = Some(value),
            _ if name == DELAY.as_bytes() => self.delay = Some(value),
            _ if name == MULTI_DISPATCH.as_bytes() => self.multi_dispatch = Some(value),
            _ => {}
        }
    }

    /// Iterates over the message's index keys: first its unique id, then its keys (`IndexService.buildIndex`).
    #[inline]
    pub fn index_keys(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // Several spaces may follow each other, so empty keys are skipped.
        let keys = self.keys.into_iter().flat_map(|keys| keys.split(|b| *b == b' '));
        self.uniq_key.into_iter().chain(keys.filter(|key| !key.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_terminators_give_the_same_properties() {
        let old = b"KEYS\x01k1 k2\x02TAGS\x01TagA";
        let new = b"KEYS\x01k1 k2\x02TAGS\x01TagA\x02";
        let expected: Vec<(&[u8], &[u8])> = vec![(b"KEYS", b"k1 k2"), (b"TAGS", b"TagA")];
        assert_eq!(iter(old).collect::<Vec<_>>(), expected);
        assert_eq!(iter(new).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn parts_without_name_or_value_vanish() {
        let odd = b"\x01v\x02empty\x01\x02novalue\x02\x02a\x01b\x01c\x02a\x01last";
        assert_eq!(iter(odd).collect::<Vec<_>>(), [(&b"a"[..], &b"b\x01c"[..]), (b"a", b"last")]);
        assert_eq!(get(odd, "a"), Some(&b"last"[..]));
        assert_eq!(get(odd, "empty"), None);
    }

    #[test]
    fn push_writes_what_iter_reads() {
        let mut out = Vec::new();
        push(&mut out, "TAGS", "标签");
        push(&mut out, "a", "1");
        assert_eq!(iter(&out).count(), 2);
        assert_eq!(get(&out, "TAGS"), Some("标签".as_bytes()));
        assert!(!is_storable("a\u{1}b") && is_storable("ab"));
    }

    #[test]
    fn crc_round_trips_and_notices_a_flip() {
        let mut record = b"some record \x01\x02".to_vec();
        assert_eq!(check_crc(&record), None);
        reserve_crc(&mut record);
        assert_eq!(check_crc(&record), Some(false));
        seal_crc(&mut record);
        assert_eq!(check_crc(&record), Some(true));
        record[3] ^= 1;
        assert_eq!(check_crc(&record), Some(false));
    }

    #[test]
    fn the_id_comes_before_the_keys_and_the_last_of_a_name_counts() {
        let named = KnownProperties::of(b"KEYS\x01old\x02UNIQ_KEY\x01U\x02KEYS\x01k1  k2 \x02TAGS\x01A\x02b\x011");
        assert_eq!(named.index_keys().collect::<Vec<_>>(), [&b"U"[..], b"k1", b"k2"]);
        assert_eq!((named.tags, named.delay, named.multi_dispatch), (Some(&b"A"[..]), None, None));
        assert_eq!(KnownProperties::of(b"").index_keys().count(), 0);
    }
}
