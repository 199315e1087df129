//! Parses the body of an answer to a pull: records of the commit log, one after the other.
//!
//! Java's client returns the records before one that it cannot read and silently drops the rest. Here an unreadable
//! record is an error, as messages would be lost.
//!
//! Source: `MessageDecoder.decodes`, `PullAPIWrapper.processPullResult`.
use crate::error::{Error, Result};
use rmqfast_store::format::message::{Item, Layout};
use rmqfast_store::scan::row::Row;
use rmqfast_store::scan::text_columns::lossy;
use std::collections::HashSet;

/// The tags of a subscription, as strings. A message without a tag matches no tag.
pub type Tags = HashSet<Vec<u8>>;

// Maximum bytes of a body. Rows store positions in 32 bits.
const MAX_LEN: usize = u32::MAX as usize;

/// Returns the positions of all messages of the body. Their properties are not parsed.
///
/// # Errors
/// [`Error::Body`] for the first record that cannot be parsed.
pub fn rows(body: &[u8]) -> Result<Vec<Row>> {
    each_row(body, |_| true)
}

/// Returns the messages whose stored body does not match its CRC.
///
/// # Errors
/// Fails like [`rows`].
pub fn rows_with_wrong_crc(body: &[u8]) -> Result<Vec<Row>> {
    let mut rows = each_row(body, |row| row.message(body).is_some_and(|message| !message.body_crc_matches()))?;
    rows.iter_mut().for_each(|row| row.find_properties(body));
    Ok(rows)
}

/// Returns the rows that `look` accepts. Calls `look` right after parsing a row, while its bytes are in the CPU cache.
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
            // messages of a topic have similar sizes, so the first record predicts the count
            rows.reserve(body.len() / at + 1);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the messages with their properties. With `tags`, messages without a matching tag are left out, since brokers
/// only compare the hashes of tags.
///
/// # Errors
/// Fails like [`rows`].
pub fn messages(body: &[u8], tags: Option<&Tags>) -> Result<Vec<Row>> {
    each_row(body, |row| {
        row.find_properties(body);
        has_tag(body, row, tags)
    })
}

/// Returns whether the message has one of `tags`. True if `tags` is `None`.
pub fn has_tag(body: &[u8], row: &Row, tags: Option<&Tags>) -> bool {
    let Some(tags) = tags else { return true };
    // compared as strings, as in Java: invalid UTF-8 was replaced on both sides
    row.tags.of(body).is_some_and(|tag| tags.contains(lossy(tag).as_ref()))
}

fn layout_at(body: &[u8], at: usize) -> Result<Layout> {
    match Layout::decode(&body[at..]) {
        Ok(Item::Message(layout)) => Ok(layout),
        // brokers only send indexed records, and the filler at the end of a file is not indexed
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
