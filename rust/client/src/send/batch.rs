//! Encodes rows of a table as messages of a batch, until the batch is full.
//!
//! Source: `MessageBatch.generateFromList`.
use super::batch_body::{BatchMessage, write_batch_message};
use super::properties::{Properties, Unstorable};
use super::unique_id::UniqueIds;
use rmqfast_store::format::properties::{DELAY, MAX_LEN};
use std::fmt;

/// Bytes of a message in a batch without its body and properties.
const FIXED: usize = 22;

/// A row that becomes a message. Strings are bytes, as columns may contain invalid UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct BatchRow<'a> {
    pub body: Option<&'a [u8]>,
    pub tags: Option<&'a [u8]>,
    /// The keys, separated by spaces.
    pub keys: Option<&'a [u8]>,
    /// Properties. Pairs without a value are left out.
    pub pairs: &'a [(&'a [u8], Option<&'a [u8]>)],
    /// The application's 32-bit flag.
    pub flag: i64,
}

/// Limits and ids for the rows of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions<'a> {
    /// Maximum bytes of the batch's body.
    pub most_bytes: usize,
    pub most_rows: usize,
    /// Value of the property `INSTANCE_ID`, if the producer has one.
    pub instance_id: Option<&'a str>,
    /// Creates message ids. [`UniqueIds::begin_month`] must have been called for the current month.
    pub ids: &'a UniqueIds,
}

/// A batch under construction.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub body: Vec<u8>,
    /// Ids of all messages, separated by commas.
    pub ids: String,
    pub rows: usize,
}

/// Reason why a row cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsendable {
    Expected(String),
    Unstorable(Unstorable),
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::Unstorable(property) => property.fmt(f),
        }
    }
}

impl Batch {
    /// Adds a row. Returns false if the batch is full; the row then goes into the next batch.
    ///
    /// # Errors
    /// The reason why the row cannot be sent.
    pub fn add(&mut self, row: &BatchRow<'_>, options: &BatchOptions<'_>, now_ms: i64) -> Result<bool, Unsendable> {
        // checked before the message is encoded
        if self.rows >= options.most_rows {
            return Ok(false);
        }
        let body = row.body.filter(|body| !body.is_empty()).ok_or_else(|| expected("a body of one byte or more"))?;
        let flag = i32::try_from(row.flag).map_err(|_| expected("a flag of 32 bits"))?;
        let mut pairs = Vec::with_capacity(row.pairs.len());
        for (name, value) in row.pairs {
            if let (name, Some(value)) = (text("properties", name)?, value) {
                pairs.push((name, text("properties", value)?));
            }
        }
        // Java's text for this refusal
        if pairs.iter().any(|(name, _)| *name == DELAY) {
            return Err(expected("no DELAY: TimeDelayLevel is not supported for batching"));
        }
        let said = Properties {
            tags: row.tags.map(|tags| text("tags", tags)).transpose()?,
            keys: row.keys.map(|keys| text("keys", keys)).transpose()?,
            // the batch as a whole waits for the store
            wait_store: true,
            delay_level: 0,
            pairs: &pairs,
            added: &[],
            unique_id: None,
        };
        let mut properties = String::with_capacity(128);
        let make_id = || options.ids.next(now_ms).text();
        let id = said.write_with_id(options.instance_id, make_id, &mut properties).map_err(Unsendable::Unstorable)?;
        let (size, most_bytes) = (FIXED + body.len() + properties.len(), options.most_bytes);
        if size > most_bytes {
            return Err(expected(format!("{most_bytes} bytes at most, with properties; it has {size}")));
        }
        if self.rows > 0 && self.body.len() + size > most_bytes {
            return Ok(false);
        }
        if !write_batch_message(&BatchMessage { flag, body, properties: &properties }, &mut self.body) {
            return Err(expected(format!("properties of {MAX_LEN} bytes at most")));
        }
        if self.rows > 0 {
            self.ids.push(',');
        }
        self.ids.push_str(&id);
        self.rows += 1;
        Ok(true)
    }
}

fn expected(what: impl Into<String>) -> Unsendable {
    Unsendable::Expected(what.into())
}

fn text<'a>(what: &str, bytes: &'a [u8]) -> Result<&'a str, Unsendable> {
    std::str::from_utf8(bytes).map_err(|_| expected(format!("UTF-8 in {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: BatchRow<'_> = BatchRow { body: Some(b"body"), tags: None, keys: None, pairs: &[], flag: 0 };

    fn ids() -> UniqueIds {
        let ids = UniqueIds::new([10, 0, 0, 1].into(), 1, 1);
        ids.begin_month(0, i64::MAX);
        ids
    }

    fn refused(row: BatchRow<'_>) -> String {
        let (ids, mut batch) = (ids(), Batch::default());
        let options = BatchOptions { most_bytes: 40_000, most_rows: 2, instance_id: None, ids: &ids };
        batch.add(&row, &options, 0).expect_err("refused").to_string()
    }

    #[test]
    fn a_batch_is_full_by_rows_or_by_bytes() {
        let (ids, mut batch) = (ids(), Batch::default());
        let options = BatchOptions { most_bytes: 200, most_rows: 2, instance_id: Some("ns"), ids: &ids };
        assert_eq!(batch.add(&ROW, &options, 0), Ok(true));
        assert!(String::from_utf8_lossy(&batch.body).contains("INSTANCE_ID\u{1}ns"));
        // the second row exceeds the limit
        let large = [b'x'; 60];
        assert_eq!(batch.add(&BatchRow { body: Some(&large), ..ROW }, &options, 0), Ok(false));
        let given = [(&b"UNIQ_KEY"[..], Some(&b"mine"[..]))];
        let options = BatchOptions { most_bytes: 2000, ..options };
        assert_eq!(batch.add(&BatchRow { pairs: &given, ..ROW }, &options, 0), Ok(true));
        assert_eq!(batch.add(&ROW, &options, 0), Ok(false));
        assert_eq!((batch.rows, batch.ids.split(',').nth(1)), (2, Some("mine")));
    }

    #[test]
    fn a_row_that_cannot_be_sent_says_what_was_expected() {
        let long = [b'x'; 33_000];
        let (delay, forged) = ([(&b"DELAY"[..], Some(&b"3"[..]))], [(&b"a"[..], Some(&b"x\x02y"[..]))]);
        assert_eq!(refused(BatchRow { body: Some(b""), ..ROW }), "expected a body of one byte or more");
        assert_eq!(refused(BatchRow { flag: 1 << 40, ..ROW }), "expected a flag of 32 bits");
        assert_eq!(refused(BatchRow { tags: Some(b"\xff"), ..ROW }), "expected UTF-8 in tags");
        assert!(refused(BatchRow { pairs: &delay, ..ROW }).starts_with("expected no DELAY: "));
        assert!(refused(BatchRow { pairs: &forged, ..ROW }).starts_with("the property \"a\" has a character"));
        assert_eq!(refused(BatchRow { tags: Some(&long), ..ROW }), "expected properties of 32767 bytes at most");
        let two = [b'x'; 40_000];
        assert!(refused(BatchRow { body: Some(&two), ..ROW }).starts_with("expected 40000 bytes at most, with "));
    }
}
