//! A batch of vectors, filled from the rows of one block, its memory used again for the next.
use super::bodies::Bodies;
use super::of_column::vector;
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
}

impl Batch {
    /// An empty batch.
    pub fn new(request: &ScanRequest) -> Self {
        let slot = |column: &_| vector(*column, request).map_or(Slot::Body, Slot::Plain);
        let slots: Vec<Slot> = request.columns.iter().map(slot).collect();
        let with_body = slots.iter().any(|slot| matches!(slot, Slot::Body));
        let cap = request.max_body_bytes.min(ScanRequest::MAX_MAX_BODY_BYTES);
        Self { slots, bodies: with_body.then(|| Bodies::new(cap)), addresses: Vec::new() }
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

    /// Where the arrays are, column after column: numbers have one (values), texts two (addresses, lengths), the map five
    /// (starts, those of its names, those of its values).
    pub fn addresses(&self) -> &[i64] {
        &self.addresses
    }
}
