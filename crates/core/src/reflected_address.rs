//! This machine's address as a STUN server sees it (RFC 8489).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtc::Reflection;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// The time until a STUN request is repeated. It doubles with each repetition (RFC 8489 section
/// 6.2.1).
const RETRY: Duration = Duration::from_millis(500);
/// The longest answer that is read, in bytes.
const MAX_DATAGRAM: usize = 1_500;

/// Asks a STUN server for the address of packets from `local`, whose port may be 0. Repeats the
/// request until an answer arrives. Returns the reflected address and the local one.
pub async fn reflected_address(
    server: SocketAddr,
    local: SocketAddr,
) -> io::Result<(SocketAddr, SocketAddr)> {
    let socket = UdpSocket::bind(local).await?;
    socket.connect(server).await?;
    let seen = ask(&socket).await?;
    let seen = SocketAddr::new(seen.ip().to_canonical(), seen.port());
    Ok((seen, socket.local_addr()?))
}

async fn ask(socket: &UdpSocket) -> io::Result<SocketAddr> {
    let reflection = Reflection::new();
    let mut buffer = [0; MAX_DATAGRAM];
    let mut wait = RETRY;
    loop {
        socket.send(&reflection.request()).await?;
        let until = sleep(wait);
        tokio::pin!(until);
        loop {
            let length = tokio::select! {
                length = socket.recv(&mut buffer) => length?,
                () = &mut until => break,
            };
            let answer = buffer.get(..length).unwrap_or_default();
            if let Some(seen) = reflection.seen(answer) {
                return Ok(seen);
            }
        }
        wait = wait.saturating_mul(2);
    }
}
