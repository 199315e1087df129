//! A batch of vectors, filled from the rows of one block, its memory used again for the next.
use super::bodies::Bodies;
use super::memory::Memory;
use super::of_column::vector;
use super::unsafe_rows::UnsafeRows;
use super::vector::Vector;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::store::Damage;

enum Slot {
    Plain(Box<dyn Vector>),
    Body,
}

/// The vectors of the columns that a request asks for.
pub struct Batch {
    slots: Vec<Slot>,
    bodies: Option<Bodies>,
    addresses: Vec<i64>,
    len: usize,
    rows: UnsafeRows,
}

/// Some rows of a batch in Spark's format of rows; they stand until the next ones are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    pub count: usize,
    /// Addresses of the rows' bytes, and of the array of their lengths.
    pub addresses: [i64; 2],
}

impl Batch {
    pub fn new(request: &ScanRequest) -> Self {
        let slot = |column: &_| vector(*column, request).map_or(Slot::Body, Slot::Plain);
        let slots: Vec<Slot> = request.columns.iter().map(slot).collect();
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

    /// Fills the batch anew from the first rows of `chunk`, all of them unless decompressed bodies grow too large; returns
    /// how many. The bytes of `chunk` must stay in place until the next call.
    pub fn fill(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) -> usize {
        self.clear();
        let rows = self.extend(chunk, damage);
        self.seal();
        rows
    }

    /// Forgets its rows, keeps its memory.
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

    /// Appends the first rows of `chunk`, all of them unless decompressed bodies grow too large; returns how many. The bytes of
    /// `chunk` must stay in place until the batch is cleared.
    pub fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) -> usize {
        let rows = match &mut self.bodies {
            // bodies first: they alone may end the batch before the chunk does
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

    /// Makes the addresses; nothing can be appended any more.
    pub fn seal(&mut self) {
        for slot in &mut self.slots {
            // in the order of the schema, which is all that Java knows of the addresses
            match (slot, &mut self.bodies) {
                (Slot::Plain(vector), _) => vector.seal(&mut self.addresses),
                (Slot::Body, Some(bodies)) => bodies.seal(&mut self.addresses),
                (Slot::Body, None) => {}
            }
        }
    }

    /// Makes rows of what the sealed batch has from row `from` on: some, as many as are best made at once. `memory` is what the
    /// batch was filled from.
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
        // column after column: what one of them needs stays in the cache for all rows
        for (field, slot) in slots.iter().enumerate() {
            match (slot, &*bodies) {
                (Slot::Plain(vector), _) => vector.write(from, field, rows, memory),
                (Slot::Body, Some(bodies)) => bodies.write(from, field, rows, memory),
                (Slot::Body, None) => {}
            }
        }
        Rows { count, addresses: rows.addresses() }
    }

    /// Addresses of the arrays, column by column: one for numbers (values), two for texts (addresses, lengths), five
    /// for the map (starts, then two each for names and values).
    pub fn addresses(&self) -> &[i64] {
        &self.addresses
    }
}
