//! A batch read of the stores of one or several brokers. Tasks read its pieces in parallel.
use crate::error::{Error, Result};
use crate::request::options::{Kind, Pairs};
use crate::store::brokers::StoreOptions;
use crate::store::piece::StorePiece;
use crate::store::read::{StoreRead, resolve};
use rmqfast_store::scan::push_down::Filter;
use rmqfast_store::scan::{QueueCounts, ScanRequest};
use std::fmt;
use std::path::Path;

/// Number of stores whose paths a description has.
const MOST_NAMED: usize = 4;

/// Reads of stores, at least one. Several have the name of their broker.
#[derive(Debug)]
pub struct StoresRead {
    reads: Vec<(Option<String>, StoreRead)>,
}

impl StoresRead {
    /// Builds the read from options of [`resolve_stores`], see [`StoreRead::of`].
    ///
    /// # Errors
    /// See [`StoreOptions::of`] and [`StoreRead::of`].
    pub fn of(pairs: &[(String, String)], fields: &[String], filters: &[Filter]) -> Result<Self> {
        let stores = StoreOptions::of(Kind::Columnar, pairs)?.into_iter();
        let read = |store: StoreOptions| Ok((store.broker_name, StoreRead::of(&store.pairs, fields, filters)?));
        Ok(Self { reads: stores.map(read).collect::<Result<_>>()? })
    }

    /// Builds the read of the store that a piece is of.
    ///
    /// # Errors
    /// See [`of`](Self::of).
    pub fn read_of(
        piece: &StorePiece,
        pairs: &[(String, String)],
        fields: &[String],
        filters: &[Filter],
    ) -> Result<StoreRead> {
        let Some((name, path)) = &piece.broker else { return StoreRead::of(pairs, fields, filters) };
        StoreRead::of(&StoreOptions::of_piece(Kind::Columnar, pairs, name, path)?.pairs, fields, filters)
    }

    /// Returns the request of the read, which differs in offsets and the broker's name between the stores.
    pub fn request(&self) -> Option<&ScanRequest> {
        self.reads.first().map(|(_, read)| &read.request)
    }

    /// Narrows the read by filters. Returns for each filter whether the read applies it.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        let mut is_taken = vec![true; filters.len()];
        for (_, read) in &mut self.reads {
            let of_store = read.take(filters);
            is_taken.iter_mut().zip(of_store).for_each(|(all, one)| *all &= one);
        }
        is_taken
    }

    /// Cuts the read into pieces in the order of the logs, of one store after the other, for `cores` cores. Each piece
    /// is read by one task; together they contain each message once.
    ///
    /// # Errors
    /// A store does not have the topic, or cannot be read.
    pub fn partitions(&self, cores: u64) -> Result<Vec<StorePiece>> {
        let mut stores = Vec::new();
        for (name, read) in self.reads.iter().filter(|(_, read)| !read.is_empty) {
            stores.push((name, read, read.open()?));
        }
        let Some((_, first, _)) = stores.first() else { return Ok(Vec::new()) };
        first.cut.pieces(|bytes| {
            let mut all = Vec::new();
            for (name, read, store) in &stores {
                let path = || read.path.to_string_lossy().into_owned();
                let broker = name.as_ref().map(|name| (name.clone(), path()));
                let pieces = read.plan(store, bytes, cores)?.into_iter();
                all.extend(pieces.map(|piece| StorePiece { piece, broker: broker.clone(), hosts: read.hosts.clone() }));
            }
            Ok(all)
        })
    }

    /// Counts messages with the consume queues alone. `None` if the count needs the messages themselves.
    ///
    /// # Errors
    /// See [`partitions`](Self::partitions).
    pub fn known_counts(&self) -> Result<Option<QueueCounts>> {
        let mut all = QueueCounts::default();
        for (_, read) in &self.reads {
            let Some(QueueCounts { messages, min_offset, max_offset }) = read.known_counts()? else { return Ok(None) };
            all.messages += messages;
            all.min_offset = [all.min_offset, min_offset].into_iter().flatten().min();
            all.max_offset = [all.max_offset, max_offset].into_iter().flatten().max();
        }
        Ok(Some(all))
    }
}

/// Formats the paths of the stores.
impl fmt::Display for StoresRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(None, read)] = &self.reads[..] {
            return write!(f, "store {}", read.path.display());
        }
        let stores = self.reads.iter().map(|(name, read)| (name.as_deref().unwrap_or_default(), &*read.path));
        f.write_str(&describe_stores(stores))
    }
}

/// Formats names of brokers and the paths of their stores.
pub fn describe_stores<'a>(stores: impl Iterator<Item = (&'a str, &'a Path)>) -> String {
    let mut all: Vec<String> = stores.map(|(name, path)| format!("{name} at {}", path.display())).collect();
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    all.truncate(MOST_NAMED);
    format!("stores of {}{more}", all.join(", "))
}

/// Replaces offsets in the options by the stores' current numbers, see [`resolve`], and fixes which stores are read.
/// Stores that do not have the topic are left out.
///
/// # Errors
/// See [`StoreOptions::of`] and [`resolve`]. Also a topic that no store has.
pub fn resolve_stores(pairs: &[(String, String)], fields: &[String]) -> Result<Pairs> {
    let stores = StoreOptions::of(Kind::Columnar, pairs)?;
    if let [StoreOptions { broker_name: None, pairs }] = &stores[..] {
        return resolve(pairs, fields);
    }
    let (mut resolved, mut without_topic) = (Vec::new(), None);
    for store in stores {
        match resolve(&store.pairs, fields) {
            Ok(pairs) => resolved.push(StoreOptions { pairs, ..store }),
            Err(error) if is_unknown_topic(&error) => without_topic = without_topic.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match without_topic {
        Some(error) if resolved.is_empty() => Err(error),
        _ => Ok(StoreOptions::join(pairs, &resolved)),
    }
}

fn is_unknown_topic(error: &Error) -> bool {
    matches!(error, Error::Store(rmqfast_store::Error::Unknown { what: "topic", .. }))
}
