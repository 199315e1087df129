//! Single records as rows, for look-ups.
use super::batch::BatchBuilder;
use super::request::ScanRequest;
use super::row::Row;
use crate::Result;
use crate::format::message::{Item, Layout};
use crate::store::Damage;
use arrow_array::RecordBatch;

/// Batches of whole records, in their order; what is no record is left out. Bodies that do not decompress are damage.
pub fn batches_of<'a>(
    records: impl IntoIterator<Item = &'a [u8]>,
    request: &ScanRequest,
) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let mut builder = BatchBuilder::new(request);
    let mut batches = Vec::new();
    for record in records {
        let Ok(Item::Message(layout)) = Layout::decode(record) else { continue };
        let mut row = Row::new(0, layout);
        row.find_properties(record);
        builder.append(record, &[row]);
        if builder.is_full() {
            batches.extend(builder.finish()?);
        }
    }
    batches.extend(builder.finish()?);
    Ok((batches, builder.take_damage()))
}
