//! The memory of bodies, used again once nobody looks at them: fresh memory costs more than what is copied into it.
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Buffers kept at most.
const BUFFERS: usize = 32;
/// Bytes kept at most.
const BYTES: usize = 16 << 20;
/// Smaller ones are not worth keeping.
const SMALLEST: usize = 16 << 10;

/// The bytes of an answer.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    pool: Option<Arc<Pool>>,
}

/// Buffers that nobody uses.
#[derive(Debug, Default)]
pub struct Pool {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Body {
    /// A copy of `bytes`, in memory of the pool where that has any of the size.
    pub fn copied(bytes: &[u8], pool: Option<&Arc<Pool>>) -> Self {
        let mut copy = pool.and_then(|pool| pool.take(bytes.len())).unwrap_or_default();
        copy.extend_from_slice(bytes);
        Self { bytes: copy, pool: pool.cloned() }
    }

    /// Leaves out what stands at `len` or behind it.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

impl Deref for Body {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

impl Pool {
    fn take(&self, len: usize) -> Option<Vec<u8>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().position(|buffer| buffer.capacity() >= len && buffer.capacity() / 4 <= len)?;
        Some(free.swap_remove(found))
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = free.iter().map(Vec::capacity).sum();
        if buffer.capacity() >= SMALLEST && free.len() < BUFFERS && bytes + buffer.capacity() <= BYTES {
            buffer.clear();
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_body_that_is_gone_is_used_again_for_one_of_about_its_size() {
        let pool = Arc::new(Pool::default());
        let first = Body::copied(&[1; 20_000], Some(&pool));
        let place = first.as_ptr();
        drop(first);
        let small = Body::copied(&[2; 100], Some(&pool));
        assert_ne!(small.as_ptr(), place);
        let second = Body::copied(&[3; 19_000], Some(&pool));
        assert_eq!((second.as_ptr(), &second[..]), (place, &[3; 19_000][..]));
        drop((small, second));
        assert_eq!(pool.free.lock().expect("sound").len(), 1);
    }

    #[test]
    fn no_more_is_kept_than_is_allowed() {
        let pool = Arc::new(Pool::default());
        let bodies: Vec<_> = (0..40).map(|_| Body::copied(&[0; 1 << 20], Some(&pool))).collect();
        drop(bodies);
        let kept: usize = pool.free.lock().expect("sound").iter().map(Vec::capacity).sum();
        assert_eq!(kept, BYTES);
    }
}
