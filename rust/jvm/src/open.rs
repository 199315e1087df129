//! Opens the piece that a task reads, of a store or of topics.
use crate::store_task::StoreTask;
use crate::task::{Result, Task};
use crate::topic_task::TopicTask;
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::read::Read;
use rmqfast_spark::store::piece;

/// Opens a piece of a read. The task returns at most `limit` rows. For the other arguments see [`TopicTask::open`].
///
/// # Errors
/// The bytes are not a piece; see also [`StoreTask::open`] and [`TopicTask::open`].
pub fn open(read: Read, piece: &[u8], limit: u64, is_repeated: bool, reads_ahead: bool) -> Result<Box<dyn Task>> {
    Ok(match read {
        Read::Store(read) => Box::new(StoreTask::open(*read, piece::of_bytes(piece)?, limit)?),
        Read::Topic(read) => {
            Box::new(TopicTask::open(*read, TopicPiece::of_bytes(piece)?, limit, is_repeated, reads_ahead)?)
        }
    })
}
