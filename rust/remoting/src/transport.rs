//! A socket of a client, with or without TLS. A call waits for the operating system at most once.
use crate::dial::DialledStream;
use crate::interrupt::SLICE;
use rmqfast_os::socket::read_ready;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// A connected socket. Each call waits at most [`SLICE`], then fails with [`ErrorKind::WouldBlock`] and may be
/// repeated.
#[derive(Debug)]
pub struct Transport {
    socket: Arc<TcpStream>,
    tls: Option<Box<ClientConnection>>,
    wait: Duration,
    pid: u32,
}

impl Transport {
    /// Takes over a connection that background threads have opened, for blocking calls.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn new(dialled: DialledStream) -> io::Result<Self> {
        let (socket, tls) = match dialled {
            DialledStream::Plain(socket) => (socket, None),
            DialledStream::Tls(stream) => {
                let (socket, tls) = stream.into_inner();
                (socket, Some(Box::new(tls)))
            }
        };
        let socket = socket.into_std()?;
        // tokio set it to non-blocking; here the calling thread blocks
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(SLICE))?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(Self { socket: socket.into(), tls, wait: SLICE, pid: std::process::id() })
    }

    /// Returns the socket. Another thread can shut it down to end a call.
    pub fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    /// Limits the wait of later calls to `left`, if `left` is less than SLICE. Makes no system call if the limit does
    /// not change.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn wait_at_most(&mut self, left: Duration) -> io::Result<()> {
        // a socket accepts no timeout of zero
        let wait = left.clamp(Duration::from_millis(1), SLICE);
        if wait != self.wait {
            self.socket.set_read_timeout(Some(wait))?;
            self.socket.set_write_timeout(Some(wait))?;
            self.wait = wait;
        }
        Ok(())
    }

    /// Reads available bytes without waiting. Fails with [`ErrorKind::WouldBlock`] if there are none.
    ///
    /// # Errors
    /// Fails like [`Read::read`].
    pub fn read_ready(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ready = Ready(&self.socket);
        match &mut self.tls {
            None => ready.read(buffer),
            Some(tls) => read_tls(tls, &mut ready, &mut &*self.socket, buffer),
        }
    }
}

impl Read for Transport {
    /// Reads bytes. Fails with [`ErrorKind::Interrupted`] if only a part of a TLS record has arrived.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => (&*self.socket).read(buffer),
            Some(tls) => read_tls(tls, &mut &*self.socket, &mut &*self.socket, buffer),
        }
    }
}

impl Write for Transport {
    /// Writes bytes. With TLS some of them may stay in a buffer until [`flush`](Write::flush).
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&*self.socket).write(bytes) };
        flush(tls, &mut &*self.socket)?;
        let count = tls.writer().write(bytes)?;
        // TLS buffered the bytes already, so an error to retry would make the caller write them twice
        match flush(tls, &mut &*self.socket) {
            Err(error) if !is_pause(&error) => Err(error),
            _ => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| flush(tls, &mut &*self.socket))
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        // a fork must not send close_notify on its parent's connection
        let Some(tls) = self.tls.as_mut().filter(|_| self.pid == std::process::id()) else { return };
        tls.send_close_notify();
        // close_notify is optional, so sending it must not block
        let _ = self.socket.set_nonblocking(true);
        let _ = flush(tls, &mut &*self.socket);
    }
}

/// Returns whether an error means that the call was not finished and may be repeated.
pub fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A reader of a socket that never waits.
struct Ready<'a>(&'a TcpStream);

impl Read for Ready<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self.0, buffer)
    }
}

fn read_tls(
    tls: &mut ClientConnection,
    from: &mut dyn Read,
    to: &mut dyn Write,
    buffer: &mut [u8],
) -> io::Result<usize> {
    match tls.reader().read(buffer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        // the peer closed without close_notify, which is safe as frames carry their length
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
        read => return read,
    }
    take(tls, from, to)?;
    flush(tls, to)?;
    // the TLS record may be incomplete, so the caller repeats the read
    Err(ErrorKind::Interrupted.into())
}

fn take(tls: &mut ClientConnection, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    tls.read_tls(from)?;
    if let Err(error) = tls.process_new_packets() {
        // tries to send the TLS alert with the reason
        let _ = flush(tls, to);
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    }
    Ok(())
}

fn flush(tls: &mut ClientConnection, to: &mut dyn Write) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(to)?;
    }
    Ok(())
}
