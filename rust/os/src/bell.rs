//! Wakes a thread that waits for a socket. The bell is the waking side, the ear the waiting side.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[cfg(unix)]
type Stream = std::os::unix::net::UnixStream;
#[cfg(windows)]
type Stream = TcpStream;

/// Wakes the thread that waits at the [`Ear`] of this bell.
#[derive(Debug)]
pub struct Bell(Stream);

/// The waiting side of a [`Bell`].
#[derive(Debug)]
pub struct Ear(Stream);

pub fn bell() -> io::Result<(Bell, Ear)> {
    let (bell, ear) = pair()?;
    bell.set_nonblocking(true)?;
    ear.set_nonblocking(true)?;
    Ok((Bell(bell), Ear(ear)))
}

impl Bell {
    /// Wakes the thread if it waits. If it does not wait, its next wait returns at once.
    pub fn ring(&self) {
        // a full buffer means that the bell has already rung
        let _ = (&self.0).write(&[1]);
    }
}

impl Ear {
    /// Waits until the bell rings, `socket` is readable, or the timeout is over. A signal also ends the wait.
    pub fn wait(&self, socket: Option<&TcpStream>, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            // a timeout of zero would make the caller's loop spin
            tv_nsec: i64::from(timeout.subsec_nanos()).max(100_000) as _,
        });
        let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
        fds.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let _ = poll(&mut fds, timeout.as_ref());
        // intersects, as Windows sets only one of the two bits of IN
        if fds[0].revents().intersects(PollFlags::IN) {
            let _ = (&self.0).read(&mut [0; 64]);
        }
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(Stream, Stream)> {
    Stream::pair()
}

/// Connects this process to itself and returns both ends of the connection.
#[cfg(windows)]
fn pair() -> io::Result<(Stream, Stream)> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    // without Nagle's algorithm, as a second ring must not wait for the acknowledgement of the first
    one.set_nodelay(true)?;
    loop {
        // another process may have connected first
        let (other, address) = listener.accept()?;
        if address == one.local_addr()? {
            return Ok((one, other));
        }
    }
}
