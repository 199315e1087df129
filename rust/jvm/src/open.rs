//! Opens the piece that a task reads, of a store or of topics.
use crate::store_task::StoreTask;
use crate::task::{Result, Task};
use crate::topic_task::TopicTask;
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::read::topic_read;
use rmqfast_spark::request::options::names_a_cluster;
use rmqfast_spark::store::piece::StorePiece;
use rmqfast_spark::store::stores_read::StoresRead;
use rmqfast_store::scan::push_down::Filter;

/// The read of a piece: options of the driver, names and types of columns, and filters.
pub struct Request {
    pub pairs: Vec<(String, String)>,
    pub fields: Vec<String>,
    pub filters: Vec<Filter>,
}

/// Opens a piece of a read. The task returns at most `limit` rows. For the other arguments see [`TopicTask::open`].
///
/// # Errors
/// The bytes are not a piece; see also [`StoreTask::open`] and [`TopicTask::open`].
pub fn open(
    request: &Request,
    piece: &[u8],
    limit: u64,
    is_repeated: bool,
    reads_ahead: bool,
) -> Result<Box<dyn Task>> {
    let Request { pairs, fields, filters } = request;
    if names_a_cluster(pairs) {
        let read = topic_read(pairs, fields, filters)?;
        let piece = TopicPiece::of_bytes(piece)?;
        return Ok(Box::new(TopicTask::open(read, piece, limit, is_repeated, reads_ahead)?));
    }
    let piece = StorePiece::of_bytes(piece)?;
    let read = StoresRead::read_of(&piece, pairs, fields, filters)?;
    Ok(Box::new(StoreTask::open(read, piece.piece, limit)?))
}
