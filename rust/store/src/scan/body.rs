//! The column `body`: the body as stored, or decompressed up to a maximum length.
use super::column_builder::{Chunk, ColumnBuilder};
use super::text::Text;
use crate::format::compression::{Compression, decompress_into};
use crate::format::message::{COMPRESSED, Message};
use crate::store::Damage;
use arrow_array::ArrayRef;
use std::sync::Arc;

/// Builds the column. A body is null if it cannot be decompressed or, with `checks_crc`, if its CRC is wrong. The
/// reported damage says why.
pub struct BodyColumn {
    text: Text,
    cap: usize,
    checks_crc: bool,
}

impl BodyColumn {
    pub fn new(cap: usize, checks_crc: bool) -> Self {
        Self { text: Text::default(), cap, checks_crc }
    }

    #[cold]
    fn push_compressed(&mut self, message: &Message<'_>, damage: &mut Vec<Damage>) {
        let body = message.body();
        let kind = Compression::from_sys_flag(message.layout().sys_flag);
        let result = kind.and_then(|kind| decompress_into(kind, body, self.cap, &mut self.text.bytes));
        if let Err(malformed) = result {
            let offset = message.physical_offset() as u64;
            damage.push(Damage { offset, length: 0, reason: malformed.to_string(), file: Default::default() });
        }
        self.text.end(result.is_ok());
    }
}

impl ColumnBuilder for BodyColumn {
    fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) {
        let bytes = chunk.rows.iter().map(|row| row.layout.body_len as usize).sum();
        // Reserve once for all rows, since a buffer that grows step by step is copied each time.
        self.text.reserve(bytes, chunk.rows.len());
        for row in chunk.rows {
            let Some(message) = row.message(chunk.bytes) else { continue };
            if self.checks_crc && !message.body_crc_matches() {
                let (offset, reason) = (message.physical_offset() as u64, "the body does not match its CRC".into());
                damage.push(Damage { offset, length: 0, reason, file: Default::default() });
                self.text.end(false);
            } else if row.layout.sys_flag & COMPRESSED != 0 {
                self.push_compressed(&message, damage);
            } else {
                self.text.bytes.extend_from_slice(message.body());
                self.text.end(true);
            }
        }
    }
    fn len_bytes(&self) -> usize {
        self.text.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.text.finish_binary())
    }
}
