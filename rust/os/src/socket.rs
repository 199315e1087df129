//! Sockets: a read that does not wait, and the shutdown of a listener.
use std::io;
use std::net::{TcpListener, TcpStream};

/// Reads available bytes without waiting. Fails with [`io::ErrorKind::WouldBlock`] if there are none. No other thread
/// may use the socket during the call, because on Windows the call changes the mode of the socket.
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

/// Makes a blocked accept of the listener return, if the operating system supports that.
pub fn shut_down(listener: &TcpListener) {
    let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
}
