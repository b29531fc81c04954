//! A TCP or TLS connection to a TURN server. Workers handle only datagrams of TURN, so this passes
//! them on between a local UDP socket and the connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use portunus_turn::frame;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// The most messages that wait for the connection.
const WAITING: usize = 512;
/// The most messages that are written together.
const BURST: usize = 64;
/// The longest message in bytes. Media has at most 1,500.
const MAX_MESSAGE: usize = 2_048;
/// The size of a read, in bytes.
const READ: usize = 64 << 10;

trait Connection: AsyncRead + AsyncWrite + Unpin + Send + Sync {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Connection for T {}

/// An open connection, and the socket for the worker.
pub(super) struct Stream {
    connection: Box<dyn Connection>,
    socket: UdpSocket,
    address: SocketAddr,
}

impl Stream {
    /// Connects to a server, by TLS if the name in its certificate is given.
    pub(super) async fn connect(
        server: SocketAddr,
        tls: Option<(&Arc<ClientConfig>, String)>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let connection: Box<dyn Connection> = match tls {
            None => Box::new(stream),
            Some((tls, name)) => {
                let name = ServerName::try_from(name).map_err(io::Error::other)?;
                let connector = TlsConnector::from(Arc::clone(tls));
                Box::new(connector.connect(name, stream).await?)
            }
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        Ok(Stream {
            connection,
            socket,
            address,
        })
    }

    /// Passes messages on for the worker with this socket only.
    pub(super) async fn join(&self, worker: SocketAddr) -> io::Result<()> {
        self.socket.connect(worker).await
    }

    /// The address for the worker's datagrams.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes messages on until the connection ends, and returns the reason. Calls `dropped` for
    /// each message that the connection does not take in time.
    pub(super) async fn run(self, dropped: impl Fn()) -> io::Error {
        let (reader, writer) = split(self.connection);
        let (queue, waiting) = mpsc::channel(WAITING);
        let ended = tokio::select! {
            ended = collect(&self.socket, &queue, dropped) => ended,
            ended = write(writer, waiting) => ended,
            ended = read(reader, &self.socket) => ended,
        };
        match ended {
            Ok(()) => io::Error::new(io::ErrorKind::UnexpectedEof, "the server has closed it"),
            Err(error) => error,
        }
    }
}

/// Receives datagrams of the worker.
async fn collect(
    socket: &UdpSocket,
    queue: &mpsc::Sender<Vec<u8>>,
    dropped: impl Fn(),
) -> io::Result<()> {
    let mut buffer = [0; MAX_MESSAGE];
    loop {
        let len = socket.recv(&mut buffer).await?;
        let mut message = buffer.get(..len).unwrap_or_default().to_vec();
        // Messages of STUN have such a length already (RFC 8656 section 12.5).
        message.resize(len.next_multiple_of(4), 0);
        if queue.try_send(message).is_err() {
            dropped();
        }
    }
}

async fn write(
    mut writer: WriteHalf<Box<dyn Connection>>,
    mut waiting: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut messages = Vec::with_capacity(BURST);
    while waiting.recv_many(&mut messages, BURST).await > 0 {
        writer.write_all(&messages.concat()).await?;
        writer.flush().await?;
        messages.clear();
    }
    Ok(())
}

async fn read(mut reader: ReadHalf<Box<dyn Connection>>, socket: &UdpSocket) -> io::Result<()> {
    let mut stream = Vec::with_capacity(READ);
    while reader.read_buf(&mut stream).await? > 0 {
        let mut rest = stream.as_slice();
        while let Some((len, next)) = frame(rest).map_err(io::Error::other)? {
            let message = rest.get(..len).unwrap_or_default();
            socket.send(message).await?;
            rest = rest.get(next..).unwrap_or_default();
        }
        let taken = stream.len().saturating_sub(rest.len());
        stream.drain(..taken);
    }
    Ok(())
}
