//! A socket of a client, with TLS or without: one call, one wait for the operating system.
use crate::dial::DialledStream;
use crate::interrupt::SLICE;
use rmqfast_os::socket::read_ready;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// A socket that is connected. A call waits for [`SLICE`] at most, then it fails with [`ErrorKind::WouldBlock`] and may be
/// repeated.
#[derive(Debug)]
pub struct Transport {
    socket: Arc<TcpStream>,
    tls: Option<Box<ClientConnection>>,
    wait: Duration,
    pid: u32,
}

impl Transport {
    /// Takes a connection off the process's threads.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn new(dialled: DialledStream) -> io::Result<Self> {
        let (socket, tls) = match dialled {
            DialledStream::Plain(socket) => (socket, None),
            DialledStream::Tls(stream) => {
                let (socket, tls) = stream.into_inner();
                (socket, Some(Box::new(tls)))
            }
        };
        let socket = socket.into_std()?;
        // tokio had it non-blocking; here the calling thread waits
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(SLICE))?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(Self { socket: socket.into(), tls, wait: SLICE, pid: std::process::id() })
    }

    /// Returns the socket, for who may have to end what others wait for.
    pub fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    /// Has calls wait for `left` where that is less than usual: nothing is asked of the operating system otherwise.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn wait_at_most(&mut self, left: Duration) -> io::Result<()> {
        // a socket takes no timeout of zero
        let wait = left.clamp(Duration::from_millis(1), SLICE);
        if wait != self.wait {
            self.socket.set_read_timeout(Some(wait))?;
            self.socket.set_write_timeout(Some(wait))?;
            self.wait = wait;
        }
        Ok(())
    }

    /// Reads what has come, without waiting; [`ErrorKind::WouldBlock`] where nothing has.
    ///
    /// # Errors
    /// As [`Read::read`].
    pub fn read_ready(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ready = Ready(&self.socket);
        match &mut self.tls {
            None => ready.read(buffer),
            Some(tls) => read_tls(tls, &mut ready, &mut &*self.socket, buffer),
        }
    }
}

impl Read for Transport {
    /// Reads; [`ErrorKind::Interrupted`] where bytes came that are no whole TLS record.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => (&*self.socket).read(buffer),
            Some(tls) => read_tls(tls, &mut &*self.socket, &mut &*self.socket, buffer),
        }
    }
}

impl Write for Transport {
    /// Writes; TLS may keep bytes until a [`flush`](Write::flush).
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&*self.socket).write(bytes) };
        flush(tls, &mut &*self.socket)?;
        let count = tls.writer().write(bytes)?;
        // TLS has taken the bytes: a caller that hears of a pause would write them once more
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
        // in a fork of the process the last word is not ours to say
        let Some(tls) = self.tls.as_mut().filter(|_| self.pid == std::process::id()) else { return };
        tls.send_close_notify();
        // nobody waits for it, and it need not arrive
        let _ = self.socket.set_nonblocking(true);
        let _ = flush(tls, &mut &*self.socket);
    }
}

/// Returns whether a call may be repeated.
pub fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Reads what is there without waiting for more.
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
        // the peer went away without a word, as it may where a frame says how long it is
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
        read => return read,
    }
    take(tls, from, to)?;
    flush(tls, to)?;
    Err(ErrorKind::Interrupted.into())
}

fn take(tls: &mut ClientConnection, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    tls.read_tls(from)?;
    if let Err(error) = tls.process_new_packets() {
        // a TLS alert says why, where the peer can still read it
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
