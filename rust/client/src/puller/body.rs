//! The bodies of answers, and a pool of their buffers. Buffers are reused, since fresh memory costs more than copying
//! into it.
use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

// Maximum number of free buffers in the pool.
const BUFFERS: usize = 32;
// Maximum bytes of free buffers in the pool.
const BYTES: usize = 32 << 20;
// Smaller buffers are freed: the allocator serves them quickly.
const SMALLEST: usize = 16 << 10;
// Buffer sizes are multiples of this, so that a slightly larger answer fits into the last buffer.
const STEP: usize = 64 << 10;

/// The body of an answer: a range of a buffer. The buffer returns to the pool on drop.
#[derive(Debug, Default)]
pub struct Body {
    buffer: Vec<u8>,
    range: Range<usize>,
    pool: Option<Arc<Pool>>,
}

/// A pool of free buffers, which the connections of a puller share.
#[derive(Debug, Default)]
pub struct Pool {
    /// Free buffers. The buffer that was returned first is at the front.
    free: Mutex<VecDeque<Vec<u8>>>,
}

impl Body {
    /// Copies `bytes` into a buffer of the pool if one fits, else into fresh memory.
    pub fn copy(bytes: &[u8], pool: Option<&Arc<Pool>>) -> Self {
        let range = 0..bytes.len();
        // at most four times as large: otherwise a few small answers would occupy all the memory
        let buffer = match pool.and_then(|pool| pool.take(bytes.len(), bytes.len().saturating_mul(4))) {
            Some(mut buffer) => {
                buffer[range.clone()].copy_from_slice(bytes);
                buffer
            }
            None => bytes.to_vec(),
        };
        Self { buffer, range, pool: pool.cloned() }
    }

    /// Returns a body that is a range of `buffer`, without a copy. On drop, the buffer returns to the pool.
    pub fn within(buffer: Vec<u8>, range: Range<usize>, pool: &Arc<Pool>) -> Self {
        Self { buffer, range, pool: Some(pool.clone()) }
    }

    /// Keeps only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.range.end = self.range.end.min(self.range.start.saturating_add(len));
    }
}

impl Deref for Body {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_back(std::mem::take(&mut self.buffer));
        }
    }
}

impl Pool {
    /// Returns a buffer of at least `len` bytes with arbitrary contents.
    pub fn buffer(&self, len: usize) -> Vec<u8> {
        let len = len.next_multiple_of(STEP);
        self.take(len, len.saturating_add(len / 4)).unwrap_or_else(|| vec![0; len])
    }

    fn take(&self, len: usize, most: usize) -> Option<Vec<u8>> {
        let mut free = self.free();
        // the newest buffer is most likely still in the CPU cache
        let place = free.iter().rposition(|buffer| (len..=most).contains(&buffer.len()))?;
        free.remove(place)
    }

    /// Adds a free buffer. The oldest buffers are dropped to make room, as buffers of their sizes may no longer be
    /// needed.
    pub fn give_back(&self, buffer: Vec<u8>) {
        if !(SMALLEST..=BYTES).contains(&buffer.len()) {
            return;
        }
        let mut gone = Vec::new();
        let mut free = self.free();
        let mut bytes = buffer.len() + free.iter().map(Vec::len).sum::<usize>();
        free.push_back(buffer);
        while free.len() > BUFFERS || bytes > BYTES {
            let Some(oldest) = free.pop_front() else { break };
            bytes -= oldest.len();
            gone.push(oldest);
        }
        // unlock before `gone` is freed, so that other threads need not wait for that
        drop(free);
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_body_that_is_gone_is_used_again_for_one_of_about_its_size() {
        let pool = Arc::new(Pool::default());
        let first = Body::copy(&[1; 20_000], Some(&pool));
        let place = first.as_ptr();
        drop(first);
        let small = Body::copy(&[2; 100], Some(&pool));
        assert_ne!(small.as_ptr(), place);
        let second = Body::copy(&[3; 19_000], Some(&pool));
        assert_eq!((second.as_ptr(), &second[..]), (place, &[3; 19_000][..]));
        drop((small, second));
        assert_eq!(pool.free.lock().expect("sound").len(), 1);
    }

    #[test]
    fn no_more_is_kept_than_is_allowed() {
        let pool = Arc::new(Pool::default());
        let bodies: Vec<_> = (0..40).map(|_| Body::copy(&[0; 1 << 20], Some(&pool))).collect();
        drop(bodies);
        let kept: usize = pool.free.lock().expect("sound").iter().map(Vec::len).sum();
        assert_eq!(kept, BYTES);
    }

    #[test]
    fn a_body_is_its_part_of_a_buffer_which_is_used_again_for_one_of_the_size() {
        let pool = Arc::new(Pool::default());
        let mut buffer = pool.buffer(130_000);
        buffer[3..10].copy_from_slice(&[3, 4, 5, 6, 7, 8, 9]);
        let place = buffer.as_ptr();
        let mut body = Body::within(buffer, 3..10, &pool);
        assert_eq!(body[..], [3, 4, 5, 6, 7, 8, 9]);
        body.truncate(2);
        assert_eq!(body[..], [3, 4]);
        body.truncate(5);
        assert_eq!(body[..], [3, 4]);
        drop(body);
        let of_others = [2 * STEP + 1, STEP].map(|len| pool.buffer(len));
        assert!(of_others.iter().all(|buffer| buffer.as_ptr() != place));
        // answers with equally many messages differ by a few bytes
        let again = pool.buffer(130_007);
        assert_eq!((again.as_ptr(), again.len()), (place, 2 * STEP));
    }

    #[test]
    fn sizes_that_nobody_wants_any_more_make_room() {
        let pool = Pool::default();
        for size in [1 << 20, 2 << 20] {
            (0..BYTES / size).for_each(|_| pool.give_back(vec![0; size]));
        }
        let kept = vec![2 << 20; BYTES >> 21];
        assert_eq!(pool.free().iter().map(Vec::len).collect::<Vec<_>>(), kept);
        // a buffer above the limit is dropped, and displaces no other
        pool.give_back(vec![0; BYTES + 1]);
        assert_eq!(pool.free().len(), kept.len());
    }
}
