//! Finds the public address of this machine by STUN, and announces it to clients.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use portunus_core::{Networks, reflected_address};
use portunus_media::{MediaPlane, PublicAddress};
use portunus_turn::{MediaAddress, MediaAddresses, Turn};

use crate::config::StunServer;

/// The interval of requests.
const PERIOD: Duration = Duration::from_secs(30);
/// The time limit of an answer.
const ANSWER: Duration = Duration::from_secs(3);
/// How long the start waits for the first answer.
const START: Duration = Duration::from_secs(4);

/// The discovery of the public address.
pub(crate) struct Discovery {
    server: StunServer,
    media: MediaPlane,
    /// The TURN server, which relays to these addresses, too.
    turn: Option<Turn>,
    found: Vec<PublicAddress>,
    /// The last fault, so that it is logged once.
    fault: String,
}

impl Discovery {
    pub(crate) fn new(server: StunServer, media: MediaPlane) -> Self {
        Discovery {
            server,
            media,
            turn: None,
            found: Vec::new(),
            fault: String::new(),
        }
    }

    /// Asks once, at the start.
    pub(crate) async fn first(&mut self) {
        if tokio::time::timeout(START, self.ask()).await.is_err() {
            tracing::warn!(server = %self.server, "the STUN server does not answer yet (media.stun_server)");
        }
    }

    /// Asks repeatedly.
    pub(crate) async fn follow(mut self, turn: Option<Turn>) {
        self.turn = turn;
        loop {
            tokio::time::sleep(PERIOD).await;
            self.ask().await;
        }
    }

    /// Asks for each bound address, and announces changes to clients. An address without an answer
    /// keeps its former result.
    async fn ask(&mut self) {
        let mut found = Vec::new();
        let mut fault = String::new();
        for bound in self.bound() {
            let outcome = match self.server.resolve(bound.is_ipv4()).await {
                Ok(server) if server.ip().is_loopback() != bound.is_loopback() => continue,
                Ok(server) => self.seen(server, bound).await,
                // Servers often have no IPv6 address.
                Err(_) if bound.is_ipv6() => continue,
                Err(error) => Err(error.to_string()),
            };
            match outcome {
                Ok((public, keeps_port)) if public != bound => {
                    found.push(PublicAddress { bound, public });
                    if !keeps_port && fault.is_empty() {
                        fault = format!(
                            "{bound} is behind a NAT that changes ports: it has to forward the ports of media"
                        );
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    found.extend(self.found.iter().filter(|it| it.bound == bound));
                    fault = error;
                }
            }
        }
        if !fault.is_empty() && fault != self.fault {
            tracing::warn!(server = %self.server, "{fault} (media.stun_server)");
        }
        self.fault = fault;
        if found != self.found {
            self.announce(found);
        }
    }

    /// Returns the public address of a bound one, and whether the port is the same.
    async fn seen(&self, server: SocketAddr, bound: IpAddr) -> Result<(IpAddr, bool), String> {
        let asked = reflected_address(server, SocketAddr::new(bound, 0));
        match tokio::time::timeout(ANSWER, asked).await {
            Ok(Ok((public, local))) => Ok((public.ip(), public.port() == local.port())),
            Ok(Err(error)) => Err(format!("cannot ask the STUN server: {error}")),
            Err(_) => Err("the STUN server does not answer".to_owned()),
        }
    }

    fn announce(&mut self, found: Vec<PublicAddress>) {
        for PublicAddress { bound, public } in &found {
            tracing::info!(%bound, %public, "clients are told of a public address");
        }
        self.media.set_public(&found);
        if let Some(turn) = &self.turn {
            turn.set_media(relayed_to(&self.media));
        }
        self.found = found;
    }

    /// Returns the bound addresses that are neither public nor announced.
    fn bound(&self) -> Vec<IpAddr> {
        let addresses: Vec<_> = self.media.addresses().collect();
        let mut ips: Vec<IpAddr> = Vec::new();
        for (announced, bound) in &addresses {
            let ip = bound.ip();
            if announced == bound && !Networks::default().allow(ip) && !ips.contains(&ip) {
                ips.push(ip);
            }
        }
        ips
    }
}

/// Returns the addresses that the TURN server relays to.
pub(crate) fn relayed_to(media: &MediaPlane) -> MediaAddresses {
    let address = |(announced, bound)| MediaAddress { announced, bound };
    MediaAddresses::new(media.addresses().map(address))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::net::{Ipv4Addr, UdpSocket};
    use std::sync::{Arc, Mutex};

    use portunus_media::MediaConfig;

    use super::*;

    /// Answers binding requests with a variable address, or not at all while it is `None`.
    fn stun_server(public: Arc<Mutex<Option<SocketAddr>>>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut request = [0; 1_500];
            while let Ok((len, from)) = socket.recv_from(&mut request) {
                let Some(SocketAddr::V4(public)) = *public.lock().unwrap() else {
                    continue;
                };
                assert!(len >= 20);
                // XOR-MAPPED-ADDRESS (RFC 8489 section 14.2).
                let port = (public.port() ^ 0x2112).to_be_bytes();
                let ip = (public.ip().to_bits() ^ 0x2112_A442).to_be_bytes();
                let mut response = vec![1, 1, 0, 12];
                response.extend(request.get(4..20).unwrap());
                response.extend([0, 0x20, 0, 8, 0, 1]);
                response.extend(port.into_iter().chain(ip));
                socket.send_to(&response, from).unwrap();
            }
        });
        address
    }

    fn candidates(media: &MediaPlane) -> Vec<SocketAddr> {
        media.addresses().map(|(announced, _)| announced).collect()
    }

    #[tokio::test]
    async fn a_public_address_is_announced_followed_and_kept_without_answers() {
        let public = Arc::new(Mutex::new(None));
        let server = stun_server(public.clone()).to_string();
        let config = MediaConfig {
            workers: 1,
            port: 0,
            bind: vec![Ipv4Addr::LOCALHOST.into()],
            ..MediaConfig::default()
        };
        let (media, _events) = MediaPlane::start(config).unwrap();
        let port = candidates(&media)[0].port();
        let mut discovery = Discovery::new(server.parse().unwrap(), media.clone());
        discovery.ask().await;
        assert_eq!(candidates(&media).len(), 1);
        for ip in [[203, 0, 113, 7], [203, 0, 113, 8]] {
            *public.lock().unwrap() = Some(SocketAddr::from((ip, 5_000)));
            discovery.ask().await;
            assert_eq!(candidates(&media)[1..], [SocketAddr::from((ip, port))]);
            assert_eq!(media.public_ips(), [IpAddr::from(ip)]);
        }
        assert!(
            discovery.fault.contains("changes ports"),
            "{}",
            discovery.fault
        );
        *public.lock().unwrap() = None;
        discovery.ask().await;
        assert_eq!(candidates(&media).len(), 2);
        assert!(
            discovery.fault.contains("does not answer"),
            "{}",
            discovery.fault
        );
        media.shutdown();
    }

    #[tokio::test]
    async fn an_announced_address_needs_no_server() {
        let server = stun_server(Arc::default()).to_string();
        let config = MediaConfig {
            workers: 1,
            port: 0,
            bind: vec![Ipv4Addr::LOCALHOST.into()],
            announced: vec![portunus_media::AnnouncedAddress {
                bound: Some(Ipv4Addr::LOCALHOST.into()),
                ip: [203, 0, 113, 9].into(),
                port: None,
            }],
            ..MediaConfig::default()
        };
        let (media, _events) = MediaPlane::start(config).unwrap();
        let mut discovery = Discovery::new(server.parse().unwrap(), media.clone());
        discovery.first().await;
        assert_eq!(discovery.fault, "");
        assert_eq!(candidates(&media).len(), 1);
        media.shutdown();
    }
}
