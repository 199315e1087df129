//! The columns `body` and `value`: the bodies of messages, and what they are decoded to.
use super::super::column::{Chunk, ColumnBuilder};
use super::super::columns::BodyColumn;
use super::bad_bodies::{BadBodies, BadBody};
use super::format::{BodyDecoder, Decode, MAX_BODY_COST};
use crate::format::message::Message;
use crate::store::Damage;
use arrow_array::{BinaryArray, StructArray};

/// Builds both columns. Bodies are checked when they are appended, and decoded together when a batch is finished. A body that
/// is null stays null, since damage says why. A body that cannot be decoded is a null value, and is counted.
pub struct DecodedColumn {
    bodies: BodyColumn,
    decode: Decode,
    decoder: Box<dyn BodyDecoder>,
    rows: Vec<DecodedRow>,
    /// The topics of the rows, each next to the same one only once.
    topics: Vec<String>,
    cost: usize,
    bad: BadBodies,
}

/// The identity of a row, for errors that are found later.
struct DecodedRow {
    topic: usize,
    queue_id: i32,
    queue_offset: i64,
    physical_offset: i64,
    is_good: bool,
}

impl DecodedColumn {
    pub fn new(bodies: BodyColumn, decode: &Decode) -> Self {
        Self {
            bodies,
            decoder: decode.format.decoder(),
            decode: decode.clone(),
            rows: Vec::new(),
            topics: Vec::new(),
            cost: 0,
            bad: BadBodies::default(),
        }
    }

    pub fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) {
        self.bodies.extend(chunk, damage);
        for message in chunk.messages() {
            let mut row = self.row(&message);
            if let Some(body) = self.bodies.get(self.rows.len()) {
                match check(&self.decode, &mut *self.decoder, body) {
                    Ok(cost) => {
                        self.cost += cost;
                        row.is_good = true;
                    }
                    Err(reason) => self.bad.push(|| row.bad_body(&self.topics, reason)),
                }
            }
            self.cost += self.decode.format.row_cost();
            self.rows.push(row);
        }
    }

    /// Returns the approximate bytes of the batch so far, and of the memory that decoding it takes.
    pub fn len_bytes(&self) -> usize {
        self.bodies.len_bytes() + self.cost
    }

    /// Returns the most bytes by which a row can make [`len_bytes`](Self::len_bytes) grow.
    pub fn max_cost(&self, body_len: usize) -> usize {
        self.decode.format.row_cost() + body_len.saturating_mul(self.decode.format.cost_per_byte()).min(MAX_BODY_COST)
    }

    pub fn finish(&mut self) -> (BinaryArray, StructArray) {
        let bodies = self.bodies.finish_binary();
        let values = self.values(&bodies);
        self.rows.clear();
        self.topics.clear();
        self.cost = 0;
        (bodies, values)
    }

    pub fn take_bad(&mut self) -> BadBodies {
        std::mem::take(&mut self.bad)
    }

    fn values(&mut self, bodies: &BinaryArray) -> StructArray {
        let prefix = self.decode.framing.prefix_len();
        // The bodies were checked, so the prefix is there.
        let payload = |(at, row): (usize, &DecodedRow)| row.is_good.then(|| &bodies.value(at)[prefix..]);
        let mut payloads: Vec<_> = self.rows.iter().enumerate().map(payload).collect();
        if let Ok(values) = self.decoder.decode(&payloads) {
            return values;
        }
        // A value does not fit the schema. Find those rows one by one, and decode the others again.
        for (payload, row) in payloads.iter_mut().zip(&self.rows) {
            if payload.is_some()
                && let Err(reason) = self.decoder.decode(&[*payload])
            {
                self.bad.push(|| row.bad_body(&self.topics, reason));
                *payload = None;
            }
        }
        self.decoder.decode(&payloads).unwrap_or_else(|reason| {
            // Each row can be decoded, but not all together.
            for (_, row) in payloads.iter().zip(&self.rows).filter(|(payload, _)| payload.is_some()) {
                self.bad.push(|| row.bad_body(&self.topics, reason.clone()));
            }
            StructArray::new_null(self.decode.format.fields().clone(), payloads.len())
        })
    }

    fn row(&mut self, message: &Message<'_>) -> DecodedRow {
        let topic = String::from_utf8_lossy(message.topic());
        if self.topics.last().is_none_or(|last| *last != topic) {
            self.topics.push(topic.into_owned());
        }
        DecodedRow {
            topic: self.topics.len() - 1,
            queue_id: message.queue_id(),
            queue_offset: message.queue_offset(),
            physical_offset: message.physical_offset(),
            is_good: false,
        }
    }
}

impl DecodedRow {
    fn bad_body(&self, topics: &[String], reason: String) -> BadBody {
        BadBody {
            topic: topics[self.topic].clone(),
            queue_id: self.queue_id,
            queue_offset: self.queue_offset,
            physical_offset: self.physical_offset,
            reason,
        }
    }
}

/// Checks a body with its prefix. Returns the bytes of memory that its values may take.
fn check(decode: &Decode, decoder: &mut dyn BodyDecoder, body: &[u8]) -> Result<usize, String> {
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
    match decoder.check(payload)? {
        cost if cost > MAX_BODY_COST => {
            Err(format!("expected values of at most {MAX_BODY_COST} bytes in memory, got a body of {cost}"))
        }
        cost => Ok(cost),
    }
}
