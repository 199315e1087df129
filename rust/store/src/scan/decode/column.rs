//! The columns `body` and `value`: the bodies of messages, and what they are decoded to.
use super::super::column::{Chunk, ColumnBuilder};
use super::super::columns::BodyColumn;
use super::bad_bodies::{BadBodies, BadBody};
use super::fields::MAX_BODY_COST;
use super::format::{BodyDecoder, Decode};
use crate::Result;
use crate::format::message::Message;
use crate::store::Damage;
use arrow_array::{ArrayRef, BinaryArray, StructArray};
use std::sync::Arc;

/// Builds both columns.
pub struct DecodedColumn {
    bodies: BodyColumn,
    values: ValueColumn,
}

impl DecodedColumn {
    pub fn new(bodies: BodyColumn, decode: &Decode) -> Self {
        Self { bodies, values: ValueColumn::new(decode) }
    }

    pub fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) {
        self.bodies.extend(chunk, damage);
        for message in chunk.messages() {
            self.values.push(Some(&message), self.bodies.get(self.values.len()));
        }
    }

    /// Returns the approximate bytes of the batch so far.
    pub fn len_bytes(&self) -> usize {
        self.bodies.len_bytes() + self.values.cost()
    }

    /// Returns the most bytes by which a row can make [`len_bytes`](Self::len_bytes) grow.
    pub fn max_cost(&self, body_len: usize) -> usize {
        self.values.max_cost(body_len)
    }

    pub fn finish(&mut self) -> Result<(BinaryArray, StructArray)> {
        Ok((self.bodies.finish_binary(), self.values.finish()?))
    }

    /// Puts the values between the other columns of a batch.
    pub fn insert_value(&self, arrays: &mut Vec<ArrayRef>, values: StructArray) {
        self.values.decode.insert(arrays, Arc::new(values));
    }

    pub fn take_bad(&mut self) -> BadBodies {
        self.values.take_bad()
    }
}

/// Builds the column `value` of bodies that the caller keeps. A body that is null stays null, since damage says why. A body
/// that cannot be decoded is a null value, and is counted.
pub struct ValueColumn {
    decode: Decode,
    decoder: Box<dyn BodyDecoder>,
    rows: usize,
    cost: usize,
    bad: BadBodies,
}

impl ValueColumn {
    pub fn new(decode: &Decode) -> Self {
        let (decoder, decode) = (decode.format.decoder(), decode.clone());
        let limit = if decode.lists_all { BadBodies::LARGEST_LIMIT } else { BadBodies::LIMIT };
        Self { decode, decoder, rows: 0, cost: 0, bad: BadBodies::with_limit(limit) }
    }

    /// Appends the values of the next row's body; a null without one.
    pub fn push(&mut self, message: Option<&Message<'_>>, body: Option<&[u8]>) {
        self.rows += 1;
        if let Some((message, body)) = message.zip(body) {
            match append(&self.decode, &mut *self.decoder, body) {
                Ok(cost) => {
                    self.cost += cost;
                    return;
                }
                Err(reason) => self.bad.push(|| bad_body(message, reason)),
            }
        }
        self.decoder.rows().append_null();
        self.cost += self.decode.format.row_cost();
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the approximate bytes of memory that the values take.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Returns the most bytes by which a row can make [`cost`](Self::cost) grow.
    pub fn max_cost(&self, body_len: usize) -> usize {
        self.decode.format.row_cost() + body_len.saturating_mul(self.decode.format.cost_per_byte()).min(MAX_BODY_COST)
    }

    /// Returns the values, and begins a new batch. Fails only because of a bug in this crate.
    pub fn finish(&mut self) -> Result<StructArray> {
        (self.rows, self.cost) = (0, 0);
        self.decoder.rows().finish()
    }

    /// Drops the values.
    pub fn clear(&mut self) {
        (self.rows, self.cost) = (0, 0);
        self.decoder.rows().clear();
    }

    pub fn take_bad(&mut self) -> BadBodies {
        self.bad.take()
    }
}

fn bad_body(message: &Message<'_>, reason: String) -> BadBody {
    BadBody {
        topic: String::from_utf8_lossy(message.topic()).into_owned(),
        queue_id: message.queue_id(),
        queue_offset: message.queue_offset(),
        physical_offset: message.physical_offset(),
        reason,
    }
}

/// Appends the values of a body with its prefix. Returns the bytes of memory that they take.
fn append(decode: &Decode, decoder: &mut dyn BodyDecoder, body: &[u8]) -> std::result::Result<usize, String> {
    let (id, payload) = decode.framing.split(body)?;
    if let (Some(got), Some(expected)) = (id, decode.schema_id)
        && got != expected
    {
        let names = decode.framing.id_name();
        let name = |id| decode.framing.write_id(id);
        return Err(format!(
            "expected {names} {}, got {}; a scan decodes by one schema: scan again with the other one",
            name(expected),
            name(got)
        ));
    }
    decoder.append(payload)
}
