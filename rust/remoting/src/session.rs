//! Serves one connection: reads frames, hands requests to the handler, writes answers.
//!
//! All frames that one read brings are handled one after the other, and their answers go out in one write. While a peer does not
//! take its answers, nothing more is read from it.
use crate::command::Command;
use crate::connection::{Connection, now_ms};
use crate::error::{Error, Result};
use crate::frame;
use crate::frame::Limits;
use crate::handler::Handler;
use crate::header::Header;
use crate::outgoing::Outgoing;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

// Bytes that one read may bring.
const SCRATCH: usize = 256 << 10;
// Answers beyond this are written before the next frame is handled.
const HIGH_WATER: usize = 1 << 20;
// A body of so many bytes is read whatever it is for.
const SMALL: usize = 64 << 10;
// Memory that an idle connection may keep.
const KEPT: usize = 16 << 10;
// Memory for answers that a thread may keep: as much as a large pull takes.
const SPARE: usize = 8 << 20;

thread_local! {
    // one for each thread, so that an idle connection holds no memory for what it might read
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Bytes of frames that are not handled yet, and answers that are not written.
struct Session<'a, S> {
    io: S,
    connection: &'a Arc<Connection>,
    limits: &'a Limits,
    handler: &'a dyn Handler,
    inbox: Vec<u8>,
    out: Outgoing,
    /// The inbox may hold whole frames.
    is_behind: bool,
    /// The body of the frame that the inbox begins with is wanted.
    is_admitted: bool,
    /// Bytes to come of a body that is not read.
    skipped: usize,
}

/// Serves a connection until it ends.
///
/// # Errors
/// Why it had to end; `Ok` where the peer closed it, or this side did.
pub async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    io: S,
    connection: &Arc<Connection>,
    limits: &Limits,
    handler: &dyn Handler,
) -> Result<()> {
    let mut session = Session {
        io,
        connection,
        limits,
        handler,
        inbox: Vec::new(),
        out: Outgoing::default(),
        is_behind: false,
        is_admitted: false,
        skipped: 0,
    };
    loop {
        if session.is_behind {
            // whole frames wait since the last round: no read is to come before them
            session.handle_inbox()?;
        } else {
            // biased: a connection that is to end does so however much its peer has to say
            tokio::select! {
                biased;
                () = connection.closing.notified() => return Ok(()),
                () = connection.sent.notified() => {}
                read = poll_fn(|cx| session.poll_read(cx)) => if read? == 0 { return Ok(()) },
            }
        }
        // behind the answers of this round, so that both go out in one write
        connection.take_outgoing(&mut session.out);
        tokio::select! {
            biased;
            () = connection.closing.notified() => return Ok(()),
            written = session.write() => written?,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<'_, S> {
    /// Reads once and handles the frames that are whole. Returns how many bytes came.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize>> {
        READ.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer)) {
                // TLS has a last word, which a peer that was killed does not say
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Err(self.io_error("read", error)));
                }
                _ => {}
            }
            let read = buffer.filled();
            self.take_buffer();
            self.connection.watch.heard();
            // the usual case: nothing is left over, and frames are handled where they were read, without a copy
            if self.inbox.is_empty() {
                let used = self.handle(read)?;
                self.inbox.extend_from_slice(&read[used..]);
            } else {
                self.inbox.extend_from_slice(read);
                self.handle_inbox()?;
            }
            self.note_partial();
            self.give_buffer();
            Poll::Ready(Ok(read.len()))
        })
    }

    fn handle_inbox(&mut self) -> Result<()> {
        let inbox = std::mem::take(&mut self.inbox);
        let used = self.handle(&inbox)?;
        self.inbox = inbox;
        self.inbox.drain(..used);
        if self.inbox.is_empty() {
            self.inbox.shrink_to(KEPT);
        }
        self.note_partial();
        Ok(())
    }

    /// Handles whole frames, up to so many bytes of answers. Returns how many bytes they had.
    fn handle(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut used = self.skip(bytes);
        self.is_behind = false;
        while self.skipped == 0 {
            if self.out.len() > HIGH_WATER {
                self.is_behind = true;
                break;
            }
            let rest = &bytes[used..];
            if self.refuse(rest)? {
                used += self.skip(rest);
                continue;
            }
            // the rest of a frame that is not whole waits in the inbox
            let Some((frame, length)) = frame::first(rest, self.limits)? else { break };
            let command = Command::decode(&frame, self.limits)?;
            match command.is_response() {
                true => self.connection.on_answer(&command),
                false => self.handler.handle(self.connection, &command, &mut self.out),
            }
            self.is_admitted = false;
            used += length;
        }
        Ok(used)
    }

    /// Passes over what is there of a body that nobody wants. Returns how many bytes that were.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        let passed = self.skipped.min(bytes.len());
        self.skipped -= passed;
        passed
    }

    /// Answers a request whose body is too large for what it asks, once its header is there; its bytes are passed over.
    fn refuse(&mut self, bytes: &[u8]) -> Result<bool> {
        if self.is_admitted {
            return Ok(false);
        }
        let Some((frame, length)) = frame::head(bytes, self.limits)? else { return Ok(false) };
        let body = length - frame.header.len() - frame::BEFORE_HEADER;
        if body <= SMALL {
            return Ok(false);
        }
        let request = Command::decode(&frame, self.limits)?;
        let refusal = if request.is_response() { None } else { self.handler.refusal(&request, body) };
        // the handler is asked once for a body, not again with each read that brings a part of it
        self.is_admitted = refusal.is_none();
        let Some((code, remark)) = refusal else { return Ok(false) };
        // the whole frame: of its head, nothing was taken yet
        self.skipped = length;
        if !request.is_oneway() {
            let remark = Some(remark.as_str());
            let header = Header { code, remark, opaque: request.opaque, ..Header::response(request.serialize_type) };
            header.write(b"", self.out.frames());
        }
        Ok(true)
    }

    /// A frame must be there some time after its first byte.
    fn note_partial(&self) {
        let began = &self.connection.watch.frame_began;
        // while this side is behind, it is not the peer that is slow
        if self.inbox.is_empty() && self.skipped == 0 || self.is_behind {
            began.store(0, Ordering::Relaxed);
        } else if began.load(Ordering::Relaxed) == 0 {
            began.store(now_ms(), Ordering::Relaxed);
        }
    }

    async fn write(&mut self) -> Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let watch = &self.connection.watch;
        watch.write_began.store(now_ms(), Ordering::Relaxed);
        let written = async {
            self.out.write(&mut self.io, &watch.written).await?;
            self.io.flush().await
        };
        written.await.map_err(|e| self.io_error("write", e))?;
        watch.write_began.store(0, Ordering::Relaxed);
        watch.active.store(now_ms(), Ordering::Relaxed);
        self.connection.wrote(&mut self.out);
        self.give_buffer();
        Ok(())
    }

    /// Takes the thread's buffer for answers: an idle connection has none, a busy one need not ask for memory each time.
    fn take_buffer(&mut self) {
        if self.out.frames().capacity() == 0 {
            *self.out.frames() = WRITTEN.take();
        }
    }

    /// Gives the buffer back where nothing is in it.
    fn give_buffer(&mut self) {
        if self.out.is_empty() {
            let mut buffer = std::mem::take(self.out.frames());
            buffer.shrink_to(SPARE);
            WRITTEN.set(buffer);
        }
    }

    fn io_error(&self, what: &str, source: io::Error) -> Error {
        Error::io(format!("{what} <{}>", self.connection.peer()), source)
    }
}
