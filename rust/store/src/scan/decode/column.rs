//! The columns `body` and `value`: the bodies of messages, and what they are decoded to.
use super::super::column::{Chunk, ColumnBuilder};
use super::super::columns::BodyColumn;
use super::bad_bodies::{BadBodies, BadBody};
use super::format::{BodyDecoder, Decode, MAX_BODY_COST};
use crate::Result;
use crate::format::message::Message;
use crate::store::Damage;
use arrow_array::{BinaryArray, StructArray};

/// Builds both columns. A body that is null stays null, since damage says why. A body that cannot be decoded is a null value,
/// and is counted.
pub struct DecodedColumn {
    bodies: BodyColumn,
    decode: Decode,
    decoder: Box<dyn BodyDecoder>,
    rows: usize,
    cost: usize,
    bad: BadBodies,
}

impl DecodedColumn {
    pub fn new(bodies: BodyColumn, decode: &Decode) -> Self {
        let (decoder, decode) = (decode.format.decoder(), decode.clone());
        Self { bodies, decode, decoder, rows: 0, cost: 0, bad: BadBodies::default() }
    }

    pub fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) {
        self.bodies.extend(chunk, damage);
        for message in chunk.messages() {
            let appended = self.bodies.get(self.rows).map(|body| append(&self.decode, &mut *self.decoder, body));
            self.rows += 1;
            if let Some(Ok(cost)) = appended {
                self.cost += cost;
                continue;
            }
            self.decoder.append_null();
            self.cost += self.decode.format.row_cost();
            if let Some(Err(reason)) = appended {
                self.bad.push(|| bad_body(&message, reason));
            }
        }
    }

    /// Returns the approximate bytes of the batch so far.
    pub fn len_bytes(&self) -> usize {
        self.bodies.len_bytes() + self.cost
    }

    /// Returns the most bytes by which a row can make [`len_bytes`](Self::len_bytes) grow.
    pub fn max_cost(&self, body_len: usize) -> usize {
        self.decode.format.row_cost() + body_len.saturating_mul(self.decode.format.cost_per_byte()).min(MAX_BODY_COST)
    }

    pub fn finish(&mut self) -> Result<(BinaryArray, StructArray)> {
        (self.rows, self.cost) = (0, 0);
        Ok((self.bodies.finish_binary(), self.decoder.finish()?))
    }

    pub fn take_bad(&mut self) -> BadBodies {
        std::mem::take(&mut self.bad)
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
