//! Serves one connection: reads frames, passes requests to the handler, writes answers.
//!
//! All frames of one read are handled in order, and their answers are written together. While a peer does not read
//! its answers, no further requests are read from it.
use crate::command::{Command, Header};
use crate::connection::{Connection, now_ms};
use crate::error::{Error, Result};
use crate::frame::{self, Limits};
use crate::outgoing::Outgoing;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

// Maximum bytes of one read.
const SCRATCH: usize = 256 << 10;
// With more bytes of answers, these are written before the next frame is handled.
const HIGH_WATER: usize = 1 << 20;
// Bodies up to this size are read without asking the handler.
const SMALL: usize = 64 << 10;
// Bytes of buffer that an idle connection may keep.
const KEPT: usize = 16 << 10;
// Bytes of buffer for answers that a thread may keep: enough for a large pull.
const SPARE: usize = 8 << 20;

thread_local! {
    // per thread, so that idle connections hold no read buffer
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// State of one connection, with frames that are not handled yet and answers that are not written yet.
struct Session<'a, S> {
    io: S,
    connection: &'a Arc<Connection>,
    limits: &'a Limits,
    handler: &'a dyn Handler,
    inbox: Vec<u8>,
    out: Outgoing,
    /// Whether the inbox may contain complete frames that are not handled yet.
    is_behind: bool,
    /// Whether the handler has accepted the body of the first frame in the inbox.
    is_admitted: bool,
    skipped: usize,
}

/// Serves a connection until it ends.
///
/// # Errors
/// The reason for the end. Returns `Ok` if either side closed the connection regularly.
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
            // complete frames are left from the last round and are handled before the next read
            session.handle_inbox()?;
        } else {
            // biased, so that a close takes effect even if the peer never stops sending
            tokio::select! {
                biased;
                () = connection.closing.notified() => return Ok(()),
                () = connection.sent.notified() => {}
                read = poll_fn(|cx| session.poll_read(cx)) => if read? == 0 { return Ok(()) },
            }
        }
        // after the answers of this round, so that both are written together
        connection.take_outgoing(&mut session.out);
        tokio::select! {
            biased;
            () = connection.closing.notified() => return Ok(()),
            written = session.write() => written?,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<'_, S> {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize>> {
        READ.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer)) {
                // a killed peer does not send TLS's close_notify, which is no error here
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Err(self.io_error("read", error)));
                }
                _ => {}
            }
            let read = buffer.filled();
            self.take_buffer();
            self.connection.watch.heard();
            // usual case: the inbox is empty, and frames are handled in the read buffer without a copy
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
            // frees memory that only a large frame needed
            self.inbox.shrink_to(KEPT);
        }
        self.note_partial();
        Ok(())
    }

    /// Handles complete frames. Stops once the answers together have HIGH_WATER bytes. Returns the number of bytes
    /// consumed.
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
            // an incomplete frame waits in the inbox
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

    fn skip(&mut self, bytes: &[u8]) -> usize {
        let passed = self.skipped.min(bytes.len());
        self.skipped -= passed;
        passed
    }

    /// Asks the handler about a request with a large body, once its header is complete. If the handler refuses the
    /// request, answers it unless it is oneway, skips the rest of the frame, and returns true. Returns false otherwise.
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
        // the handler is asked once per frame, not at each read
        self.is_admitted = refusal.is_none();
        let Some((code, remark)) = refusal else { return Ok(false) };
        // the whole frame, as no byte of it is consumed yet
        self.skipped = length;
        if !request.is_oneway() {
            let remark = Some(remark.as_str());
            let header = Header { code, remark, opaque: request.opaque, ..Header::response(request.serialize_type) };
            header.write(b"", self.out.frames());
        }
        Ok(true)
    }

    /// Notes the time since which a frame is incomplete. A background task checks it for a timeout.
    fn note_partial(&self) {
        let began = &self.connection.watch.frame_began;
        // while this side is behind, the peer is not to blame
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

    /// Borrows the buffer of this thread for answers. So idle connections need no buffer, and busy connections need
    /// no allocation.
    fn take_buffer(&mut self) {
        if self.out.frames().capacity() == 0 {
            *self.out.frames() = WRITTEN.take();
        }
    }

    /// Gives the buffer back to its thread, but only if the buffer is empty.
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

/// Answers the requests on all connections of a server.
pub trait Handler: Send + Sync + 'static {
    /// Handles a request. Appends the answer to `out`, sends the answer later over the connection, or sends none.
    /// Must not block.
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing);

    /// Decides whether to refuse a request with a body of `body` bytes. Returns the response code and the remark of the
    /// refusal, or `None` to accept the request. Called when the header is complete, before memory is allocated for the
    /// body.
    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let _ = (request, body);
        None
    }

    /// Called when a connection has ended. `reason` is `None` if either side closed the connection regularly.
    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>);

    /// Called for a fault that concerns no single connection, for example an unusable new certificate.
    fn on_warning(&self, error: &Error);
}
