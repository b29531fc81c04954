//! SCTP as data channels use it (RFC 8261): over DTLS, with the times of libwebrtc.

use std::net::SocketAddr;
use std::sync::Arc;

use sctp_proto::{ClientConfig, Endpoint, EndpointConfig, Payload, ServerConfig, TransportConfig};

use super::{DataConfig, MAX_MESSAGE};
use crate::dtls::MAX_DATA;

/// What is before a DATA chunk's payload.
const HEADERS: usize = COMMON_HEADER + 16;
const COMMON_HEADER: usize = 12;
const CHUNK_HEADER: usize = 4;
/// What is before the parameters of an INIT or INIT ACK.
const INIT_FIELDS: usize = 16;
/// What is before the lists of a SACK.
const SACK_FIELDS: usize = 12;

const CHUNK_DATA: u8 = 0;
const CHUNK_INIT: u8 = 1;
const CHUNK_INIT_ACK: u8 = 2;
const CHUNK_SACK: u8 = 3;
const CHUNK_HEARTBEAT: u8 = 4;
const CHUNK_HEARTBEAT_ACK: u8 = 5;
const CHUNK_ABORT: u8 = 6;
const CHUNK_SHUTDOWN: u8 = 7;
const CHUNK_ERROR: u8 = 9;
const CHUNK_RECONFIG: u8 = 130;
const CHUNK_FORWARD_TSN: u8 = 192;

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

/// Whether the chunks of a packet are as long as they say and as their types need (RFC 9260 section 3,
/// RFC 3758, RFC 6525).
pub(super) fn is_well_formed(packet: &[u8]) -> bool {
    let chunks = packet.get(COMMON_HEADER..);
    let Some(mut rest) = chunks.filter(|chunks| !chunks.is_empty()) else {
        return false;
    };
    while !rest.is_empty() {
        let Some((kind, value, after)) = chunk(rest) else {
            return false;
        };
        if !is_complete(kind, value) {
            return false;
        }
        rest = after;
    }
    true
}

/// The type and the value of the first chunk, and what comes after it.
fn chunk(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, _, high, low] = *bytes.first_chunk::<CHUNK_HEADER>()?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    let value = bytes.get(CHUNK_HEADER..len)?;
    Some((kind, value, bytes.get(len.next_multiple_of(4)..)?))
}

/// Whether the value of a chunk has all that a chunk of its type has to have.
fn is_complete(kind: u8, value: &[u8]) -> bool {
    match kind {
        CHUNK_DATA => value.len() >= HEADERS - COMMON_HEADER - CHUNK_HEADER,
        CHUNK_INIT | CHUNK_INIT_ACK => value.get(INIT_FIELDS..).is_some_and(are_parameters),
        CHUNK_SACK => is_sack(value),
        CHUNK_HEARTBEAT | CHUNK_HEARTBEAT_ACK | CHUNK_RECONFIG => {
            !value.is_empty() && are_parameters(value)
        }
        // Their causes look like parameters.
        CHUNK_ABORT | CHUNK_ERROR => are_parameters(value),
        CHUNK_SHUTDOWN => value.len() == 4,
        CHUNK_FORWARD_TSN => value.len() >= 4 && value.len().is_multiple_of(4),
        _ => true,
    }
}

/// Whether a SACK is as long as its lists of gaps and duplicates.
fn is_sack(value: &[u8]) -> bool {
    let Some([.., gaps, more_gaps, duplicates, more_duplicates]) =
        value.first_chunk::<SACK_FIELDS>()
    else {
        return false;
    };
    let gaps = u16::from_be_bytes([*gaps, *more_gaps]);
    let duplicates = u16::from_be_bytes([*duplicates, *more_duplicates]);
    value.len() >= SACK_FIELDS + 4 * (usize::from(gaps) + usize::from(duplicates))
}

/// Whether the parameters are as long as they say. Fewer bytes than a header takes are padding.
fn are_parameters(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some([_, _, high, low]) = rest.first_chunk::<4>() {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if len < 4 || len > rest.len() {
            return false;
        }
        // The last one may come without its padding.
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

/// Hands each packet of what is to be sent to `send`.
pub(super) fn encode(payload: &Payload, send: &mut impl FnMut(&[u8])) {
    match payload {
        Payload::RawEncode(packets) => packets.iter().for_each(|packet| send(packet)),
        Payload::PartialDecode(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(chunks: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0; COMMON_HEADER];
        packet.extend(chunks.concat());
        packet
    }

    const COOKIE_ACK: &[u8] = &[11, 0, 0, 4];
    const SACK: &[u8] = &[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    const HEARTBEAT: &[u8] = &[4, 0, 0, 10, 0, 1, 0, 6, 7, 7, 0, 0];
    const DATA: &[u8] = &[0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 51, 7, 0, 0, 0];

    #[test]
    fn packets_of_whole_chunks_are_taken() {
        for chunks in [
            vec![COOKIE_ACK, SACK, DATA],
            vec![HEARTBEAT],
            // With one gap and one duplicate.
            vec![
                &[
                    3, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 2, 0, 3, 0, 0, 0, 1,
                ][..],
            ],
            // An ABORT without and with a cause, a SHUTDOWN, a type that is not known.
            vec![&[6, 0, 0, 4][..]],
            vec![&[6, 0, 0, 8, 0, 12, 0, 4][..]],
            vec![&[7, 0, 0, 8, 0, 0, 0, 1][..]],
            vec![&[200, 0, 0, 4][..]],
        ] {
            assert!(is_well_formed(&packet(&chunks)), "{chunks:?}");
        }
    }

    #[test]
    fn packets_with_a_chunk_too_short_are_malformed() {
        for chunks in [
            vec![],
            vec![&[3, 0, 0][..]],
            vec![&[3, 0, 0, 4][..]],
            vec![&[3, 0, 0, 0][..]],
            vec![&[4, 0, 0, 4][..]],
            vec![&[4, 0, 0, 8, 0, 1, 0, 3][..]],
            vec![&[4, 0, 0, 8, 0, 1, 0, 9][..]],
            vec![&[0, 3, 0, 8, 0, 0, 0, 1][..]],
            vec![&[1, 0, 0, 8, 0, 0, 0, 1][..]],
            vec![&[7, 0, 0, 4][..]],
            vec![&[192, 0, 0, 6, 0, 0, 0, 0][..]],
            // More gaps than there are, longer than the packet, without its padding, after one that is good.
            vec![&[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0][..]],
            vec![&[11, 0, 0, 8][..]],
            vec![DATA.get(..17).unwrap_or_default()],
            vec![SACK, &[3, 0, 0, 4][..]],
        ] {
            assert!(!is_well_formed(&packet(&chunks)), "{chunks:?}");
        }
        assert!(!is_well_formed(&[0; 11]));
    }
}
