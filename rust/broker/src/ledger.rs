//! The ledger of pulls: which client was handed which stretch of a queue, by which filter, and who moved the offsets.
//!
//! Rows are run-length encoded. A row grows while the same client continues where it ended with the same filter, so a
//! consumer that keeps up has one row a queue. RocketMQ has no such record: its offsets tell how far a group is, not
//! who got a message.
use crate::tables::Subscription;
use foldhash::quality::RandomState;
use rmqfast_os::clock::tick_ms;
use std::collections;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Each pull finds its row by three names, for which the hash of std would take half of the ledger's time.
type HashMap<K, V> = collections::HashMap<K, V, RandomState>;

/// Rows that wait to be taken. More are dropped, and the time of the first is told as a gap.
const MAX_CLOSED: usize = 50_000;
/// Rows that may grow: of all queues, and of one queue, so that no client grows memory or the search by inventing names.
const MAX_OPEN: usize = 200_000;
const MAX_OPEN_OF_QUEUE: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A client was handed the messages of the stretch that pass the filter.
    Pull,
    /// A client moved the group's offset over the stretch.
    Commit,
    /// An administrator asked the members to move the offset over the stretch; backwards if `to` is less than `from`.
    Reset,
    /// A client stored the first offset of the group: the stretch begins at 0.
    Begin,
}

/// A stretch of a queue, `from` to `to` (exclusive). Times are milliseconds since 1970, of this broker's clock.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of the row. A row that has grown is taken again with the same number.
    pub id: u64,
    pub kind: Kind,
    pub group: Arc<str>,
    pub topic: Arc<str>,
    pub queue_id: i32,
    /// Client id, or the address of a client that did not tell its id.
    pub client: Arc<str>,
    /// The broker's filter of a pull.
    pub filter: Option<Arc<Subscription>>,
    pub from: i64,
    pub to: i64,
    pub first_ms: i64,
    pub last_ms: i64,
}

/// A row that may still grow.
#[derive(Debug)]
struct OpenRow {
    row: Row,
    is_changed: bool,
}

/// The open rows of a queue: of each client that pulls it, and of the offset.
#[derive(Debug, Default)]
struct OpenQueue {
    pulls: Vec<OpenRow>,
    offset: Option<OpenRow>,
}

type Queues = HashMap<i32, OpenQueue>;

#[derive(Debug, Default)]
struct Rows {
    /// Open rows by group, topic and queue id.
    open: HashMap<Arc<str>, HashMap<Arc<str>, Queues>>,
    /// Number of the open rows.
    open_len: usize,
    closed: Vec<Row>,
    last_id: u64,
    gap_ms: Option<i64>,
}

#[derive(Debug, Default)]
pub struct Ledger {
    /// Whether rows are kept: not before somebody takes them.
    is_kept: AtomicBool,
    rows: Mutex<Rows>,
    /// Client ids, by number of the connection that told them.
    clients: RwLock<HashMap<u64, Arc<str>>>,
}

/// Names of a queue, and the group that consumes it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub queue_id: i32,
}

/// Changed rows, and since when rows are missing.
#[derive(Debug, Default)]
pub struct ChangedRows {
    pub rows: Vec<Row>,
    /// Time of the first row that was dropped because too many waited.
    pub gap_ms: Option<i64>,
}

impl Ledger {
    pub fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// Begins to keep rows, with numbers behind `last_id`.
    pub fn continue_behind(&self, last_id: u64) {
        self.lock().last_id = last_id;
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Remembers the client id that a heartbeat told on a connection.
    pub fn put_client(&self, connection: u64, client_id: &str) {
        let known = self.clients.read().unwrap_or_else(PoisonError::into_inner).get(&connection).cloned();
        if known.as_deref() != Some(client_id) {
            self.clients.write().unwrap_or_else(PoisonError::into_inner).insert(connection, client_id.into());
        }
    }

    pub fn remove_client(&self, connection: u64) {
        self.clients.write().unwrap_or_else(PoisonError::into_inner).remove(&connection);
    }

    /// Returns the client id of a connection, if a heartbeat has told it.
    pub fn client_of(&self, connection: u64) -> Option<Arc<str>> {
        self.clients.read().unwrap_or_else(PoisonError::into_inner).get(&connection).cloned()
    }

    /// Notes that a client was handed what passes `filter` in `[from, to)`.
    pub fn note_pull(&self, place: Place<'_>, client: &str, filter: &Arc<Subscription>, (from, to): (i64, i64)) {
        if from >= to || !self.is_kept() {
            return;
        }
        let now = tick_ms();
        let mut rows = self.lock();
        if let Some(open) = rows.find(place).and_then(|queue| queue.pull_of(client))
            && open.is_continued_by(from, filter)
        {
            open.grow(to, now);
            return;
        }
        let row = rows.new_row(Kind::Pull, place, client, (from, to), now);
        let opened = OpenRow { row: Row { filter: Some(Arc::clone(filter)), ..row }, is_changed: true };
        let Rows { open, open_len, closed, gap_ms, .. } = &mut *rows;
        if *open_len >= MAX_OPEN {
            close(closed, gap_ms, opened);
            return;
        }
        let pulls = &mut queue_of(open, &opened.row).pulls;
        let same = pulls.iter().position(|open| *open.row.client == *opened.row.client);
        match same.or_else(|| oldest_of_many(pulls)) {
            Some(at) => close(closed, gap_ms, mem::replace(&mut pulls[at], opened)),
            None => {
                pulls.push(opened);
                *open_len += 1;
            }
        }
    }

    /// Notes that a client moved the group's offset from `from` to `to`. There was none before if `from` is `None`.
    pub fn note_commit(&self, place: Place<'_>, client: &str, (from, to): (Option<i64>, i64)) {
        if from != Some(to) && self.is_kept() {
            let kind = if from.is_some() { Kind::Commit } else { Kind::Begin };
            self.note_move(kind, place, client, (from.unwrap_or(0), to));
        }
    }

    /// Notes that an administrator asked the members to move the offset from `from` to `to`. Pulls and commits of before
    /// and behind it are in rows of their own.
    pub fn note_reset(&self, place: Place<'_>, client: &str, (from, to): (i64, i64)) {
        if self.is_kept() {
            self.note_move(Kind::Reset, place, client, (from, to));
        }
    }

    fn note_move(&self, kind: Kind, place: Place<'_>, client: &str, (from, to): (i64, i64)) {
        let now = tick_ms();
        let mut rows = self.lock();
        if let Some(open) = rows.find(place).and_then(|queue| queue.offset.as_mut()) {
            let goes_on = open.row.to == from && from < to && open.row.from <= open.row.to;
            if kind == Kind::Commit && open.row.kind == kind && goes_on && &*open.row.client == client {
                open.grow(to, now);
                return;
            }
        }
        let row = rows.new_row(kind, place, client, (from, to), now);
        let opened = OpenRow { row, is_changed: true };
        let Rows { open, open_len, closed, gap_ms, .. } = &mut *rows;
        let queue = queue_of(open, &opened.row);
        *open_len -= queue.len();
        if kind == Kind::Reset {
            queue.pulls.drain(..).for_each(|open| close(closed, gap_ms, open));
        }
        if let Some(old) = queue.offset.take() {
            close(closed, gap_ms, old);
        }
        if *open_len < MAX_OPEN {
            queue.offset = Some(opened);
        } else {
            close(closed, gap_ms, opened);
        }
        *open_len += queue.len();
    }

    /// Ends the open rows of pulls of a group: a member wants something else from now on.
    pub fn end_pulls(&self, group: &str) {
        let mut rows = self.lock();
        let Rows { open, open_len, closed, gap_ms, .. } = &mut *rows;
        for queue in open.get_mut(group).into_iter().flat_map(HashMap::values_mut).flat_map(HashMap::values_mut) {
            *open_len -= queue.pulls.len();
            queue.pulls.drain(..).for_each(|open| close(closed, gap_ms, open));
        }
    }

    /// Forgets the rows of a topic that is deleted: one of its name, made anew, has other messages at their offsets.
    pub fn remove_topic(&self, topic: &str) {
        let mut rows = self.lock();
        let Rows { open, open_len, closed, .. } = &mut *rows;
        for topics in open.values_mut() {
            *open_len -= topics.remove(topic).iter().flat_map(HashMap::values).map(OpenQueue::len).sum::<usize>();
        }
        closed.retain(|row| &*row.topic != topic);
    }

    /// Returns the rows that are new or have grown since the last call. Rows that did not grow since `idle_ms` are
    /// ended, so that memory follows the queues in use.
    pub fn take(&self, idle_ms: i64) -> ChangedRows {
        let mut rows = self.lock();
        let Rows { open, open_len, closed, gap_ms, .. } = &mut *rows;
        let mut taken = mem::take(closed);
        *open_len = 0;
        open.retain(|_, topics| {
            topics.retain(|_, queues| {
                queues.retain(|_, queue| {
                    queue.pulls.retain_mut(|open| open.take(&mut taken, idle_ms));
                    queue.offset.take_if(|open| !open.take(&mut taken, idle_ms));
                    *open_len += queue.len();
                    queue.len() > 0
                });
                !queues.is_empty()
            });
            !topics.is_empty()
        });
        ChangedRows { rows: taken, gap_ms: gap_ms.take() }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    fn find(&mut self, place: Place<'_>) -> Option<&mut OpenQueue> {
        self.open.get_mut(place.group)?.get_mut(place.topic)?.get_mut(&place.queue_id)
    }

    /// Returns a new row, which shares the names of those that are there.
    fn new_row(&mut self, kind: Kind, place: Place<'_>, client: &str, (from, to): (i64, i64), now: i64) -> Row {
        self.last_id += 1;
        let known = self.open.get_key_value(place.group);
        let group = known.map_or_else(|| place.group.into(), |(name, _)| Arc::clone(name));
        let known = known.and_then(|(_, topics)| topics.get_key_value(place.topic));
        let topic = known.map_or_else(|| place.topic.into(), |(name, _)| Arc::clone(name));
        let client = client.into();
        let (id, queue_id) = (self.last_id, place.queue_id);
        Row { id, kind, group, topic, queue_id, client, filter: None, from, to, first_ms: now, last_ms: now }
    }
}

impl OpenQueue {
    fn pull_of(&mut self, client: &str) -> Option<&mut OpenRow> {
        self.pulls.iter_mut().find(|open| &*open.row.client == client)
    }

    fn len(&self) -> usize {
        self.pulls.len() + usize::from(self.offset.is_some())
    }
}

impl OpenRow {
    /// Whether a pull goes on where this one ended, with the same filter.
    fn is_continued_by(&self, from: i64, filter: &Arc<Subscription>) -> bool {
        self.row.to == from && self.row.filter.as_ref().is_some_and(|own| own.is_same_filter(filter))
    }

    fn grow(&mut self, to: i64, now: i64) {
        self.row.to = to;
        // a clock that is set back must not make a row end before it begins
        self.row.last_ms = now.max(self.row.last_ms);
        self.is_changed = true;
    }

    /// Copies a changed row to `taken`. Returns whether the row stays open.
    fn take(&mut self, taken: &mut Vec<Row>, idle_ms: i64) -> bool {
        if mem::take(&mut self.is_changed) {
            taken.push(self.row.clone());
            return true;
        }
        self.row.last_ms >= idle_ms
    }
}

fn queue_of<'a>(open: &'a mut HashMap<Arc<str>, HashMap<Arc<str>, Queues>>, row: &Row) -> &'a mut OpenQueue {
    let topics = open.entry(Arc::clone(&row.group)).or_default();
    topics.entry(Arc::clone(&row.topic)).or_default().entry(row.queue_id).or_default()
}

/// Returns the place of the row that rests longest, if a queue has as many rows as it may.
fn oldest_of_many(pulls: &[OpenRow]) -> Option<usize> {
    let oldest = pulls.iter().enumerate().min_by_key(|(_, open)| open.row.last_ms);
    oldest.filter(|_| pulls.len() >= MAX_OPEN_OF_QUEUE).map(|(at, _)| at)
}

fn close(closed: &mut Vec<Row>, gap_ms: &mut Option<i64>, open: OpenRow) {
    if !open.is_changed {
        return;
    }
    if closed.len() >= MAX_CLOSED {
        gap_ms.get_or_insert(open.row.first_ms);
        return;
    }
    closed.push(open.row);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { group: "g", topic: "t", queue_id: 3 };

    fn ledger() -> Ledger {
        let ledger = Ledger::default();
        ledger.continue_behind(0);
        ledger
    }

    fn tags(text: &str) -> Arc<Subscription> {
        Subscription::parse(None, text, 1).expect("tags").into()
    }

    /// Kind, client, filter and stretch of the rows that are taken.
    fn taken(ledger: &Ledger) -> Vec<(u64, Kind, String, String, i64, i64)> {
        let text = |row: &Row| row.filter.as_ref().map(|filter| filter.text.to_string()).unwrap_or_default();
        let mut rows: Vec<_> = ledger
            .take(0)
            .rows
            .iter()
            .map(|row| (row.id, row.kind, row.client.to_string(), text(row), row.from, row.to))
            .collect();
        rows.sort_by_key(|row| row.0);
        rows
    }

    fn pull(id: u64, client: &str, filter: &str, from: i64, to: i64) -> (u64, Kind, String, String, i64, i64) {
        (id, Kind::Pull, client.into(), filter.into(), from, to)
    }

    #[test]
    fn a_row_grows_while_a_client_goes_on_with_its_filter() {
        let ledger = ledger();
        for (from, to) in [(0, 5), (5, 5), (5, 9)] {
            ledger.note_pull(PLACE, "a", &tags("A"), (from, to));
        }
        ledger.note_pull(PLACE, "b", &tags("A"), (9, 10));
        assert_eq!(taken(&ledger), [pull(1, "a", "A", 0, 9), pull(2, "b", "A", 9, 10)]);
        assert!(taken(&ledger).is_empty());
        // a row that has grown is taken again, one that is pulled anew or by another filter is a row of its own
        ledger.note_pull(PLACE, "a", &tags("A"), (9, 12));
        ledger.note_pull(PLACE, "b", &tags("B"), (10, 11));
        ledger.note_pull(PLACE, "b", &tags("B"), (0, 1));
        assert_eq!(taken(&ledger), [pull(1, "a", "A", 0, 12), pull(3, "b", "B", 10, 11), pull(4, "b", "B", 0, 1)]);
    }

    #[test]
    fn commits_of_before_and_behind_a_reset_are_rows_of_their_own() {
        let ledger = ledger();
        let moved = |id, kind, client: &str, from, to| (id, kind, String::from(client), String::new(), from, to);
        for (client, from, to) in [("a", 0, 4), ("a", 4, 4), ("a", 4, 6), ("b", 6, 7), ("b", 7, 2)] {
            ledger.note_commit(PLACE, client, (Some(from), to));
        }
        ledger.note_pull(PLACE, "b", &tags("*"), (2, 4));
        ledger.note_reset(PLACE, "tool", (2, 9));
        ledger.note_commit(PLACE, "b", (Some(2), 9));
        ledger.note_pull(PLACE, "b", &tags("*"), (4, 5));
        assert_eq!(
            taken(&ledger),
            [
                moved(1, Kind::Commit, "a", 0, 6),
                moved(2, Kind::Commit, "b", 6, 7),
                moved(3, Kind::Commit, "b", 7, 2),
                pull(4, "b", "*", 2, 4),
                moved(5, Kind::Reset, "tool", 2, 9),
                moved(6, Kind::Commit, "b", 2, 9),
                pull(7, "b", "*", 4, 5),
            ]
        );
    }

    #[test]
    fn the_first_offset_of_a_group_is_a_row_of_its_own() {
        let ledger = ledger();
        ledger.note_commit(PLACE, "a", (None, 7));
        ledger.note_commit(PLACE, "a", (Some(7), 9));
        let rows: Vec<_> = taken(&ledger).into_iter().map(|row| (row.1, row.4, row.5)).collect();
        assert_eq!(rows, [(Kind::Begin, 0, 7), (Kind::Commit, 7, 9)]);
    }

    #[test]
    fn rows_end_where_a_member_wants_something_else_and_leave_memory_when_they_rest() {
        let ledger = ledger();
        ledger.note_pull(PLACE, "a", &tags("*"), (0, 5));
        ledger.end_pulls("other");
        ledger.end_pulls("g");
        ledger.note_pull(PLACE, "a", &tags("*"), (5, 6));
        assert_eq!(taken(&ledger), [pull(1, "a", "*", 0, 5), pull(2, "a", "*", 5, 6)]);
        assert!(ledger.take(i64::MAX).rows.is_empty());
        assert!(ledger.lock().open.is_empty());
        ledger.note_pull(PLACE, "a", &tags("*"), (6, 7));
        assert_eq!(taken(&ledger), [pull(3, "a", "*", 6, 7)]);
    }

    #[test]
    fn rows_that_nobody_takes_are_told_as_a_gap() {
        let ledger = ledger();
        for client in 0..MAX_CLOSED + 2 {
            // each commit of another client ends the row of the one before
            ledger.note_commit(PLACE, &client.to_string(), (Some(client as i64), client as i64 + 1));
        }
        let taken = ledger.take(0);
        assert_eq!((taken.rows.len(), taken.gap_ms.is_some()), (MAX_CLOSED + 1, true));
        assert_eq!(ledger.take(0).gap_ms, None);
    }

    #[test]
    fn clients_that_invent_names_do_not_grow_memory() {
        let ledger = ledger();
        for client in 0..200 {
            ledger.note_pull(PLACE, &client.to_string(), &tags("*"), (0, 1));
        }
        let rows = ledger.lock();
        assert_eq!((rows.open_len, rows.closed.len()), (MAX_OPEN_OF_QUEUE, 200 - MAX_OPEN_OF_QUEUE));
        drop(rows);
        // more open rows than allowed: each pull is a row
        ledger.lock().open_len = MAX_OPEN;
        let other = Place { group: "h", ..PLACE };
        for (from, to) in [(0, 1), (1, 2)] {
            ledger.note_pull(other, "a", &tags("*"), (from, to));
            ledger.note_commit(other, "a", (Some(from), to));
        }
        let of_other = ledger.take(0).rows.iter().filter(|row| &*row.group == "h").count();
        assert_eq!((of_other, ledger.lock().open_len), (4, MAX_OPEN_OF_QUEUE));
        ledger.end_pulls("g");
        assert_eq!(ledger.lock().open_len, 0);
    }

    #[test]
    fn a_topic_that_is_deleted_leaves_no_row() {
        let ledger = ledger();
        let other = Place { topic: "u", ..PLACE };
        for client in ["a", "b"] {
            ledger.note_pull(PLACE, client, &tags("*"), (0, 5));
            ledger.note_pull(PLACE, client, &tags("A"), (5, 6));
            ledger.note_pull(other, client, &tags("*"), (0, 1));
            ledger.note_commit(PLACE, client, (Some(0), 5));
        }
        ledger.remove_topic("t");
        assert_eq!(taken(&ledger), [pull(3, "a", "*", 0, 1), pull(7, "b", "*", 0, 1)]);
        assert_eq!(ledger.lock().open_len, 2);
    }

    #[test]
    fn nothing_is_kept_before_somebody_takes_it_and_numbers_continue() {
        let ledger = Ledger::default();
        ledger.note_pull(PLACE, "a", &tags("*"), (0, 5));
        ledger.continue_behind(41);
        ledger.note_pull(PLACE, "a", &tags("*"), (5, 6));
        assert_eq!(taken(&ledger), [pull(42, "a", "*", 5, 6)]);
    }

    #[test]
    fn a_connection_has_the_client_id_of_its_last_heartbeat() {
        let ledger = Ledger::default();
        ledger.put_client(7, "a");
        ledger.put_client(7, "b");
        assert_eq!(ledger.client_of(7).as_deref(), Some("b"));
        ledger.remove_client(7);
        assert_eq!(ledger.client_of(7), None);
    }
}
