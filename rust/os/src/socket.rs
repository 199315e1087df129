//! Sockets: what is read without a wait, and a listener that is shut down.
use std::io;
use std::net::{TcpListener, TcpStream};

/// Reads what has come, without waiting; [`io::ErrorKind::WouldBlock`] where nothing has. One thread alone may use the socket: not
/// every system can read so without a change of the socket.
///
/// # Errors
/// What the operating system says.
pub fn read_ready(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    #[cfg(unix)]
    loop {
        match rustix::net::recv(socket, &mut *buffer, rustix::net::RecvFlags::DONTWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            read => return Ok(read.map(|(read, _)| read)?),
        }
    }
    #[cfg(windows)]
    {
        socket.set_nonblocking(true)?;
        let read = std::io::Read::read(&mut &*socket, buffer);
        socket.set_nonblocking(false)?;
        read
    }
}

/// Ends the wait of who accepts connections, where the operating system lets a listener be shut down.
pub fn shut_down(listener: &TcpListener) {
    let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
}
