//! The ways of packets: pairs of UDP sockets, or channels of the RTSP connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::task::{Context, Poll};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use crate::RtspError;

/// The way of the packets.
pub(crate) enum Receiving {
    /// To ports of our own, a pair for each medium.
    Udp(Vec<UdpPair>),
    /// The channels of RTP and RTCP for each medium.
    Tcp(Vec<(u8, u8)>),
}

impl Receiving {
    /// Returns the pairs of ports. Over TCP there are none.
    pub fn pairs(&self) -> &[UdpPair] {
        match self {
            Receiving::Udp(pairs) => pairs,
            Receiving::Tcp(_) => &[],
        }
    }

    /// Lets the server's packets in, see [`UdpPair::open_way`].
    pub fn open_way(&self, ssrc: u32) {
        for pair in self.pairs() {
            pair.open_way(ssrc);
        }
    }
}

/// Room for bursts of keyframes.
const RECEIVE_BUFFER: usize = 1 << 20;

/// The two ports of a medium: RTP, and RTCP one above.
#[derive(Debug)]
pub(crate) struct UdpPair {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    /// The permitted senders: the RTSP server, and the source that it names. Behind a port forward,
    /// the source is an address of the server's own network, and packets come from the server's
    /// public one.
    from: Option<[IpAddr; 2]>,
    /// The server's ports for RTP and RTCP, if it names them.
    server: Option<(SocketAddr, SocketAddr)>,
}

impl UdpPair {
    /// Binds a pair that is free, looked for from a random place on.
    pub fn bind(address: IpAddr, ports: &RangeInclusive<u16>) -> Result<Self, RtspError> {
        let (first, last) = (u32::from(*ports.start()), u32::from(*ports.end()));
        let first = first.next_multiple_of(2);
        let pairs = (last + 1).saturating_sub(first) / 2;
        let start = rand::random_range(0..pairs.max(1));
        for index in 0..pairs.min(1_000) {
            let port = first + (start + index) % pairs * 2;
            let (Ok(low), Ok(high)) = (u16::try_from(port), u16::try_from(port + 1)) else {
                continue;
            };
            if let Ok(rtp) = bind(SocketAddr::new(address, low))
                && let Ok(rtcp) = bind(SocketAddr::new(address, high))
            {
                return Ok(Self {
                    rtp,
                    rtcp,
                    from: None,
                    server: None,
                });
            }
        }
        Err(RtspError::Ports(*ports.start(), *ports.end()))
    }

    /// Returns the lower port.
    pub fn port(&self) -> Result<u16, RtspError> {
        Ok(self.rtp.local_addr()?.port())
    }

    /// Accepts packets from the RTSP server `peer` and from `source` only. The ports `server`
    /// belong to `source`.
    pub fn connect(&mut self, peer: IpAddr, source: IpAddr, server: Option<(u16, u16)>) {
        self.from = Some([peer, source]);
        let at = |port| SocketAddr::new(source, port);
        self.server = server.map(|(low, high)| (at(low), at(high)));
    }

    /// Sends small packets to the server, so that NATs and firewalls let its packets in.
    pub fn open_way(&self, ssrc: u32) {
        let Some((rtp, rtcp)) = self.server else {
            return;
        };
        let [a, b, c, d] = ssrc.to_be_bytes();
        // A packet without payload, and an empty receiver report. Others follow if they are lost.
        let _ = self
            .rtp
            .try_send_to(&[0x80, 0, 0, 0, 0, 0, 0, 0, a, b, c, d], rtp);
        let _ = self.rtcp.try_send_to(&[0x80, 201, 0, 1, a, b, c, d], rtcp);
    }

    /// Sends RTCP to the server, if its port is known.
    pub fn send_rtcp(&self, compound: &[u8]) {
        if let Some((_, rtcp)) = self.server {
            // It may get lost on its way as well.
            let _ = self.rtcp.try_send_to(compound, rtcp);
        }
    }

    /// Returns the next packet, and whether it is RTCP.
    pub fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        for (socket, is_rtcp) in [(&self.rtcp, true), (&self.rtp, false)] {
            loop {
                buffer.clear();
                match socket.poll_recv_from(context, buffer) {
                    Poll::Ready(Ok(from)) => {
                        let from = from.ip().to_canonical();
                        if self.from.is_none_or(|known| known.contains(&from)) {
                            return Poll::Ready(Ok(is_rtcp));
                        }
                    }
                    // The server's host reports that no socket received the first packets.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    // As much as the system permits.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Returns the next packet of any pair, starting after `last`: the pair, and whether it is RTCP.
pub(crate) fn poll_any(
    pairs: &[UdpPair],
    last: usize,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<(usize, bool)>> {
    for step in 1..=pairs.len() {
        let index = (last + step) % pairs.len();
        let Some(pair) = pairs.get(index) else {
            continue;
        };
        if let Poll::Ready(result) = pair.poll_receive(context, buffer) {
            return Poll::Ready(result.map(|is_rtcp| (index, is_rtcp)));
        }
    }
    Poll::Pending
}

/// The transport in a server's answer to SETUP.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TransportAnswer {
    pub is_tcp: bool,
    pub is_multicast: bool,
    pub interleaved: Option<(u8, u8)>,
    pub server_port: Option<(u16, u16)>,
    pub source: Option<IpAddr>,
}

impl TransportAnswer {
    /// Reads the header (RFC 2326 section 12.39). Skips unknown parameters.
    pub fn parse(value: &str) -> Self {
        let mut this = Self::default();
        for (index, part) in value.split(';').map(str::trim).enumerate() {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name.to_ascii_lowercase().as_str() {
                "multicast" => this.is_multicast = true,
                "interleaved" => this.interleaved = pair(value),
                "server_port" => this.server_port = pair(value),
                "source" => this.source = value.parse().ok(),
                profile if index == 0 => this.is_tcp = profile.ends_with("/tcp"),
                _ => {}
            }
        }
        this
    }
}

/// Reads `5000-5001`, or `5000` for a pair of equal numbers.
fn pair<T: Copy + std::str::FromStr + Into<u32> + TryFrom<u32>>(value: &str) -> Option<(T, T)> {
    let (low, high) = value.split_once('-').unzip();
    let low: T = low.unwrap_or(value).trim().parse().ok()?;
    let high = match high {
        Some(high) => high.trim().parse().ok()?,
        None => T::try_from(low.into() + 1).ok()?,
    };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let answer = TransportAnswer::parse(
            "RTP/AVP;unicast;client_port=5000-5001;source=10.0.0.1;server_port=6000-6001;ssrc=1",
        );
        assert_eq!(answer.server_port, Some((6_000, 6_001)));
        assert_eq!(answer.source, Some(IpAddr::from([10, 0, 0, 1])));
        assert!(!answer.is_tcp && !answer.is_multicast);
        let answer = TransportAnswer::parse("RTP/AVP/TCP;unicast; interleaved=2");
        assert!(answer.is_tcp);
        assert_eq!(answer.interleaved, Some((2, 3)));
        for lie in [
            "",
            ";;;=",
            "interleaved=300-1",
            "interleaved=255",
            "server_port=70000",
        ] {
            let answer = TransportAnswer::parse(lie);
            assert_eq!(
                (answer.interleaved, answer.server_port),
                (None, None),
                "{lie}"
            );
        }
        assert!(TransportAnswer::parse("RTP/AVP;multicast;port=1-2").is_multicast);
    }

    #[tokio::test]
    async fn pairs_of_ports() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let pair = UdpPair::bind(address, &(40_000..=50_000)).map(|pair| pair.port());
        assert!(matches!(pair, Ok(Ok(port)) if port % 2 == 0));
        let none = UdpPair::bind(address, &(40_001..=40_001));
        assert!(matches!(none, Err(RtspError::Ports(40_001, 40_001))));
    }
}
