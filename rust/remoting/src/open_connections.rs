//! The connections that a server has, from accept to close.
use crate::connection::Connection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open connections of a server.
#[derive(Debug, Default)]
pub struct OpenConnections {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    connections: HashMap<u64, Arc<Connection>>,
    /// Takes no connection any more.
    is_closed: bool,
}

impl OpenConnections {
    /// Puts a connection in. Returns false where `max` are open, or the server is closed.
    pub fn insert(&self, connection: &Arc<Connection>, max: usize) -> bool {
        let mut table = self.lock();
        let is_taken = table.connections.len() < max && !table.is_closed;
        if is_taken {
            table.connections.insert(connection.id(), connection.clone());
        }
        is_taken
    }

    /// Takes a connection out.
    pub fn remove(&self, connection: &Connection) {
        self.lock().connections.remove(&connection.id());
    }

    pub fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// Returns all of them, for a look without the lock.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.lock().connections.values().cloned().collect()
    }

    /// Ends all, and takes none any more.
    pub fn close(&self) {
        let mut table = self.lock();
        // with the lock: one that is accepted meanwhile is among them, or is refused
        table.is_closed = true;
        let open: Vec<_> = table.connections.values().cloned().collect();
        drop(table);
        open.iter().for_each(|connection| connection.close());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
