//! A client of another project (`turn-client-proto`) on real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portunus_turn::IceServer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use turn_client_proto::api::{
    Transmit, TransmitBuild, TurnClientApi, TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet,
};
use turn_client_proto::tcp::TurnClientTcp;
use turn_client_proto::udp::TurnClientUdp;
use turn_types::prelude::DelayedTransmitBuild;
use turn_types::{Instant, TransportType, TurnCredentials};

/// The longest time that a test waits.
const PATIENCE: Duration = Duration::from_secs(20);

pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

enum Wire {
    Udp(UdpSocket),
    Stream(Box<dyn Stream>),
}

/// The client with its received datagrams.
pub struct Relayed<C> {
    turn: C,
    wire: Wire,
    server: SocketAddr,
    local: SocketAddr,
    started: std::time::Instant,
    received: Vec<(SocketAddr, Vec<u8>)>,
}

pub fn credentials(server: &IceServer) -> TurnConfig {
    let login = TurnCredentials::new(&server.username, &server.credential);
    TurnConfig::new(login)
}

impl Relayed<TurnClientUdp> {
    pub async fn udp(server: SocketAddr, config: TurnConfig) -> Self {
        let socket = UdpSocket::bind((server.ip(), 0)).await.unwrap();
        let local = socket.local_addr().unwrap();
        let turn = TurnClientUdp::allocate(local, server, config);
        Self::new(turn, Wire::Udp(socket), server, local)
    }
}

impl Relayed<TurnClientTcp> {
    pub async fn tcp(server: SocketAddr, config: TurnConfig) -> Self {
        let stream = TcpStream::connect(server).await.unwrap();
        let local = stream.local_addr().unwrap();
        Self::stream(Box::new(stream), server, local, config)
    }

    pub async fn tls(
        server: SocketAddr,
        certificate: CertificateDer<'static>,
        config: TurnConfig,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let tls = ClientConfig::builder().with_root_certificates(roots);
        let connector = TlsConnector::from(Arc::new(tls.with_no_client_auth()));
        let stream = TcpStream::connect(server).await.unwrap();
        let local = stream.local_addr().unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        Self::stream(Box::new(stream), server, local, config)
    }

    pub fn stream(
        stream: Box<dyn Stream>,
        server: SocketAddr,
        local: SocketAddr,
        config: TurnConfig,
    ) -> Self {
        let turn = TurnClientTcp::allocate(local, server, config);
        Self::new(turn, Wire::Stream(stream), server, local)
    }
}

impl<C: TurnClientApi> Relayed<C> {
    fn new(turn: C, wire: Wire, server: SocketAddr, local: SocketAddr) -> Self {
        Relayed {
            turn,
            wire,
            server,
            local,
            started: std::time::Instant::now(),
            received: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_std(self.started)
    }

    /// Runs until the client has an event.
    pub async fn event(&mut self) -> TurnEvent {
        let event = async {
            loop {
                if let Some(event) = self.turn.poll_event() {
                    return event;
                }
                self.step().await;
            }
        };
        tokio::time::timeout(PATIENCE, event)
            .await
            .expect("an event")
    }

    pub async fn allocated(&mut self) -> SocketAddr {
        match self.event().await {
            TurnEvent::AllocationCreated(_, address) => address,
            other => panic!("{other:?}"),
        }
    }

    /// Returns whether a channel and a permission for a peer are granted.
    pub async fn bind(&mut self, peer: SocketAddr) -> bool {
        let now = self.now();
        self.turn
            .bind_channel(TransportType::Udp, peer, now)
            .unwrap();
        loop {
            match self.event().await {
                TurnEvent::ChannelCreated(..) => return true,
                TurnEvent::ChannelCreateFailed(..) => return false,
                _ => {}
            }
        }
    }

    pub async fn permit(&mut self, peer: SocketAddr) -> bool {
        let now = self.now();
        let asked = self
            .turn
            .create_permission(TransportType::Udp, peer.ip(), now);
        asked.unwrap();
        match self.event().await {
            TurnEvent::PermissionCreated(..) => true,
            TurnEvent::PermissionCreateFailed(..) => false,
            other => panic!("{other:?}"),
        }
    }

    pub async fn send(&mut self, peer: SocketAddr, data: &[u8]) {
        let now = self.now();
        let sent = self
            .turn
            .send_to(TransportType::Udp, peer, data, now)
            .unwrap();
        if let Some(transmit) = sent {
            let TransmitBuild { data, .. } = transmit;
            self.write(&data.build()).await;
        }
    }

    /// Returns the next datagram of a peer.
    pub async fn receive(&mut self) -> (SocketAddr, Vec<u8>) {
        let received = async {
            while self.received.is_empty() {
                self.step().await;
            }
            self.received.remove(0)
        };
        tokio::time::timeout(PATIENCE, received)
            .await
            .expect("a datagram")
    }

    pub async fn delete(&mut self) {
        let now = self.now();
        self.turn.delete(now).unwrap();
        while !matches!(self.turn.poll(self.now()), TurnPollRet::Closed) {
            self.step().await;
        }
    }

    /// Writes the client's output, then reads once, or waits for the client's next timeout.
    async fn step(&mut self) {
        let wait = match self.turn.poll(self.now()) {
            TurnPollRet::WaitUntil(until) => until.saturating_duration_since(self.now()),
            _ => Duration::ZERO,
        };
        while let Some(transmit) = self.turn.poll_transmit(self.now()) {
            let data = transmit.data.to_vec();
            self.write(&data).await;
        }
        let mut buffer = vec![0; 4_096];
        let read = async {
            match &mut self.wire {
                Wire::Udp(socket) => socket.recv_from(&mut buffer).await.unwrap().0,
                Wire::Stream(stream) => stream.read(&mut buffer).await.unwrap(),
            }
        };
        let wait = wait.min(Duration::from_millis(50));
        let Ok(len) = tokio::time::timeout(wait, read).await else {
            return;
        };
        assert!(len > 0, "the server has closed the connection");
        buffer.truncate(len);
        let transport = self.turn.transport();
        let transmit = Transmit::new(buffer, transport, self.server, self.local);
        let now = self.now();
        if let TurnRecvRet::PeerData(data) = self.turn.recv(transmit, now) {
            self.received.push((data.peer, data.data().to_vec()));
        }
        while let Some(data) = self.turn.poll_recv(now) {
            self.received.push((data.peer, data.data().to_vec()));
        }
    }

    async fn write(&mut self, data: &[u8]) {
        match &mut self.wire {
            Wire::Udp(socket) => {
                socket.send_to(data, self.server).await.unwrap();
            }
            Wire::Stream(stream) => {
                stream.write_all(data).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
    }
}
