//! The column of message bodies. A body is used in place as stored, or decompressed with a limit on its size.
use super::memory::Memory;
use super::unsafe_rows::{UnsafeRows, measure};
use super::views::Views;
use rmqfast_store::format::compression::{Compression, decompress_into};
use rmqfast_store::format::message::{COMPRESSED, Message};
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::store::Damage;

/// Maximum bytes of decompressed bodies in a batch. At this size the batch ends.
const SIDE: usize = 4 << 20;

/// The bodies of a batch. A body that cannot be decompressed is null and is reported as damage.
#[derive(Debug)]
pub(super) struct Bodies {
    views: Views,
    cap: usize,
}

impl Bodies {
    /// Creates the column. `cap` is the maximum length of a decompressed body in bytes.
    pub(super) fn new(cap: usize) -> Self {
        Self { views: Views::default(), cap }
    }

    pub(super) fn clear(&mut self) {
        self.views.clear();
    }

    /// Appends bodies until the decompressed bodies reach the limit of a batch. Returns the number of appended rows.
    pub(super) fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) -> usize {
        for (taken, row) in chunk.rows.iter().enumerate() {
            match row.message(chunk.bytes) {
                Some(message) if row.layout.sys_flag & COMPRESSED != 0 => self.push_compressed(&message, damage),
                Some(message) => self.views.push_stored(message.body()),
                None => self.views.push_null(),
            }
            // checked after the row, so that a batch has at least one
            if self.views.side.len() >= SIDE {
                return taken + 1;
            }
        }
        chunk.rows.len()
    }

    #[cold]
    fn push_compressed(&mut self, message: &Message<'_>, damage: &mut Vec<Damage>) {
        let start = self.views.side.len();
        let kind = Compression::from_sys_flag(message.layout().sys_flag);
        match kind.and_then(|kind| decompress_into(kind, message.body(), self.cap, &mut self.views.side)) {
            Ok(_) => self.views.push_side(start),
            Err(malformed) => {
                // remove the part that was decompressed before the error
                self.views.side.truncate(start);
                self.views.push_null();
                let offset = message.physical_offset().cast_unsigned();
                // length 0, since the record itself is intact
                damage.push(Damage { offset, length: 0, reason: malformed.to_string(), file: Default::default() });
            }
        }
    }

    pub(super) fn seal(&mut self, addresses: &mut Vec<i64>) {
        self.views.seal(addresses);
    }

    pub(super) fn measure(&self, from: usize, sizes: &mut [usize]) {
        measure(&self.views, from, sizes);
    }

    pub(super) fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>) {
        rows.put_views(field, &self.views, from, memory);
    }
}
