//! SETUP: which of the described media come, and how (RFC 2326 section 10.4).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rtsp_types::headers;

use crate::channels::{Receiving, TransportAnswer, UdpPair};
use crate::connection::{Connection, header};
use crate::description::{Choice, Medium};
use crate::request::Request;
use crate::{Config, RtspError, Transport};

/// The media that a server has set up.
pub(crate) struct SetUp {
    pub media: Vec<Medium>,
    /// Counted as `media`.
    pub receiving: Receiving,
    /// The server's session timeout, if it names one.
    pub timeout: Option<Duration>,
}

/// Sets up the first medium of each choice to which the server agrees. Skips a choice without one.
/// Returns the first refusal if no medium is left.
pub(crate) async fn set_up(
    connection: &mut Connection,
    config: &Config,
    choices: Vec<Choice>,
    tcp: bool,
) -> Result<SetUp, RtspError> {
    let mut result = SetUp {
        media: Vec::new(),
        receiving: match tcp {
            true => Receiving::Tcp(Vec::new()),
            false => Receiving::Udp(Vec::new()),
        },
        timeout: None,
    };
    // TCP may bring all of the media, where UDP would bring some.
    let gives_way = !tcp && config.transport == Transport::UdpThenTcp;
    let mut refusal = None;
    let mut number = 0;
    for medium in choices.into_iter().flat_map(Choice::into_media) {
        if result.media.iter().any(|it| it.kind == medium.kind) {
            continue;
        }
        match result.add(connection, config, medium, number).await {
            Ok(()) => {}
            Err(error) if gives_way && error.refuses_transport() => return Err(error),
            Err(error) if error.refuses_medium() => refusal = refusal.or(Some(error)),
            Err(error) => return Err(error),
        }
        // A requested channel may be in use even if the answer was not understood.
        number = number.saturating_add(2).min(u8::MAX - 1);
    }
    match refusal {
        Some(error) if result.media.is_empty() => Err(error),
        _ => Ok(result),
    }
}

impl SetUp {
    /// Sets up `medium`. Over TCP, requests the channels `number` and the next one.
    async fn add(
        &mut self,
        connection: &mut Connection,
        config: &Config,
        medium: Medium,
        number: u8,
    ) -> Result<(), RtspError> {
        let channels = (number, number.saturating_add(1));
        let (pair, transport) = match self.receiving {
            Receiving::Tcp(_) => {
                let (rtp, rtcp) = channels;
                let transport = format!("RTP/AVP/TCP;unicast;interleaved={rtp}-{rtcp}");
                (None, transport)
            }
            Receiving::Udp(_) => {
                let address = config.local.unwrap_or(match connection.local()? {
                    local if local.is_ipv4() => Ipv4Addr::UNSPECIFIED.into(),
                    _ => Ipv6Addr::UNSPECIFIED.into(),
                });
                let pair = UdpPair::bind(address, &config.ports)?;
                let port = pair.port()?;
                let next = port.wrapping_add(1);
                let transport = format!("RTP/AVP;unicast;client_port={port}-{next}");
                (Some(pair), transport)
            }
        };
        let request = Request::new("SETUP", &medium.control).with("Transport", transport);
        let response = match connection.ask_ok(&request).await {
            Ok(response) => response,
            Err(error) => {
                let (kind, control) = (medium.kind.name(), &medium.control);
                tracing::debug!(kind, control, %error, "a medium is refused");
                return Err(error);
            }
        };
        if let Some(session) = header(&response, &headers::SESSION) {
            let (id, told) = parse_session(session);
            self.timeout = told.or(self.timeout);
            connection.session = Some(id);
        }
        let answer = header(&response, &headers::TRANSPORT).unwrap_or_default();
        let answer = TransportAnswer::parse(answer);
        if answer.is_multicast {
            return Err(RtspError::Transport("multicast"));
        }
        if answer.is_tcp == pair.is_some() {
            return Err(RtspError::Transport("another one than was asked for"));
        }
        match (&mut self.receiving, pair) {
            (Receiving::Udp(pairs), Some(mut pair)) => {
                let peer = connection.peer()?.ip().to_canonical();
                pair.connect(peer, source(&answer, config, peer)?, answer.server_port);
                pairs.push(pair);
            }
            (Receiving::Tcp(known), _) => known.push(answer.interleaved.unwrap_or(channels)),
            (Receiving::Udp(_), None) => return Err(RtspError::Transport("no UDP")),
        }
        self.media.push(medium);
        Ok(())
    }
}

/// Returns the source of packets that the server names, or else the server.
fn source(answer: &TransportAnswer, config: &Config, peer: IpAddr) -> Result<IpAddr, RtspError> {
    let named = answer.source.filter(|source| !source.is_unspecified());
    let source = named.map_or(peer, |source| source.to_canonical());
    match config.check(source) {
        Ok(()) => Ok(source),
        Err(_) => Err(RtspError::ForbiddenSource(source)),
    }
}

/// Reads `12345678;timeout=60`.
fn parse_session(value: &str) -> (String, Option<Duration>) {
    let mut parts = value.split(';').map(str::trim);
    let id = parts.next().unwrap_or_default();
    let seconds = parts.find_map(|part| part.strip_prefix("timeout=")?.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=86_400).contains(seconds));
    (id.to_owned(), seconds.map(Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions() {
        let sixty = Some(Duration::from_secs(60));
        assert_eq!(parse_session("abc;timeout=60"), ("abc".to_owned(), sixty));
        assert_eq!(parse_session("abc ; timeout=0"), ("abc".to_owned(), None));
        assert_eq!(parse_session("abc"), ("abc".to_owned(), None));
    }
}
