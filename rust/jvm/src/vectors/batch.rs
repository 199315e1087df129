//! A batch of vectors. Its memory is reused for the next batch.
use super::columns::{Bodies, Vector, vector};
use super::unsafe_rows::UnsafeRows;
use super::views::Memory;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::store::Damage;

enum Slot {
    Plain(Box<dyn Vector>),
    Body,
}

/// The vectors of a request's columns.
pub struct Batch {
    slots: Vec<Slot>,
    bodies: Option<Bodies>,
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
        let slots: Vec<Slot> = request.columns.iter().map(slot).collect();
        // memory for decompressed bodies only if the body is read
        let with_body = slots.iter().any(|slot| matches!(slot, Slot::Body));
        let cap = request.max_body_bytes.min(ScanRequest::MAX_MAX_BODY_BYTES);
        Self {
            slots,
            bodies: with_body.then(|| Bodies::new(cap)),
            addresses: Vec::new(),
            len: 0,
            rows: UnsafeRows::default(),
        }
    }

    /// Replaces the batch by the first rows of `chunk`. Returns the number of rows, which is smaller than that of
    /// `chunk` only if decompressed bodies grow too large. The bytes of `chunk` must not move before the next call.
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
                Slot::Body => self.bodies.iter_mut().for_each(Bodies::clear),
            }
        }
    }

    /// Appends the first rows of `chunk`. Returns the number of appended rows, which is smaller than that of `chunk`
    /// only if decompressed bodies grow too large. The bytes of `chunk` must not move before the batch is cleared.
    pub fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) -> usize {
        let rows = match &mut self.bodies {
            // bodies first, since only they may limit the number of rows
            Some(bodies) => bodies.extend(chunk, damage),
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
            match (slot, &mut self.bodies) {
                (Slot::Plain(vector), _) => vector.seal(&mut self.addresses),
                (Slot::Body, Some(bodies)) => bodies.seal(&mut self.addresses),
                (Slot::Body, None) => {}
            }
        }
    }

    /// Converts rows of an ended batch, starting at row `from`, to Spark's row format. May convert fewer rows than
    /// are left. `memory` holds the blocks from which the batch was filled.
    pub fn rows(&mut self, from: usize, memory: &Memory<'_>) -> Rows {
        let Self { slots, bodies, rows, .. } = self;
        let remaining = self.len.saturating_sub(from);
        let count = rows.begin(slots.len(), remaining, |sizes| {
            for slot in &*slots {
                match (slot, &*bodies) {
                    (Slot::Plain(vector), _) => vector.measure(from, sizes),
                    (Slot::Body, Some(bodies)) => bodies.measure(from, sizes),
                    (Slot::Body, None) => {}
                }
            }
        });
        // column by column, so that a column's data stays in the CPU cache
        for (field, slot) in slots.iter().enumerate() {
            match (slot, &*bodies) {
                (Slot::Plain(vector), _) => vector.write(from, field, rows, memory),
                (Slot::Body, Some(bodies)) => bodies.write(from, field, rows, memory),
                (Slot::Body, None) => {}
            }
        }
        Rows { count, addresses: rows.addresses() }
    }

    /// Returns the addresses of the arrays, column by column. A number column has one address (values), a string
    /// column has two (addresses and lengths of the strings). The map column has five: starts of the rows, then two
    /// each for names and values.
    pub fn addresses(&self) -> &[i64] {
        &self.addresses
    }
}
