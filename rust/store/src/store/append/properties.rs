//! Encodes the property string of a row: KEYS, TAGS, then the other properties in their order, without a 0x02 at the end.
//!
//! Properties for a delay or for additional queues are added by rewriting the string in the order of Java's map, as a broker
//! does. Readers accept any order.
//!
//! Source: `MessageDecoder.messageProperties2String`, `CommitLog.asyncPutMessage`.
use super::rows::{Row, Rows};
use crate::format::java::in_map_order;
use crate::format::properties::{DELAY, KEYS, KnownProperties, MULTI_QUEUE_OFFSET, NAME_END, PROPERTY_END, TAGS};
use crate::store::delay::Delay;

const REAL_TOPIC: &str = "REAL_TOPIC";
const REAL_QID: &str = "REAL_QID";
const WAIT: &str = "WAIT";

/// Appends the property string of `row` to `out`. Returns the properties that the store itself needs, and the number
/// of all properties.
#[inline]
pub fn encode<'a, R: Rows>(rows: &'a R, row: &Row<'a>, out: &mut Vec<u8>) -> (KnownProperties<'a>, usize) {
    let start = out.len();
    let mut own = KnownProperties { tags: row.tags, keys: row.keys, ..KnownProperties::default() };
    let mut count = 0;
    for (name, value) in [(KEYS, row.keys), (TAGS, row.tags)] {
        if let Some(value) = value {
            push(out, start, name.as_bytes(), value);
            count += 1;
        }
    }
    for (name, value) in row.pairs.clone().map(|index| rows.pair(index)) {
        let Some(value) = value else { continue };
        // A property that a column of the row replaces is left out.
        if note(&mut own, row, name, value) {
            push(out, start, name, value);
            count += 1;
        }
    }
    (own, count)
}

/// Adds the delay level, and the message's own topic and queue, to the property string that begins at `start`.
pub fn add_delay(row: &Row<'_>, delay: Delay, start: usize, out: &mut Vec<u8>) {
    let (level, queue_id) = (delay.level().to_string(), row.queue_id.to_string());
    let topic = row.topic.unwrap_or_default();
    let added = [(DELAY, level.as_bytes()), (REAL_TOPIC, topic), (REAL_QID, queue_id.as_bytes())];
    rewrite(&added, None, start, out);
}

/// Adds the offsets in additional queues to the property string that begins at `start`. Removes `WAIT`, which only the
/// broker uses.
pub fn add_multi_queue_offset(offsets: &str, start: usize, out: &mut Vec<u8>) {
    rewrite(&[(MULTI_QUEUE_OFFSET, offsets.as_bytes())], Some(WAIT), start, out);
}

/// Rewrites the property string that begins at `start`, in Java's order. Adds the properties `added` and removes the
/// property `removed`.
fn rewrite(added: &[(&str, &[u8])], removed: Option<&str>, start: usize, out: &mut Vec<u8>) {
    let old = out.split_off(start);
    let added = added.iter().map(|(name, value)| (name.as_bytes(), *value));
    let pairs = in_map_order(crate::format::properties::iter(&old).chain(added));
    for (name, value) in pairs.into_iter().filter(|(name, _)| removed.map(str::as_bytes) != Some(*name)) {
        push(out, start, name, value);
    }
}

/// Notes a property if the store needs it. Returns `false` if a column of the row replaces the property.
#[inline]
fn note<'a>(known: &mut KnownProperties<'a>, row: &Row<'_>, name: &[u8], value: &'a [u8]) -> bool {
    match name {
        b"KEYS" if row.keys.is_some() => return false,
        b"TAGS" if row.tags.is_some() => return false,
        _ => known.note(name, value),
    }
    true
}

#[inline]
fn push(out: &mut Vec<u8>, start: usize, name: &[u8], value: &[u8]) {
    if out.len() > start {
        out.push(PROPERTY_END);
    }
    out.extend_from_slice(name);
    out.push(NAME_END);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::append::{Messages, OwnedMessage};

    fn message() -> Messages {
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        Messages::new(vec![OwnedMessage {
            topic: "T".into(),
            tags: Some("A".into()),
            keys: Some("k1 k2".into()),
            properties: vec![pair("b", "2"), pair("TAGS", "not this"), pair("DELAY", "99"), pair("UNIQ_KEY", "U")],
            queue_id: 7,
            ..OwnedMessage::default()
        }])
    }

    #[test]
    fn keys_and_tags_come_first_and_win_over_properties_of_their_name() {
        let (rows, mut out) = (message(), Vec::new());
        let (named, count) = encode(&rows, &rows.row(0), &mut out);
        assert_eq!(out, b"KEYS\x01k1 k2\x02TAGS\x01A\x02b\x012\x02DELAY\x0199\x02UNIQ_KEY\x01U");
        assert_eq!((count, named.tags, named.uniq_key), (5, Some(&b"A"[..]), Some(&b"U"[..])));
    }

    #[test]
    fn a_delayed_message_remembers_where_it_belongs() {
        let (rows, mut out) = (message(), b"before".to_vec());
        let delay = Delay::parse(b"99", &Default::default()).expect("a number").expect("a level");
        encode(&rows, &rows.row(0), &mut out);
        add_delay(&rows.row(0), delay, 6, &mut out);
        let expected = "beforeREAL_TOPIC\u{1}T\u{2}b\u{1}2\u{2}KEYS\u{1}k1 k2\u{2}UNIQ_KEY\u{1}U\u{2}DELAY\u{1}18\u{2}TAGS\u{1}A\u{2}REAL_QID\u{1}7";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn offsets_in_further_queues_are_the_stores() {
        let mut out =
            b"WAIT\x01true\x02b\x01INNER_MULTI_QUEUE_OFFSET\x02INNER_MULTI_QUEUE_OFFSET\x0199\x02c\x013".to_vec();
        add_multi_queue_offset("7,0", 0, &mut out);
        assert_eq!(out, b"b\x01INNER_MULTI_QUEUE_OFFSET\x02c\x013\x02INNER_MULTI_QUEUE_OFFSET\x017,0");
    }
}
