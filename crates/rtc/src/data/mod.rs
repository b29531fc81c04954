//! Data channels: SCTP (RFC 8831) by the crate `sctp-proto`, their establishment by DCEP (RFC 8832).

mod channel;
mod dcep;
mod sctp;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use portunus_sdp::negotiated::DtlsRole;
use sctp_proto::{
    Association, AssociationHandle, DatagramEvent, Endpoint, EndpointEvent, Event,
    PayloadProtocolIdentifier, ReliabilityType, StreamEvent, StreamId,
};

use crate::Amount;
use channel::{Channel, State};
pub use channel::{DataMessage, DataOptions, DataPayload, Reliability};
pub use dcep::{MAX_LABEL, MAX_PROTOCOL};
use dcep::{Message, milliseconds};
use sctp::NOWHERE;

/// Channels open at a time.
pub const MAX_CHANNELS: usize = 150;
/// Longest message in either direction, in bytes: what this side's SDP should say.
pub const MAX_MESSAGE: usize = 256 * 1024;
/// Bytes that wait to be sent, over all channels; beyond that, sending is refused.
pub const MAX_BUFFERED: usize = 1024 * 1024;
/// Once sending has been refused, it is worth trying again below this.
const LOW_BUFFERED: usize = MAX_BUFFERED / 2;

/// Streams that are tried for a new channel: those being reset are no more than there were channels, and an association that
/// cannot open one at all is not asked for each.
const MAX_TRIES: usize = 2 * MAX_CHANNELS;

/// What the remote side's SDP says of data channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataConfig {
    /// Its SCTP port (RFC 8841).
    pub remote_port: u16,
    /// The longest message that it takes, in bytes; 0 means any length.
    pub max_message_size: u32,
}

/// A message that is not sent, or a channel that is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// No data m-line was negotiated.
    #[error("data channels were not negotiated")]
    NotNegotiated,
    /// The transport is not connected yet.
    #[error("the transport is not connected yet")]
    NotConnected,
    /// The label or the subprotocol is too long.
    #[error("a label has at most {MAX_LABEL} bytes, a subprotocol {MAX_PROTOCOL}")]
    Name,
    /// There are as many channels as there may be.
    #[error("there are {MAX_CHANNELS} data channels already")]
    TooManyChannels,
    /// The message is longer than the peer takes or than this side sends.
    #[error("a message of {len} bytes is longer than the {limit} that can be sent")]
    TooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest that can be sent, in bytes.
        limit: usize,
    },
    /// Too much waits to be sent; a later event tells when to try again.
    #[error("{buffered} bytes wait to be sent already")]
    Full {
        /// Bytes that wait.
        buffered: usize,
    },
    /// There is no channel of that label.
    #[error("there is no such data channel")]
    NoChannel,
    /// The channel is being closed.
    #[error("the data channel is closing")]
    Closing,
}

/// What happened to data channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataEvent {
    Open {
        label: String,
        protocol: String,
    },
    Message {
        label: String,
        protocol: String,
        message: DataMessage,
    },
    Closed {
        label: String,
    },
    Writable,
}

/// The data channels of one transport.
pub(crate) struct Data {
    role: DtlsRole,
    config: DataConfig,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    established: bool,
    /// Streams on which something came while the association was not quite there: it cannot be
    /// answered yet, so it is not read yet.
    unread: Vec<StreamId>,
    channels: Vec<Channel>,
    /// Sending has been refused.
    refused: bool,
    events: VecDeque<DataEvent>,
    /// Packets and messages that make no sense, since this was asked last.
    malformed: u32,
    received: Amount,
    sent: Amount,
}

/// What came and left on data channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataFigures {
    /// Whether SCTP is up.
    pub established: bool,
    /// Channels that both sides may use.
    pub channels: usize,
    /// Messages that came.
    pub received: Amount,
    /// Messages that were given to SCTP, or wait for their channel.
    pub sent: Amount,
}

impl Data {
    /// Starts SCTP; DTLS is up. The DTLS client also begins SCTP; a peer that does not wait for it
    /// is understood too.
    pub(crate) fn new(role: DtlsRole, config: DataConfig) -> Self {
        let mut data = Self {
            role,
            config,
            endpoint: sctp::endpoint(config),
            association: None,
            established: false,
            unread: Vec::new(),
            channels: Vec::new(),
            refused: false,
            events: VecDeque::new(),
            malformed: 0,
            received: Amount::default(),
            sent: Amount::default(),
        };
        if role == DtlsRole::Client {
            let client = sctp::client(config);
            data.association = data.endpoint.connect(client, NOWHERE).ok();
            data.endpoint.reject_new_associations();
        }
        data
    }

    /// Opens a channel; it is no error if it is there.
    pub(crate) fn open(
        &mut self,
        label: &str,
        protocol: &str,
        options: DataOptions,
    ) -> Result<(), DataError> {
        if label.len() > MAX_LABEL || protocol.len() > MAX_PROTOCOL {
            return Err(DataError::Name);
        }
        if self.channels.iter().any(|channel| channel.label == label) {
            return Ok(());
        }
        if self.channels.len() >= MAX_CHANNELS {
            return Err(DataError::TooManyChannels);
        }
        self.channels.push(Channel {
            label: label.to_owned(),
            protocol: protocol.to_owned(),
            options,
            state: State::Waiting(VecDeque::new()),
        });
        self.offer_waiting();
        Ok(())
    }

    /// Sends a message on the channel of that label.
    pub(crate) fn send(&mut self, label: &str, payload: DataPayload<'_>) -> Result<(), DataError> {
        let limit = match self.config.max_message_size {
            0 => MAX_MESSAGE,
            size => MAX_MESSAGE.min(size as usize),
        };
        if payload.len() > limit {
            return Err(DataError::TooLong {
                len: payload.len(),
                limit,
            });
        }
        let buffered = self.buffered();
        if buffered + payload.len() > MAX_BUFFERED {
            self.refused = true;
            return Err(DataError::Full { buffered });
        }
        let channel = self
            .channels
            .iter_mut()
            .find(|channel| channel.label == label);
        let channel = channel.ok_or(DataError::NoChannel)?;
        let (len, (ppid, bytes)) = (payload.len(), payload.to_wire());
        let sent = match &mut channel.state {
            State::Waiting(queue) => {
                queue.push_back((ppid, bytes));
                Ok(())
            }
            State::Offered(id) | State::Open(id) => {
                let id = *id;
                self.write(id, &bytes, ppid)
            }
        };
        if sent.is_ok() {
            self.sent.add(len);
        }
        sent
    }

    /// What came and left.
    pub(crate) fn figures(&self) -> DataFigures {
        let open = |channel: &&Channel| matches!(channel.state, State::Open(_));
        DataFigures {
            established: self.established,
            channels: self.channels.iter().filter(open).count(),
            received: self.received,
            sent: self.sent,
        }
    }

    /// Closes the channel of that label.
    pub(crate) fn close(&mut self, label: &str) -> Result<(), DataError> {
        let at = self
            .channels
            .iter()
            .position(|channel| channel.label == label);
        let channel = self.channels.remove(at.ok_or(DataError::NoChannel)?);
        if let Some(id) = channel.stream() {
            self.reset(id);
        }
        Ok(())
    }

    /// Takes an SCTP packet.
    pub(crate) fn receive(&mut self, now: Instant, packet: &[u8]) {
        // It would be dropped all the same, but neither counted nor without a word in the log.
        if !sctp::is_well_formed(packet) {
            self.malformed = self.malformed.saturating_add(1);
            return;
        }
        // An INIT sent again may come after all that followed the first one: it changes nothing (RFC 9260 section 5.2.2).
        if self.established && sctp::begins_association(packet) {
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
        self.take_events();
    }

    /// Whether packets or messages that make no sense have come since this was asked last.
    pub(crate) fn take_malformed(&mut self) -> bool {
        std::mem::take(&mut self.malformed) > 0
    }

    /// Hands the SCTP packets that are to be sent to `send`.
    pub(crate) fn transmit(&mut self, now: Instant, mut send: impl FnMut(&[u8])) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            sctp::encode(&transmit.payload, &mut send);
        }
        if let Some((_, association)) = &mut self.association {
            while let Some(transmit) = association.poll_transmit(now) {
                sctp::encode(&transmit.payload, &mut send);
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.association
            .as_ref()
            .and_then(|(_, association)| association.poll_timeout())
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, association)) = &mut self.association
            && association.poll_timeout().is_some_and(|at| at <= now)
        {
            association.handle_timeout(now);
            self.take_events();
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<DataEvent> {
        self.events.pop_front()
    }

    fn take_events(&mut self) {
        while let Some(event) = self.association.as_mut().and_then(|(_, a)| a.poll()) {
            match event {
                Event::Connected => {
                    self.established = true;
                    for id in std::mem::take(&mut self.unread) {
                        self.read(id);
                    }
                    self.offer_waiting();
                }
                Event::HandshakeFailed { reason } | Event::AssociationLost { reason } => {
                    tracing::debug!(%reason, "the association of data channels has ended");
                    self.lose_association();
                }
                Event::Stream(StreamEvent::Opened { id } | StreamEvent::Readable { id }) => {
                    if self.established {
                        self.read(id);
                    } else if !self.unread.contains(&id) {
                        self.unread.push(id);
                    }
                }
                Event::Stream(StreamEvent::Finished { id }) => self.stream_finished(id),
                // Further news of streams says nothing that channels have to know.
                _ => {}
            }
        }
        if let Some((handle, association)) = &mut self.association {
            while let Some(event) = association.poll_endpoint_event() {
                self.endpoint.handle_event(*handle, event);
            }
        }
        if self.refused && self.buffered() <= LOW_BUFFERED {
            self.refused = false;
            self.events.push_back(DataEvent::Writable);
        }
    }

    /// The peer ended SCTP, but may begin it again.
    fn lose_association(&mut self) {
        if let Some((handle, _)) = self.association.take() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
        self.endpoint = sctp::endpoint(self.config);
        self.established = false;
        self.unread = Vec::new();
        for channel in std::mem::take(&mut self.channels) {
            self.events.push_back(DataEvent::Closed {
                label: channel.label,
            });
        }
    }

    /// Reads what has come on a stream.
    fn read(&mut self, id: StreamId) {
        loop {
            let Some((_, association)) = &mut self.association else {
                return;
            };
            // Streams show themselves by their first message; the queue of new ones is not needed.
            while association.accept_stream().is_some() {}
            let Ok(mut stream) = association.stream(id) else {
                return;
            };
            let Ok(Some(chunks)) = stream.read_sctp() else {
                return;
            };
            let len = chunks.len();
            let mut bytes = vec![0; len];
            if chunks.read(&mut bytes).is_err() {
                return;
            }
            if chunks.ppi == PayloadProtocolIdentifier::Dcep {
                self.establish(id, &bytes);
                continue;
            }
            let channel = self
                .channels
                .iter()
                .find(|channel| channel.stream() == Some(id));
            match (channel, DataMessage::from_wire(chunks.ppi, bytes)) {
                (Some(channel), Some(message)) => {
                    self.received.add(len);
                    let (label, protocol) = (channel.label.clone(), channel.protocol.clone());
                    self.events.push_back(DataEvent::Message {
                        label,
                        protocol,
                        message,
                    });
                }
                _ => self.malformed = self.malformed.saturating_add(1),
            }
        }
    }

    /// Takes a message of the establishment protocol.
    fn establish(&mut self, id: StreamId, bytes: &[u8]) {
        let known = self
            .channels
            .iter()
            .position(|channel| channel.stream() == Some(id));
        match (Message::parse(bytes), known) {
            (
                Some(Message::Open {
                    label,
                    protocol,
                    options,
                }),
                None,
            ) if self.channels.len() < MAX_CHANNELS => {
                let ack = Message::Ack.to_bytes();
                if self
                    .write(id, &ack.into(), PayloadProtocolIdentifier::Dcep)
                    .is_err()
                {
                    return;
                }
                self.set_options(id, options);
                self.events.push_back(DataEvent::Open {
                    label: label.clone(),
                    protocol: protocol.clone(),
                });
                let state = State::Open(id);
                self.channels.push(Channel {
                    label,
                    protocol,
                    options,
                    state,
                });
            }
            (Some(Message::Ack), Some(at)) => {
                let Some(channel) = self.channels.get_mut(at) else {
                    return;
                };
                if channel.state != State::Offered(id) {
                    return;
                }
                channel.state = State::Open(id);
                let options = channel.options;
                self.events.push_back(DataEvent::Open {
                    label: channel.label.clone(),
                    protocol: channel.protocol.clone(),
                });
                self.set_options(id, options);
            }
            // Malformed, one too many, opened twice, or the answer to nothing.
            (_, None) => {
                self.malformed = self.malformed.saturating_add(1);
                self.reset(id);
            }
            (_, Some(_)) => self.malformed = self.malformed.saturating_add(1),
        }
    }

    /// Offers the channels that wait for the association.
    fn offer_waiting(&mut self) {
        if !self.established {
            return;
        }
        for at in 0..self.channels.len() {
            let waits = |channel: &Channel| matches!(channel.state, State::Waiting(_));
            if !self.channels.get(at).is_some_and(waits) {
                continue;
            }
            let Some(id) = self.open_free_stream() else {
                return;
            };
            let Some(channel) = self.channels.get_mut(at) else {
                return;
            };
            let offered = std::mem::replace(&mut channel.state, State::Offered(id));
            let State::Waiting(queue) = offered else {
                continue;
            };
            let open = Message::Open {
                label: channel.label.clone(),
                protocol: channel.protocol.clone(),
                options: channel.options,
            };
            let reliability = channel.options.reliability;
            let opened = self.write(id, &open.to_bytes().into(), PayloadProtocolIdentifier::Dcep);
            if opened.is_err() {
                continue;
            }
            self.set_options(
                id,
                DataOptions {
                    ordered: true,
                    reliability,
                },
            );
            for (ppid, bytes) in queue {
                // The stream was opened a moment ago and there was room when they were queued.
                let _ = self.write(id, &bytes, ppid);
            }
        }
    }

    /// Opens the first stream that this side may open and that is neither open nor still being reset: even ones are the
    /// DTLS client's (RFC 8832 section 6).
    fn open_free_stream(&mut self) -> Option<StreamId> {
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

    fn write(
        &mut self,
        id: StreamId,
        bytes: &Bytes,
        ppid: PayloadProtocolIdentifier,
    ) -> Result<(), DataError> {
        let (_, association) = self.association.as_mut().ok_or(DataError::Closing)?;
        let mut stream = association.stream(id).map_err(|_| DataError::Closing)?;
        stream
            .write_sctp(bytes, ppid)
            .map(drop)
            .map_err(|_| DataError::Closing)
    }

    fn set_options(&mut self, id: StreamId, options: DataOptions) {
        let (kind, value) = match options.reliability {
            Reliability::Reliable => (ReliabilityType::Reliable, 0),
            Reliability::MaxRetransmits(times) => (ReliabilityType::Rexmit, times),
            Reliability::MaxLifetime(time) => (ReliabilityType::Timed, milliseconds(time)),
        };
        if let Some((_, association)) = &mut self.association
            && let Ok(mut stream) = association.stream(id)
        {
            // Fails only for a stream that is closed, where it does not matter.
            let _ = stream.set_reliability_params(!options.ordered, kind, value);
        }
    }

    fn reset(&mut self, id: StreamId) {
        if let Some((_, association)) = &mut self.association
            && let Ok(mut stream) = association.stream(id)
        {
            // Fails only while there is no association, when there is nothing to reset.
            let _ = stream.close();
        }
    }

    fn stream_finished(&mut self, id: StreamId) {
        if let Some(at) = self
            .channels
            .iter()
            .position(|channel| channel.stream() == Some(id))
        {
            let channel = self.channels.remove(at);
            self.events.push_back(DataEvent::Closed {
                label: channel.label,
            });
        }
    }

    /// Bytes that wait to be sent or to be acknowledged.
    fn buffered(&mut self) -> usize {
        let mut total = 0;
        for channel in &self.channels {
            total += match &channel.state {
                State::Waiting(queue) => queue.iter().map(|(_, bytes)| bytes.len()).sum(),
                State::Offered(id) | State::Open(id) => self
                    .association
                    .as_mut()
                    .and_then(|(_, association)| association.stream(*id).ok())
                    .and_then(|stream| stream.buffered_amount().ok())
                    .unwrap_or(0),
            };
        }
        total
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data")
            .field("config", &self.config)
            .field("established", &self.established)
            .field("channels", &self.channels)
            .field("malformed", &self.malformed)
            .finish_non_exhaustive()
    }
}
