//! A bell that wakes a thread while it waits for a socket.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[cfg(unix)]
type Stream = std::os::unix::net::UnixStream;
#[cfg(windows)]
type Stream = TcpStream;

/// Wakes a thread that waits at its [`Ear`].
#[derive(Debug)]
pub struct Bell(Stream);

/// Wakes a thread that waits.
#[derive(Debug)]
pub struct Ear(Stream);

/// Returns a bell and its ear.
///
/// # Errors
/// What the operating system says.
pub fn bell() -> io::Result<(Bell, Ear)> {
    let (bell, ear) = pair()?;
    bell.set_nonblocking(true)?;
    ear.set_nonblocking(true)?;
    Ok((Bell(bell), Ear(ear)))
}

impl Bell {
    /// Wakes the thread, now or as soon as it waits.
    pub fn ring(&self) {
        // a bell that cannot ring any more has rung
        let _ = (&self.0).write(&[1]);
    }
}

impl Ear {
    /// Waits until the bell rings, `socket` has something to read, or the time is over; a signal ends it, too.
    pub fn wait(&self, socket: Option<&TcpStream>, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            // a wait of nothing would be a turn for nothing
            tv_nsec: i64::from(timeout.subsec_nanos()).max(100_000) as _,
        });
        let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
        fds.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let _ = poll(&mut fds, timeout.as_ref());
        // any of its bits: Windows sets one of two
        if fds[0].revents().intersects(PollFlags::IN) {
            let _ = (&self.0).read(&mut [0; 64]);
        }
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(Stream, Stream)> {
    Stream::pair()
}

/// Two ends of a connection of this process with itself.
#[cfg(windows)]
fn pair() -> io::Result<(Stream, Stream)> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    // a second ring does not wait until the first is acknowledged
    one.set_nodelay(true)?;
    loop {
        // another process may come first
        let (other, address) = listener.accept()?;
        if address == one.local_addr()? {
            return Ok((one, other));
        }
    }
}
