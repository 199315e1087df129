//! The blocks into which the views of a batch point. Used to read the values in Rust.
use std::cell::Cell;

/// The blocks, which do not move until the batch is filled again.
pub struct Memory<'a> {
    blocks: Vec<&'a [u8]>,
    /// Index of the block in which the last value was found. The next value is usually in the same block.
    last: Cell<usize>,
}

impl<'a> Memory<'a> {
    pub fn new(blocks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self { blocks: blocks.into_iter().collect(), last: Cell::new(0) }
    }

    /// Returns the bytes of a value.
    ///
    /// # Panics
    /// If the address is in none of the blocks, which is a bug.
    #[inline]
    pub(super) fn bytes(&self, address: i64, length: usize) -> &'a [u8] {
        // an empty value may have any address
        if length == 0 {
            return &[];
        }
        let last = self.blocks.get(self.last.get()).copied().unwrap_or_default();
        within(last, address, length).unwrap_or_else(|| self.search(address, length))
    }

    #[cold]
    fn search(&self, address: i64, length: usize) -> &'a [u8] {
        let hit = self.blocks.iter().enumerate().find_map(|(n, block)| Some((n, within(block, address, length)?)));
        let Some((block, bytes)) = hit else { panic!("a view of {length} bytes points outside of its blocks") };
        self.last.set(block);
        bytes
    }
}

/// Returns the bytes of a value if they are inside `block`, otherwise `None`.
#[inline]
pub(super) fn within(block: &[u8], address: i64, length: usize) -> Option<&[u8]> {
    let start = (address as usize).wrapping_sub(block.as_ptr() as usize);
    block.get(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_found_in_its_block() {
        let blocks = [b"first".to_vec(), b"the second".to_vec()];
        let memory = Memory::new(blocks.iter().map(Vec::as_slice));
        let view =
            |block: usize, from: usize, to: usize| memory.bytes(blocks[block][from..].as_ptr() as i64, to - from);
        assert_eq!(view(1, 4, 10), b"second");
        assert_eq!(view(0, 0, 5), b"first");
        assert_eq!(view(1, 0, 3), b"the");
        assert_eq!(memory.bytes(7, 0), b"");
    }

    #[test]
    #[should_panic(expected = "a view of 6 bytes points outside of its blocks")]
    fn a_view_beyond_its_block_is_a_defect() {
        let block = b"first";
        Memory::new([&block[..]]).bytes(block.as_ptr() as i64, 6);
    }
}
