//! The body of a pull's answer: records of the commit log, one behind the other.
//!
//! Java hands out what stands before a record that it cannot read and drops the rest in silence, though it goes on behind
//! all of them; here that is an error, as messages would be lost.
//!
//! Source: `MessageDecoder.decodes`, `PullAPIWrapper.processPullResult`.
use crate::error::{Error, Result};
use rmqfast_store::format::message::{Item, Layout};
use rmqfast_store::scan::row::Row;
use rmqfast_store::scan::text::lossy;
use std::collections::HashSet;

/// The whole tags that a client wants; a message without a tag has none of them.
pub type Tags = HashSet<Vec<u8>>;

// Bytes of a body at most: a row counts in 32 bits.
const MAX_LEN: usize = u32::MAX as usize;

/// Places of the body's messages, without their properties.
///
/// # Errors
/// [`Error::Body`] for the first record that is none.
pub fn rows(body: &[u8]) -> Result<Vec<Row>> {
    each_row(body, |_| true)
}

/// The messages whose stored body does not match its CRC.
///
/// # Errors
/// As [`rows`].
pub fn rows_with_wrong_crc(body: &[u8]) -> Result<Vec<Row>> {
    let mut rows = each_row(body, |row| row.message(body).is_some_and(|message| !message.body_crc_matches()))?;
    rows.iter_mut().for_each(|row| row.find_properties(body));
    Ok(rows)
}

/// [`rows`] that `look` accepts; it sees each row while that is in the processor's cache.
fn each_row(body: &[u8], mut look: impl FnMut(&mut Row) -> bool) -> Result<Vec<Row>> {
    if body.len() > MAX_LEN {
        return Err(Error::body(0, format!("expected at most {MAX_LEN} bytes, got {}", body.len())));
    }
    let mut rows = Vec::new();
    let mut at = 0;
    while at < body.len() {
        let mut row = Row::new(at as u32, layout_at(body, at)?);
        let is_wanted = look(&mut row);
        at += row.layout.total as usize;
        if !is_wanted {
            continue;
        }
        if rows.is_empty() {
            // messages of a topic are of about one size
            rows.reserve(body.len() / at + 1);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// [`rows`] with properties; with `tags` only messages that have one of these, as a broker compares no more than their hashes.
///
/// # Errors
/// As [`rows`].
pub fn messages(body: &[u8], tags: Option<&Tags>) -> Result<Vec<Row>> {
    each_row(body, |row| {
        row.find_properties(body);
        has_tag(body, row, tags)
    })
}

/// Whether a row has one of `tags`; without tags every row does.
pub fn has_tag(body: &[u8], row: &Row, tags: Option<&Tags>) -> bool {
    let Some(tags) = tags else { return true };
    // compared as texts, as Java does: what is no UTF-8 was replaced on both sides
    row.tags.of(body).is_some_and(|tag| tags.contains(lossy(tag).as_ref()))
}

fn layout_at(body: &[u8], at: usize) -> Result<Layout> {
    match Layout::decode(&body[at..]) {
        Ok(Item::Message(layout)) => Ok(layout),
        // brokers send what queues list, and none lists the rest of a file
        Ok(Item::Blank(_)) => Err(Error::body(at, "expected a message, got the end of a file")),
        Ok(Item::Unwritten) => Err(Error::body(at, "expected a message, got zeroes")),
        Ok(Item::Partial(total)) => {
            Err(Error::body(at, format!("expected a record of {total} bytes, got {}", body.len() - at)))
        }
        Err(malformed) => Err(Error::record(at, malformed)),
    }
}

#[cfg(test)]
mod tests;
