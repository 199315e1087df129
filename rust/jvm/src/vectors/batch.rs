//! A batch of vectors. Its memory is reused for the next batch.
use super::columns::{Bodies, Vector, vector};
use super::unsafe_rows::UnsafeRows;
use super::values::Values;
use super::views::Memory;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::scan::decode::BadBodies;
use rmqfast_store::store::Damage;

enum Slot {
    Plain(Box<dyn Vector>),
    Body,
    Value,
}

/// The vectors of a request's columns.
pub struct Batch {
    slots: Vec<Slot>,
    /// The bodies, also if only their values are read.
    bodies: Option<Bodies>,
    values: Option<Values>,
    addresses: Vec<i64>,
    len: usize,
    rows: UnsafeRows,
}

/// Rows of a batch in Spark's row format. They are valid until the next call of [`rows`](Batch::rows).
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    pub count: usize,
    /// Address of the rows' bytes, and address of the array of their lengths.
    pub addresses: [i64; 2],
}

impl Batch {
    pub fn new(request: &ScanRequest) -> Self {
        let slot = |column: &_| vector(*column, request).map_or(Slot::Body, Slot::Plain);
        let mut slots: Vec<Slot> = request.columns.iter().map(slot).collect();
        if let Some(decode) = &request.decode {
            decode.insert(&mut slots, Slot::Value);
        }
        // memory for decompressed bodies only if the body is read
        let with_body = slots.iter().any(|slot| matches!(slot, Slot::Body | Slot::Value));
        let cap = request.max_body_bytes.min(ScanRequest::MAX_MAX_BODY_BYTES);
        Self {
            slots,
            bodies: with_body.then(|| Bodies::new(cap)),
            values: request.decode.as_ref().map(Values::new),
            addresses: Vec::new(),
            len: 0,
            rows: UnsafeRows::default(),
        }
    }

    /// Replaces the batch by the first rows of `chunk`. Returns the number of rows, which is smaller than that of
    /// `chunk` only if decompressed or decoded bodies grow too large. The bytes of `chunk` must not move before the next call.
    pub fn fill(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) -> usize {
        self.clear();
        let rows = self.extend(chunk, damage);
        self.seal();
        rows
    }

    /// Removes the rows but keeps the memory.
    pub fn clear(&mut self) {
        self.addresses.clear();
        self.len = 0;
        for slot in &mut self.slots {
            match slot {
                Slot::Plain(vector) => vector.clear(),
                Slot::Body | Slot::Value => {}
            }
        }
        self.bodies.iter_mut().for_each(Bodies::clear);
        self.values.iter_mut().for_each(Values::clear);
    }

    /// Appends the first rows of `chunk`. Returns the number of appended rows, which is smaller than that of `chunk`
    /// only if decompressed or decoded bodies grow too large. The bytes of `chunk` must not move before the batch is cleared.
    pub fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) -> usize {
        let rows = match &mut self.bodies {
            // bodies first, since only they may limit the number of rows
            Some(bodies) => bodies.extend(chunk, damage, |message, body| {
                self.values.as_mut().is_some_and(|values| values.push(message, body))
            }),
            None => chunk.rows.len(),
        };
        let chunk = Chunk { bytes: chunk.bytes, rows: &chunk.rows[..rows] };
        for slot in &mut self.slots {
            if let Slot::Plain(vector) = slot {
                vector.extend(chunk);
            }
        }
        self.len += rows;
        rows
    }

    /// Ends the batch and collects the addresses of its arrays. No rows may be appended afterwards.
    pub fn seal(&mut self) {
        for slot in &mut self.slots {
            // in the order of the schema, which is how Java assigns the addresses
            match slot {
                Slot::Plain(vector) => vector.seal(&mut self.addresses),
                Slot::Body => self.bodies.iter_mut().for_each(|bodies| bodies.seal(&mut self.addresses)),
                Slot::Value => self.values.iter_mut().for_each(|values| values.seal(&mut self.addresses)),
            }
        }
    }

    /// Returns the bodies that could not be decoded, found since the last call.
    pub fn take_bad_bodies(&mut self) -> BadBodies {
        self.values.as_mut().map(Values::take_bad).unwrap_or_default()
    }

    /// Converts rows of an ended batch, starting at row `from`, to Spark's row format. May convert fewer rows than
    /// are left. `memory` holds the blocks from which the batch was filled.
    ///
    /// # Panics
    /// If the batch has decoded bodies. Spark itself makes rows of them, see `RustRowsRule` of the jar.
    pub fn rows(&mut self, from: usize, memory: &Memory<'_>) -> Rows {
        let Self { slots, bodies, rows, .. } = self;
        let remaining = self.len.saturating_sub(from);
        let count = rows.begin(slots.len(), remaining, |sizes| {
            for slot in &*slots {
                match (slot, &*bodies) {
                    (Slot::Plain(vector), _) => vector.measure(from, sizes),
                    (Slot::Body, Some(bodies)) => bodies.measure(from, sizes),
                    (Slot::Body, None) => {}
                    (Slot::Value, _) => panic!("rows of decoded bodies are made by Spark"),
                }
            }
        });
        // column by column, so that a column's data stays in the CPU cache
        for (field, slot) in slots.iter().enumerate() {
            match (slot, &*bodies) {
                (Slot::Plain(vector), _) => vector.write(from, field, rows, memory),
                (Slot::Body, Some(bodies)) => bodies.write(from, field, rows, memory),
                (Slot::Body, None) | (Slot::Value, _) => {}
            }
        }
        Rows { count, addresses: rows.addresses() }
    }

    /// Returns the addresses of the arrays, column by column. A number column has one address (values), a string
    /// column has two (addresses and lengths of the strings). The map column has five: starts of the rows, then two
    /// each for names and values. Those of decoded bodies are listed at [`Values`].
    pub fn addresses(&self) -> &[i64] {
        &self.addresses
    }
}
