//! Where a follower of a log stands, and what it does where no record stands: wait, go to the next file, or pass what is damaged or
//! gone.
use super::bound::Bound;
use crate::file::{Io, Segment};
use crate::store::commit_log::CommitLog;
use crate::store::damage::DamageLog;
use crate::store::message_store::MessageStore;
use crate::store::resync::{Resync, is_start, resync};
use crate::{Error, Result};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time between two questions to all queues.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Since when nothing came, and when to ask why.
#[derive(Debug)]
struct Standstill {
    position: u64,
    ask_at: Instant,
    wait: Duration,
}

/// Bytes of the log that retention removed before they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    pub offset: u64,
    pub length: u64,
}

/// How long is waited for what may still come.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Between the two reads of the last record of the log, where no queue lists it.
    pub settle: Duration,
    /// Until bytes that are no record are asked whether they are damage, and a record that may lack a part is taken.
    pub patience: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { settle: Duration::from_millis(20), patience: Duration::from_secs(1) }
    }
}

/// A place in a log that grows, and what is known of the log there.
#[derive(Debug)]
pub struct LogPlace {
    store: MessageStore,
    pub(super) log: Arc<CommitLog>,
    pub(super) position: u64,
    /// The file that holds the position, and where it starts.
    pub(super) open: Option<(u64, Segment)>,
    /// Whether a file was read: before, one that is gone was never to be read.
    pub(super) begun: bool,
    pub(super) bound: Bound,
    standstill: Option<Standstill>,
    pub(super) retained: Vec<Retained>,
    pub(super) waits: Waits,
}

impl LogPlace {
    /// Before the first record of the log of `store`.
    pub(super) fn at_start_of(store: &MessageStore) -> Result<Self> {
        let store = store.reopened(Io::Pread)?;
        let mut bound = Bound::new(&store);
        bound.refresh(&store)?;
        Ok(Self {
            log: store.log().clone(),
            position: store.log().min_offset(),
            open: None,
            begun: false,
            bound,
            standstill: None,
            retained: Vec::new(),
            waits: Waits::default(),
            store,
        })
    }

    /// Goes on behind `len` bytes of records.
    pub(super) fn pass(&mut self, len: usize) {
        self.position += len as u64;
        self.standstill = None;
    }

    /// The position within its file, which is opened; `None` where no file starts before it.
    pub(super) fn open_file(&mut self) -> Result<Option<u64>> {
        if self.open.is_none() {
            let files = self.log.segments().files();
            let Some(index) = files.partition_point(|f| f.base <= self.position).checked_sub(1) else {
                return Ok(None);
            };
            // behind a link that leads nowhere, which was passed, no file starts yet
            if files[index].is_missing && self.position >= files[index].end() {
                return Ok(None);
            }
            match self.log.open(index) {
                Ok(segment) => self.open = Some((files[index].base, segment)),
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
            self.begun = true;
        }
        Ok(self.open.as_ref().map(|(base, _)| self.position - base))
    }

    /// Passes a file that is a link which leads nowhere; whether it did.
    pub(super) fn pass_missing_file(&mut self, damage: &mut DamageLog) -> bool {
        let index = self.log.segments().find(self.position).filter(|_| self.open.is_none());
        let Some(file) = index.map(|index| &self.log.segments().files()[index]).filter(|file| file.is_missing) else {
            return false;
        };
        let end = file.end();
        let reason = self.log.removed(index.unwrap_or_default());
        damage.push(self.log.damage(self.position, end - self.position, reason));
        self.go_to(end);
        true
    }

    /// Goes to the next file, once there is one. Until then a broker that starts anew may write over the blank.
    pub(super) fn roll(&mut self, at: u64, size: usize, damage: &mut DamageLog) -> Result<bool> {
        let Some((base, segment)) = &self.open else { return Ok(false) };
        let (base, len) = (*base, segment.file_len()?);
        // a blank reaches to the end of its file: another size is none, or one in the making
        if at + size as u64 != len {
            return self.stand(format!("blank size at +0: expected {}, got {size}", len.saturating_sub(at)), damage);
        }
        self.log = self.store.log_now()?;
        if !self.log.segments().files().iter().any(|file| file.base >= base + len) {
            return self.find_file_anew();
        }
        self.go_to(base + len);
        Ok(true)
    }

    /// Waits for what is not written yet; what is damaged is noted and passed.
    pub(super) fn stand(&mut self, why: String, damage: &mut DamageLog) -> Result<bool> {
        if self.find_file_anew()? {
            return Ok(true);
        }
        if !self.is_time_to_ask() || !self.is_passed_by_bound()? {
            return Ok(false);
        }
        let Some(next) = self.goes_on_at()? else { return Ok(false) };
        // no queue vouches for what follows: it may be an old record, or one in the making
        if self.bound.by_queues() && next >= self.bound.to() || self.is_whole_by_now()? {
            return Ok(false);
        }
        damage.push(self.log.damage(self.position, next - self.position, why));
        self.go_to(next);
        Ok(true)
    }

    /// Whether a queue lists what stands behind a record that none lists itself.
    pub(super) fn ask_queues(&mut self) -> Result<bool> {
        if self.is_time_to_ask() {
            self.bound.refresh(&self.store)?;
            return Ok(self.position < self.bound.to());
        }
        Ok(false)
    }

    /// Passes what retention removed; where nothing was read yet, the log simply begins later.
    pub(super) fn pass_retained(&mut self) -> Result<bool> {
        self.log = self.store.log_now()?;
        let first = match self.log.segments().files().first() {
            Some(file) if file.base > self.position => file.base,
            Some(_) => return Ok(self.open_file()?.is_some()),
            None => return Ok(false),
        };
        if self.begun {
            self.retained.push(Retained { offset: self.position, length: first - self.position });
        }
        self.go_to(first);
        Ok(true)
    }

    fn go_to(&mut self, position: u64) {
        self.position = position;
        self.open = None;
        self.standstill = None;
    }

    /// Lists the directory again where the open file is no longer the one that holds the position.
    fn find_file_anew(&mut self) -> Result<bool> {
        let Some((base, segment)) = &self.open else { return Ok(false) };
        let is_replaced = segment.is_replaced();
        if !is_replaced && self.position < base + segment.file_len()? {
            return Ok(false);
        }
        self.log = self.store.log_now()?;
        let files = self.log.segments().files();
        let holder = files.iter().rev().find(|file| file.base <= self.position).map(|file| file.base);
        if !is_replaced && holder == Some(*base) {
            return Ok(false);
        }
        self.open = None;
        Ok(true)
    }

    /// All queues are asked at once for a place that was vouched for, else after a while, and then less and less often.
    fn is_time_to_ask(&mut self) -> bool {
        let (now, position) = (Instant::now(), self.position);
        let earlier = self.standstill.take().filter(|earlier| earlier.position == position);
        let mut here = earlier.unwrap_or_else(|| {
            let wait = if position < self.bound.to() { Duration::ZERO } else { self.waits.patience };
            Standstill { position, ask_at: now + wait, wait: self.waits.patience }
        });
        let is_time = now >= here.ask_at;
        if is_time {
            // to ask all queues reads a file of each
            here.wait = (2 * here.wait).min(MAX_WAIT);
            here.ask_at = now + here.wait;
        }
        self.standstill = Some(here);
        is_time
    }

    /// Whether the log surely goes on behind the position. Without queues nobody says; then only a whole record behind it does.
    fn is_passed_by_bound(&mut self) -> Result<bool> {
        self.log = self.store.log_now()?;
        if self.position >= self.bound.to() {
            self.bound.refresh(&self.store)?;
        }
        Ok(self.position < self.bound.to() || !self.bound.by_queues())
    }

    /// The next sound record, or the next file if there is data behind.
    fn goes_on_at(&self) -> Result<Option<u64>> {
        let files = self.log.segments().files();
        let Some(index) = files.partition_point(|f| f.base <= self.position).checked_sub(1) else { return Ok(None) };
        let file = &files[index];
        if self.position < file.end() {
            let mut segment = match self.log.open(index) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
                other => other?,
            };
            if let Resync::At(at) = resync(&self.log, index, &mut segment, self.position - file.base)? {
                return Ok(Some(file.base + at));
            }
        }
        Ok(self.log.continues_behind(index)?.then(|| files[index + 1].base))
    }

    fn is_whole_by_now(&self) -> Result<bool> {
        let Some((base, segment)) = &self.open else { return Ok(false) };
        is_start(segment, self.position - base, *base, segment.file_len()?)
    }
}
