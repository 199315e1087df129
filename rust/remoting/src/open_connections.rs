//! The open connections of a server. A connection is listed from its accept to its close.
use crate::connection::Connection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct OpenConnections {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    connections: HashMap<u64, Arc<Connection>>,
    /// Whether further connections are refused, because the server was closed.
    is_closed: bool,
}

impl OpenConnections {
    /// Adds a connection. Returns false if `max` are open, or the server is closed.
    pub fn insert(&self, connection: &Arc<Connection>, max: usize) -> bool {
        let mut table = self.lock();
        let is_taken = table.connections.len() < max && !table.is_closed;
        if is_taken {
            table.connections.insert(connection.id(), connection.clone());
        }
        is_taken
    }

    pub fn remove(&self, connection: &Connection) {
        self.lock().connections.remove(&connection.id());
    }

    pub fn len(&self) -> usize {
        self.lock().connections.len()
    }

    /// Returns a copy of the list of connections, to use without the lock.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.lock().connections.values().cloned().collect()
    }

    /// Closes all connections and refuses further ones.
    pub fn close(&self) {
        let mut table = self.lock();
        // set under the lock: a connection accepted meanwhile is either in the table or refused
        table.is_closed = true;
        let open: Vec<_> = table.connections.values().cloned().collect();
        drop(table);
        open.iter().for_each(|connection| connection.close());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
