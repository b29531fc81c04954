//! A client's socket: UDP, or a TCP connection that it opens with the first datagram (RFC 6544).

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use portunus_rtc::framing::{Deframer, frame_head};
use portunus_rtc::{CandidateTransport, Carrier, stun_check};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

/// A socket on the loopback interface.
#[derive(Debug)]
pub(crate) enum ClientSocket {
    Udp(UdpSocket),
    Tcp(Box<Tcp>),
}

#[derive(Debug)]
pub(crate) struct Tcp {
    local: SocketAddr,
    /// Bound, and not connected yet.
    bound: Option<TcpSocket>,
    stream: Option<(TcpStream, SocketAddr)>,
    deframer: Deframer,
    /// Received datagrams that were not taken yet.
    frames: VecDeque<Vec<u8>>,
}

impl ClientSocket {
    pub(crate) async fn udp() -> Self {
        Self::udp_from(Ipv4Addr::LOCALHOST.into()).await
    }

    /// Binds to the loopback address `ip`.
    pub(crate) async fn udp_from(ip: IpAddr) -> Self {
        ClientSocket::Udp(UdpSocket::bind((ip, 0)).await.unwrap())
    }

    /// Binds to the loopback address `ip`.
    pub(crate) fn tcp(ip: IpAddr) -> Self {
        let socket = bound(ip);
        ClientSocket::Tcp(Box::new(Tcp {
            local: socket.local_addr().unwrap(),
            bound: Some(socket),
            stream: None,
            deframer: Deframer::new(65_535),
            frames: VecDeque::new(),
        }))
    }

    pub(crate) fn local(&self) -> SocketAddr {
        match self {
            ClientSocket::Udp(socket) => socket.local_addr().unwrap(),
            ClientSocket::Tcp(tcp) => tcp.local,
        }
    }

    pub(crate) fn transport(&self) -> CandidateTransport {
        match self {
            ClientSocket::Udp(_) => CandidateTransport::Udp,
            ClientSocket::Tcp(_) => CandidateTransport::TcpActive,
        }
    }

    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            ClientSocket::Udp(_) => Carrier::Udp,
            ClientSocket::Tcp(_) => Carrier::Tcp,
        }
    }

    pub(crate) async fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let tcp = match self {
            ClientSocket::Udp(socket) => return socket.send_to(datagram, to).await.map(drop),
            ClientSocket::Tcp(tcp) => tcp,
        };
        // A connection starts with a check.
        let is_check = stun_check(datagram).is_some();
        if let Some(bound) = tcp.bound.take_if(|_| is_check) {
            let stream = bound.connect(to).await?;
            stream.set_nodelay(true)?;
            tcp.stream = Some((stream, to));
        }
        let Some((stream, _)) = tcp.stream.as_mut().filter(|(_, server)| *server == to) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let head = frame_head(datagram.len()).unwrap();
        stream.write_all(&[&head[..], datagram].concat()).await
    }

    /// Returns the next datagram and its sender, or `None` if the connection ended.
    pub(crate) async fn receive(&mut self, buf: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let tcp = match self {
            ClientSocket::Udp(socket) => return Some(socket.recv_from(buf).await.unwrap()),
            ClientSocket::Tcp(tcp) => tcp,
        };
        loop {
            let Some((stream, server)) = &tcp.stream else {
                return pending().await;
            };
            if let Some(frame) = tcp.frames.pop_front() {
                buf[..frame.len()].copy_from_slice(&frame);
                return Some((frame.len(), *server));
            }
            stream.readable().await.unwrap();
            let mut read = [0; 4_096];
            match stream.try_read(&mut read) {
                Ok(0) => {
                    tcp.stream = None;
                    return None;
                }
                Ok(len) => {
                    let (mut input, mut whole) = (&mut read[..len], Vec::new());
                    while let Some(frame) = tcp.deframer.next(&mut input, &mut whole).unwrap() {
                        tcp.frames.push_back(frame.to_vec());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    tcp.stream = None;
                    return None;
                }
            }
        }
    }

    /// Moves to another port of `ip` that only the server sees, as behind a NAT.
    pub(crate) async fn move_to(&mut self, ip: IpAddr) {
        match self {
            ClientSocket::Udp(socket) => *socket = UdpSocket::bind((ip, 0)).await.unwrap(),
            ClientSocket::Tcp(_) => self.connect_again(),
        }
    }

    pub(crate) fn close(&mut self) {
        if let ClientSocket::Tcp(tcp) = self {
            tcp.stream = None;
        }
    }

    /// Moves to another port that only the server sees, as behind a NAT.
    pub(crate) fn connect_again(&mut self) {
        if let ClientSocket::Tcp(tcp) = self {
            tcp.stream = None;
            tcp.bound = Some(bound(tcp.local.ip()));
            tcp.deframer = Deframer::new(65_535);
            tcp.frames.clear();
        }
    }
}

fn bound(ip: IpAddr) -> TcpSocket {
    let socket = match ip {
        IpAddr::V4(_) => TcpSocket::new_v4(),
        IpAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.unwrap();
    socket.bind(SocketAddr::new(ip, 0)).unwrap();
    socket
}
