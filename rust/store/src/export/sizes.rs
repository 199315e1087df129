//! The sizes of files that a new store takes over from the one that it is a part of, so that the same broker opens both.
use crate::Result;
use crate::store::MessageStore;
use crate::store::append::AppendOptions;

/// The sizes that the files of `store` have; RocketMQ's own where there are no files to tell.
pub fn sizes_of(store: &MessageStore) -> Result<AppendOptions> {
    let mut sizes = AppendOptions::default();
    sizes.file_size = store.log_file_size()?.unwrap_or(sizes.file_size);
    sizes.queue_file_size = store.queue_file_size()?.unwrap_or(sizes.queue_file_size);
    if let Some((slots, entries)) = store.index_files()?.iter().find_map(|file| file.geometry) {
        (sizes.index_slots, sizes.index_entries) = (slots, entries);
    }
    Ok(sizes)
}
