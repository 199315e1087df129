//! Buffer for the bytes that a client reads. Bytes are moved only if the next frame has no room behind them.
use crate::command::Command;
use crate::error::Result;
use crate::frame;
use crate::frame::Limits;
use crate::owned_command::OwnedCommand;
use std::io;
use std::ops::Range;

// Maximum bytes of one read, and size of an idle connection's buffer.
const USUAL: usize = 64 << 10;
// Maximum bytes of buffer kept between two requests.
const KEPT: usize = 1 << 20;

/// Received bytes in `bytes[start..end]`. They belong to frames that nobody has taken yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// A frame with its parsed header. Its body stays in the inbox until the next read.
#[derive(Debug)]
pub struct ReceivedFrame {
    /// The header. Its body is empty.
    pub head: OwnedCommand,
    pub body: Range<usize>,
}

impl Inbox {
    /// Reads once into the buffer. Returns the number of bytes read.
    ///
    /// # Errors
    /// The error of `read`.
    pub fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        self.make_room();
        let count = read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// Takes the next frame if it is complete.
    ///
    /// # Errors
    /// The error of [`Command::decode`].
    pub fn take(&mut self, limits: &Limits) -> Result<Option<ReceivedFrame>> {
        let Some((frame, length)) = frame::first(&self.bytes[self.start..self.end], limits)? else { return Ok(None) };
        let body = frame.body.len();
        let head = OwnedCommand::from(&Command { body: &[], ..Command::decode(&frame, limits)? });
        self.start += length;
        Ok(Some(ReceivedFrame { head, body: self.start - body..self.start }))
    }

    pub fn body(&self, received: &ReceivedFrame) -> &[u8] {
        &self.bytes[received.body.clone()]
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Frees the part of the buffer that only a large answer needed.
    pub fn shrink(&mut self) {
        if self.is_empty() && self.bytes.len() > KEPT {
            *self = Self::default();
        }
    }

    /// Makes room for one read. The buffer grows to at most twice the received bytes. So a frame that only announces
    /// a large length does not make it large.
    fn make_room(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
        if self.end < self.bytes.len() {
            return;
        }
        // moves the incomplete frame to the front before the buffer may grow
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end + USUAL > self.bytes.len() {
            self.bytes.resize((2 * self.end).max(USUAL), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, Value};

    #[test]
    fn frames_come_out_whole_however_their_bytes_came_in() {
        let mut sent = Vec::new();
        for n in 0..50_i32 {
            let body = vec![n as u8; (n as usize).pow(3)];
            Header::request(n, n, &[("n", Value::Number(n.into()))]).write(&body, &mut sent);
        }
        for step in [1, 7, 1000, 70_000, usize::MAX] {
            let (mut inbox, mut rest, mut next) = (Inbox::default(), &sent[..], 0_i32);
            while !rest.is_empty() {
                let filled = inbox.fill(|room| {
                    let count = step.min(room.len()).min(rest.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    Ok(count)
                });
                rest = &rest[filled.expect("read")..];
                while let Some(received) = inbox.take(&Limits::default()).expect("sound") {
                    assert_eq!(received.head.opaque, next);
                    assert_eq!(inbox.body(&received), vec![next as u8; (next as usize).pow(3)]);
                    next += 1;
                }
            }
            assert!(inbox.is_empty());
            assert_eq!(next, 50);
        }
    }

    #[test]
    fn a_length_that_is_only_claimed_takes_no_memory_and_a_large_answer_none_for_long() {
        let mut inbox = Inbox::default();
        let fill = |inbox: &mut Inbox, bytes: &[u8]| {
            inbox.fill(|room| {
                let count = bytes.len().min(room.len());
                room[..count].copy_from_slice(&bytes[..count]);
                Ok(count)
            })
        };
        fill(&mut inbox, &[0, 0xF0, 0, 0]).expect("read");
        assert!(inbox.take(&Limits::default()).expect("allowed").is_none());
        assert!(inbox.bytes.len() <= USUAL);
        let (mut large, mut sent) = (Inbox::default(), Vec::new());
        Header::request(1, 1, &[]).write(&vec![1; 3 << 20], &mut sent);
        let mut rest = &sent[..];
        while !rest.is_empty() {
            rest = &rest[fill(&mut large, rest).expect("read")..];
        }
        assert!(large.take(&Limits::default()).expect("sound").is_some());
        large.shrink();
        assert_eq!(large.bytes.len(), 0);
    }
}
