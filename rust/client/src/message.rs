//! A message in the answer to a pull. Each value is parsed only when it is read.
//!
//! Source: `MessageExt`, `MessageDecoder.decode`.
use rmqfast_store::format::compression::{Compression, decompress_into};
use rmqfast_store::format::message::{self, COMPRESSED};
use rmqfast_store::format::properties;
use rmqfast_store::scan::columns::{distinct, store_host, write_host};
use rmqfast_store::scan::row::{Row, Span};
use rmqfast_store::scan::text_columns::IdPrefix;
use std::borrow::Cow;

// Property of messages that are, or were, part of a transaction.
const TRANSACTION_PREPARED: &str = "TRAN_MSG";

/// A record in the body of an answer, with the positions of its parts.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    body: &'a [u8],
    row: &'a Row,
    record: message::Message<'a>,
}

impl<'a> Message<'a> {
    /// Returns the message at `row` of its body, or `None` if the body is too short for it.
    pub fn new(body: &'a [u8], row: &'a Row) -> Option<Self> {
        Some(Self { body, row, record: row.message(body)? })
    }

    /// Returns the underlying record, which has the numeric fields.
    pub fn record(&self) -> message::Message<'a> {
        self.record
    }

    /// Returns the topic of the record.
    pub fn topic(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.record.topic())
    }

    /// Returns the message id that the producer set, or the broker's id if there is none.
    pub fn msg_id(&self) -> Cow<'a, str> {
        self.text(self.row.uniq_key).unwrap_or_else(|| self.offset_msg_id().into())
    }

    /// Returns the message id that the broker gives: its address and the physical offset, in hex.
    pub fn offset_msg_id(&self) -> String {
        let mut id = Vec::with_capacity(56);
        let host = store_host(self.body, self.row);
        IdPrefix::default().write(host, self.record.physical_offset().cast_unsigned(), &mut id);
        ascii(id)
    }

    pub fn tags(&self) -> Option<Cow<'a, str>> {
        self.text(self.row.tags)
    }

    /// Returns the keys, separated by spaces; `None` without keys.
    pub fn keys(&self) -> Option<Cow<'a, str>> {
        self.text(self.row.keys)
    }

    /// Returns `ip:port` of the producer.
    pub fn born_host(&self) -> String {
        host(self.record.born_host())
    }

    /// Returns `ip:port` of the broker.
    pub fn store_host(&self) -> String {
        host(self.record.store_host())
    }

    /// Returns the decompressed body, or `None` if it does not decompress to at most `cap` bytes.
    pub fn body(&self, cap: usize) -> Option<Cow<'a, [u8]>> {
        let stored = self.record.body();
        let sys_flag = self.row.layout.sys_flag;
        if sys_flag & COMPRESSED == 0 {
            return Some(stored.into());
        }
        let mut body = Vec::new();
        let kind = Compression::from_sys_flag(sys_flag).ok()?;
        decompress_into(kind, stored, cap, &mut body).ok().map(|()| body.into())
    }

    /// Returns the value of a property, or `None` if the message does not have it. If the name is repeated, the last
    /// value counts.
    pub fn property(&self, name: &str) -> Option<Cow<'a, str>> {
        properties::get(self.record.properties(), name).map(String::from_utf8_lossy)
    }

    /// Returns all properties in stored order. If a name is repeated, only its last value is returned.
    pub fn properties(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let mut pairs = Vec::new();
        distinct(self.body, self.row, None, &mut pairs);
        let text = |span: Span| self.text(span).unwrap_or_default();
        pairs.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    /// Returns the id of the message's transaction, or `None` outside of a transaction.
    pub fn transaction_id(&self) -> Option<Cow<'a, str>> {
        // `PullAPIWrapper.processPullResult` reads it by `Boolean.parseBoolean`, which ignores case
        let is_transaction = self.property(TRANSACTION_PREPARED)?.eq_ignore_ascii_case("true");
        self.text(self.row.uniq_key).filter(|_| is_transaction)
    }

    fn text(&self, span: Span) -> Option<Cow<'a, str>> {
        // invalid UTF-8 is replaced, as by Java's `new String`
        span.of(self.body).map(String::from_utf8_lossy)
    }
}

fn host(stored: &[u8]) -> String {
    let mut text = Vec::with_capacity(24);
    write_host(stored, &mut text);
    ascii(text)
}

fn ascii(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap_or_default()
}
