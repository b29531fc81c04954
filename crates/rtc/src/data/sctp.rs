//! SCTP as data channels use it (RFC 8261): over DTLS, with the times of libwebrtc.

use std::net::SocketAddr;
use std::sync::Arc;

use sctp_proto::{ClientConfig, Endpoint, EndpointConfig, Payload, ServerConfig, TransportConfig};

use super::{DataConfig, MAX_MESSAGE};
use crate::dtls::MAX_DATA;

/// What is before a DATA chunk's payload.
const HEADERS: usize = COMMON_HEADER + 16;
const COMMON_HEADER: usize = 12;
const CHUNK_INIT: u8 = 1;

/// As libwebrtc has them; the defaults of RFC 9260 are for paths unlike ours.
const RTO_INITIAL_MS: u64 = 500;
const RTO_MIN_MS: u64 = 400;
const RTO_MAX_MS: u64 = 10_000;

/// SCTP wants addresses, though DTLS is below it.
pub(super) const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// What takes packets and makes associations of them.
pub(super) fn endpoint(config: DataConfig) -> Endpoint {
    let mut endpoint = EndpointConfig::new();
    // Whole words, so that no chunk needs padding.
    endpoint.max_payload_size(((MAX_DATA - HEADERS) & !3) as u32);
    let mut server = ServerConfig::new();
    server.transport = Arc::new(transport_config(config));
    Endpoint::new(Arc::new(endpoint), Some(Arc::new(server)))
}

/// How this side begins an association.
pub(super) fn client(config: DataConfig) -> ClientConfig {
    let mut client = ClientConfig::new();
    client.transport = Arc::new(transport_config(config));
    client
}

fn transport_config(config: DataConfig) -> TransportConfig {
    TransportConfig::default()
        .with_max_send_message_size(MAX_MESSAGE as u32)
        .with_max_receive_message_size(MAX_MESSAGE as u32)
        .with_rto_initial_ms(RTO_INITIAL_MS)
        .with_rto_min_ms(RTO_MIN_MS)
        .with_rto_max_ms(RTO_MAX_MS)
        // Whether the peer is there is for ICE to say.
        .with_max_init_retransmits(None)
        .with_max_data_retransmits(None)
        .with_remote_port(config.remote_port.max(1))
}

/// Whether a packet holds an INIT.
pub(super) fn begins_association(packet: &[u8]) -> bool {
    packet.get(COMMON_HEADER) == Some(&CHUNK_INIT)
}

/// Hands each packet of what is to be sent to `send`.
pub(super) fn encode(payload: &Payload, send: &mut impl FnMut(&[u8])) {
    match payload {
        Payload::RawEncode(packets) => packets.iter().for_each(|packet| send(packet)),
        Payload::PartialDecode(_) => {}
    }
}
