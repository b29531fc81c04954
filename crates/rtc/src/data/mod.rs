//! Data channels: SCTP (RFC 8831) by the crate `sctp-proto`, established by DCEP (RFC 8832).

mod association;
mod channel;
mod dcep;
mod error;
mod packet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;

use portunus_sdp::negotiated::DtlsRole;
use sctp_proto::{Event, PayloadProtocolIdentifier, StreamEvent, StreamId};

use crate::Amount;
use association::Sctp;
use channel::{Channel, State};
pub use channel::{DataMessage, DataOptions, DataPayload, Reliability};
use dcep::Message;
pub use dcep::{MAX_LABEL, MAX_PROTOCOL};
pub use error::DataError;

/// The most channels open at a time.
pub const MAX_CHANNELS: usize = 150;
/// The longest message in either direction, in bytes. This side's SDP should announce it.
pub const MAX_MESSAGE: usize = 256 * 1024;
/// The most bytes that wait to be sent, over all channels. Beyond it, sending is refused.
pub const MAX_BUFFERED: usize = 1024 * 1024;
/// The fill level, in bytes, below which sending is worth a new try after a refusal.
const LOW_BUFFERED: usize = MAX_BUFFERED / 2;

/// The data channel parameters of the remote side's SDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataConfig {
    /// The SCTP port (RFC 8841).
    pub remote_port: u16,
    /// The longest message that the peer accepts, in bytes. 0 means any length.
    pub max_message_size: u32,
}

/// An event of data channels.
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
    sctp: Sctp,
    /// Streams with data that arrived before the association was established. It is read later,
    /// since it cannot be answered yet.
    unread: Vec<StreamId>,
    channels: Vec<Channel>,
    /// A message was refused because the send buffer was full.
    refused: bool,
    events: VecDeque<DataEvent>,
    /// Malformed packets and messages since the last call of [`Data::take_malformed`].
    malformed: u32,
    received: Amount,
    sent: Amount,
}

/// Statistics of data channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataFigures {
    /// Whether the SCTP association is established.
    pub established: bool,
    /// Channels that both sides may use.
    pub channels: usize,
    /// Messages received.
    pub received: Amount,
    /// Messages passed to SCTP, or waiting for their channel to open.
    pub sent: Amount,
}

impl Data {
    /// Starts SCTP over an established DTLS connection. The DTLS client opens the association, but
    /// a peer that opens it earlier is accepted too.
    pub(crate) fn new(role: DtlsRole, config: DataConfig) -> Self {
        Self {
            sctp: Sctp::new(role, config),
            unread: Vec::new(),
            channels: Vec::new(),
            refused: false,
            events: VecDeque::new(),
            malformed: 0,
            received: Amount::default(),
            sent: Amount::default(),
        }
    }

    /// Opens a channel. Does nothing if there is one with this label.
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

    /// Sends a message on the channel with this label.
    pub(crate) fn send(&mut self, label: &str, payload: DataPayload<'_>) -> Result<(), DataError> {
        let (len, limit) = (payload.len(), self.sctp.max_message());
        if len > limit {
            return Err(DataError::TooLong { len, limit });
        }
        let buffered = self.buffered();
        if buffered + len > MAX_BUFFERED {
            self.refused = true;
            return Err(DataError::Full { buffered });
        }
        let mut channels = self.channels.iter_mut();
        let channel = channels.find(|channel| channel.label == label);
        let channel = channel.ok_or(DataError::NoChannel)?;
        let (ppid, bytes) = payload.to_wire();
        match &mut channel.state {
            State::Waiting(queue) => queue.push_back((ppid, bytes)),
            State::Offered(id) | State::Open(id) => self.sctp.write(*id, &bytes, ppid)?,
        }
        self.sent.add(len);
        Ok(())
    }

    /// Returns the statistics.
    pub(crate) fn figures(&self) -> DataFigures {
        let open = |channel: &&Channel| matches!(channel.state, State::Open(_));
        DataFigures {
            established: self.sctp.is_established(),
            channels: self.channels.iter().filter(open).count(),
            received: self.received,
            sent: self.sent,
        }
    }

    /// Closes the channel with this label.
    pub(crate) fn close(&mut self, label: &str) -> Result<(), DataError> {
        let mut channels = self.channels.iter();
        let at = channels.position(|channel| channel.label == label);
        let channel = self.channels.remove(at.ok_or(DataError::NoChannel)?);
        if let Some(id) = channel.stream() {
            self.sctp.reset(id);
        }
        Ok(())
    }

    /// Takes an SCTP packet.
    pub(crate) fn receive(&mut self, now: Instant, packet: &[u8]) {
        // The library would drop it too, but neither count nor log it.
        if !packet::is_well_formed(packet) {
            return self.count_malformed();
        }
        self.sctp.receive(now, packet);
        self.take_events();
    }

    /// Returns whether malformed packets or messages have arrived since the last call.
    pub(crate) fn take_malformed(&mut self) -> bool {
        std::mem::take(&mut self.malformed) > 0
    }

    /// Passes the SCTP packets to transmit to `send`.
    pub(crate) fn transmit(&mut self, now: Instant, send: impl FnMut(&[u8])) {
        self.sctp.transmit(now, send);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.sctp.poll_timeout()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.sctp.handle_timeout(now) {
            self.take_events();
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<DataEvent> {
        self.events.pop_front()
    }

    fn take_events(&mut self) {
        while let Some(event) = self.sctp.poll_event() {
            match event {
                Event::Connected => {
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
                    if self.sctp.is_established() {
                        self.read(id);
                    } else if !self.unread.contains(&id) {
                        self.unread.push(id);
                    }
                }
                Event::Stream(StreamEvent::Finished { id }) => self.stream_finished(id),
                // Other events do not concern channels.
                _ => {}
            }
        }
        self.sctp.forward_endpoint_events();
        if self.refused && self.buffered() <= LOW_BUFFERED {
            self.refused = false;
            self.events.push_back(DataEvent::Writable);
        }
    }

    /// Closes all channels, since the peer ended SCTP. It may start SCTP again.
    fn lose_association(&mut self) {
        self.sctp.restart();
        self.unread = Vec::new();
        for channel in std::mem::take(&mut self.channels) {
            self.events.push_back(DataEvent::Closed {
                label: channel.label,
            });
        }
    }

    /// Reads the messages that have arrived on a stream.
    fn read(&mut self, id: StreamId) {
        while let Some((ppid, bytes)) = self.sctp.read(id) {
            if ppid == PayloadProtocolIdentifier::Dcep {
                self.establish(id, &bytes);
                continue;
            }
            let len = bytes.len();
            let mut channels = self.channels.iter();
            let channel = channels.find(|channel| channel.stream() == Some(id));
            match (channel, DataMessage::from_wire(ppid, bytes)) {
                (Some(channel), Some(message)) => {
                    self.received.add(len);
                    self.events.push_back(DataEvent::Message {
                        label: channel.label.clone(),
                        protocol: channel.protocol.clone(),
                        message,
                    });
                }
                _ => self.count_malformed(),
            }
        }
    }

    /// Takes a message of the establishment protocol.
    fn establish(&mut self, id: StreamId, bytes: &[u8]) {
        let known = self.position(id);
        match (Message::parse(bytes), known) {
            (
                Some(Message::Open {
                    label,
                    protocol,
                    options,
                }),
                None,
            ) if self.channels.len() < MAX_CHANNELS => {
                let ack = Message::Ack.to_bytes().into();
                let acked = self.sctp.write(id, &ack, PayloadProtocolIdentifier::Dcep);
                if acked.is_err() {
                    return;
                }
                self.sctp.set_options(id, options);
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
                self.events.push_back(DataEvent::Open {
                    label: channel.label.clone(),
                    protocol: channel.protocol.clone(),
                });
                self.sctp.set_options(id, channel.options);
            }
            // Malformed, one channel too many, or an acknowledgement without a channel.
            (_, None) => {
                self.count_malformed();
                self.sctp.reset(id);
            }
            (_, Some(_)) => self.count_malformed(),
        }
    }

    /// Offers the channels that wait for the association.
    fn offer_waiting(&mut self) {
        if !self.sctp.is_established() {
            return;
        }
        for channel in &mut self.channels {
            if !matches!(channel.state, State::Waiting(_)) {
                continue;
            }
            let Some(id) = self.sctp.open_free_stream() else {
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
            let open = open.to_bytes().into();
            let opened = self.sctp.write(id, &open, PayloadProtocolIdentifier::Dcep);
            if opened.is_err() {
                continue;
            }
            // Nothing may overtake the message that opens the channel.
            let ordered = DataOptions {
                ordered: true,
                ..channel.options
            };
            self.sctp.set_options(id, ordered);
            for (ppid, bytes) in queue {
                // The stream has just been opened, and there was room when they were queued.
                let _ = self.sctp.write(id, &bytes, ppid);
            }
        }
    }

    fn stream_finished(&mut self, id: StreamId) {
        if let Some(at) = self.position(id) {
            let channel = self.channels.remove(at);
            self.events.push_back(DataEvent::Closed {
                label: channel.label,
            });
        }
    }

    fn position(&self, id: StreamId) -> Option<usize> {
        let mut channels = self.channels.iter();
        channels.position(|channel| channel.stream() == Some(id))
    }

    fn count_malformed(&mut self) {
        self.malformed = self.malformed.saturating_add(1);
    }

    /// Returns the bytes that are not yet sent or not yet acknowledged.
    fn buffered(&mut self) -> usize {
        let mut total = 0;
        for channel in &self.channels {
            total += match &channel.state {
                State::Waiting(queue) => queue.iter().map(|(_, bytes)| bytes.len()).sum(),
                State::Offered(id) | State::Open(id) => self.sctp.buffered(*id),
            };
        }
        total
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data")
            .field("sctp", &self.sctp)
            .field("channels", &self.channels)
            .field("malformed", &self.malformed)
            .finish_non_exhaustive()
    }
}
