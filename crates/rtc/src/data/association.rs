//! The SCTP association below the data channels: over DTLS (RFC 8261), with the timeouts of
//! libwebrtc.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use portunus_sdp::negotiated::DtlsRole;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig,
    EndpointEvent, Event, Payload, PayloadProtocolIdentifier, ReliabilityType, ServerConfig,
    StreamId, TransportConfig,
};

use super::dcep::milliseconds;
use super::packet::{self, HEADERS};
use super::{DataConfig, DataError, DataOptions, MAX_CHANNELS, MAX_MESSAGE, Reliability};
use crate::dtls::MAX_DATA;

/// The retransmission timeouts of libwebrtc. Those of RFC 9260 are for other kinds of paths.
const RTO_INITIAL_MS: u64 = 500;
const RTO_MIN_MS: u64 = 400;
const RTO_MAX_MS: u64 = 10_000;

/// An address for the library, which requires one although packets travel over DTLS.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// The most streams tried for a new channel: streams being reset are at most as many as channels.
const MAX_TRIES: usize = 2 * MAX_CHANNELS;

/// The association of one transport, and its streams.
pub(super) struct Sctp {
    role: DtlsRole,
    config: DataConfig,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    is_established: bool,
}

impl Sctp {
    /// Opens the association if this side is the DTLS client, or else waits for the peer to do it.
    pub(super) fn new(role: DtlsRole, config: DataConfig) -> Self {
        let mut sctp = Self {
            role,
            config,
            endpoint: endpoint(config),
            association: None,
            is_established: false,
        };
        if role == DtlsRole::Client {
            sctp.association = sctp.endpoint.connect(client(config), NOWHERE).ok();
            sctp.endpoint.reject_new_associations();
        }
        sctp
    }

    pub(super) const fn is_established(&self) -> bool {
        self.is_established
    }

    /// Returns the length of the longest message that may be sent, in bytes.
    pub(super) fn max_message(&self) -> usize {
        match self.config.max_message_size {
            0 => MAX_MESSAGE,
            size => MAX_MESSAGE.min(size as usize),
        }
    }

    /// Takes a well-formed packet.
    pub(super) fn receive(&mut self, now: Instant, packet: &[u8]) {
        // A retransmitted INIT may arrive after all that followed the first one. It changes nothing
        // (RFC 9260 section 5.2.2).
        if self.is_established && packet::begins_association(packet) {
            return;
        }
        let packet = Bytes::copy_from_slice(packet);
        match self.endpoint.handle(now, NOWHERE, None, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association)))
                if self.association.is_none() =>
            {
                self.association = Some((handle, association));
                self.endpoint.reject_new_associations();
            }
            Some((handle, DatagramEvent::AssociationEvent(event))) => {
                if let Some((known, association)) = &mut self.association
                    && *known == handle
                {
                    association.handle_event(event);
                }
            }
            Some((_, DatagramEvent::NewAssociation(_))) | None => {}
        }
    }

    /// Passes the packets to transmit to `send`.
    pub(super) fn transmit(&mut self, now: Instant, mut send: impl FnMut(&[u8])) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            encode(&transmit.payload, &mut send);
        }
        if let Some((_, association)) = &mut self.association {
            while let Some(transmit) = association.poll_transmit(now) {
                encode(&transmit.payload, &mut send);
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let (_, association) = self.association.as_ref()?;
        association.poll_timeout()
    }

    /// Returns whether a timer of the association has expired, which may have led to events.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let is_due = self.poll_timeout().is_some_and(|at| at <= now);
        if let Some((_, association)) = self.association.as_mut().filter(|_| is_due) {
            association.handle_timeout(now);
        }
        is_due
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let (_, association) = self.association.as_mut()?;
        let event = association.poll()?;
        self.is_established |= matches!(event, Event::Connected);
        Some(event)
    }

    /// Passes the events of the association to the endpoint.
    pub(super) fn forward_endpoint_events(&mut self) {
        if let Some((handle, association)) = &mut self.association {
            while let Some(event) = association.poll_endpoint_event() {
                self.endpoint.handle_event(*handle, event);
            }
        }
    }

    /// Drops the association, and waits for the peer to open another.
    pub(super) fn restart(&mut self) {
        if let Some((handle, _)) = self.association.take() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
        self.endpoint = endpoint(self.config);
        self.is_established = false;
    }

    /// Opens the first free stream of this side: one that is neither open nor being reset. The DTLS
    /// client has the even ones (RFC 8832 section 6).
    pub(super) fn open_free_stream(&mut self) -> Option<StreamId> {
        let first = match self.role {
            DtlsRole::Client => 0,
            DtlsRole::Server => 1,
        };
        let (_, association) = self.association.as_mut()?;
        let taken = association.stream_ids();
        (first..u16::MAX)
            .step_by(2)
            .filter(|id| !taken.contains(id))
            .take(MAX_TRIES)
            .find(|id| {
                let opened = association.open_stream(*id, PayloadProtocolIdentifier::Binary);
                opened.is_ok()
            })
    }

    /// Reads the next message of a stream.
    pub(super) fn read(&mut self, id: StreamId) -> Option<(PayloadProtocolIdentifier, Vec<u8>)> {
        let (_, association) = self.association.as_mut()?;
        // New streams are known by their first message, so the queue of them is not needed.
        while association.accept_stream().is_some() {}
        let mut stream = association.stream(id).ok()?;
        let chunks = stream.read_sctp().ok()??;
        let mut bytes = vec![0; chunks.len()];
        chunks.read(&mut bytes).ok()?;
        Some((chunks.ppi, bytes))
    }

    /// Queues a message on a stream.
    pub(super) fn write(
        &mut self,
        id: StreamId,
        bytes: &Bytes,
        ppid: PayloadProtocolIdentifier,
    ) -> Result<(), DataError> {
        let (_, association) = self.association.as_mut().ok_or(DataError::Closing)?;
        let mut stream = association.stream(id).map_err(|_| DataError::Closing)?;
        let written = stream.write_sctp(bytes, ppid);
        written.map(drop).map_err(|_| DataError::Closing)
    }

    pub(super) fn set_options(&mut self, id: StreamId, options: DataOptions) {
        let (kind, value) = match options.reliability {
            Reliability::Reliable => (ReliabilityType::Reliable, 0),
            Reliability::MaxRetransmits(times) => (ReliabilityType::Rexmit, times),
            Reliability::MaxLifetime(time) => (ReliabilityType::Timed, milliseconds(time)),
        };
        if let Some((_, association)) = &mut self.association
            && let Ok(mut stream) = association.stream(id)
        {
            // Fails only for a closed stream, where it does not matter.
            let _ = stream.set_reliability_params(!options.ordered, kind, value);
        }
    }

    /// Closes a stream.
    pub(super) fn reset(&mut self, id: StreamId) {
        if let Some((_, association)) = &mut self.association
            && let Ok(mut stream) = association.stream(id)
        {
            // Fails only without an association, when there is nothing to reset.
            let _ = stream.close();
        }
    }

    /// Returns the bytes of a stream that are not yet acknowledged.
    pub(super) fn buffered(&mut self, id: StreamId) -> usize {
        let stream = self.association.as_mut();
        let stream = stream.and_then(|(_, association)| association.stream(id).ok());
        let buffered = stream.and_then(|stream| stream.buffered_amount().ok());
        buffered.unwrap_or(0)
    }
}

impl fmt::Debug for Sctp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sctp")
            .field("config", &self.config)
            .field("is_established", &self.is_established)
            .finish_non_exhaustive()
    }
}

/// Makes the endpoint, which accepts associations.
fn endpoint(config: DataConfig) -> Endpoint {
    let mut endpoint = EndpointConfig::new();
    // A multiple of 4, so that no chunk needs padding.
    endpoint.max_payload_size(((MAX_DATA - HEADERS) & !3) as u32);
    let mut server = ServerConfig::new();
    server.transport = Arc::new(transport_config(config));
    Endpoint::new(Arc::new(endpoint), Some(Arc::new(server)))
}

/// Returns the parameters with which this side opens an association.
fn client(config: DataConfig) -> ClientConfig {
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
        // ICE decides whether the peer is gone.
        .with_max_init_retransmits(None)
        .with_max_data_retransmits(None)
        .with_remote_port(config.remote_port.max(1))
}

/// Passes each packet of `payload` to `send`.
fn encode(payload: &Payload, send: &mut impl FnMut(&[u8])) {
    match payload {
        Payload::RawEncode(packets) => packets.iter().for_each(|packet| send(packet)),
        Payload::PartialDecode(_) => {}
    }
}
