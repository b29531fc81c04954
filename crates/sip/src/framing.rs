//! The bounds of messages in datagrams and WebSocket frames (RFC 3261 section 18.3, RFC 7118), and
//! in streams.
//!
//! [`crate::message::Message::parse`] takes the results.

use crate::message::{MAX_MESSAGE, declared_length};

/// Returns the message in a datagram, or in a frame of a WebSocket. Returns `None` for a
/// keep-alive: line ends, zeros or nothing (RFC 5626), or STUN.
#[must_use]
pub fn datagram(bytes: &[u8]) -> Option<&[u8]> {
    // Line ends before a message are skipped (RFC 3261 section 7.5).
    let start = bytes.iter().position(|byte| !b"\r\n".contains(byte))?;
    // No message starts with an octet below 4; STUN does (RFC 5389 section 6), and some
    // keep-alives.
    bytes
        .get(start..)
        .filter(|message| message.first().is_some_and(|byte| *byte >= 4))
}

/// The side that opened a connection. It sends keep-alives, and the other one answers them (RFC
/// 5626 section 4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We opened it.
    Connected,
    /// The peer opened it.
    Accepted,
}

/// An item of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message. If the stream cannot continue after it, only its head: it cannot be parsed, but
    /// gets a response.
    Message(Vec<u8>),
    /// A ping of the peer, to be answered with [`PONG`].
    Ping,
    /// A pong of the peer.
    Pong,
}

/// A ping.
pub const PING: &[u8] = b"\r\n\r\n";
/// A pong.
pub const PONG: &[u8] = b"\r\n";

/// The bounds of messages in a stream are lost. It is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A message has more than [`MAX_MESSAGE`] octets.
    #[error("message is too large")]
    TooLarge,
    /// A Content-Length is malformed.
    #[error("length of a message is unknown")]
    Unframed,
}

/// The messages of a stream. Content-Length delimits them; without one there is no body.
///
/// It buffers one message, and the octets pushed with its end.
#[derive(Debug)]
pub struct Stream {
    role: Role,
    buffer: Vec<u8>,
    /// The length of the start of the buffer without an end of a head.
    searched: usize,
    /// The end of the message, once that is known.
    end: Option<usize>,
    /// A line end that may be the first half of a ping.
    half_ping: bool,
    broken: Option<StreamError>,
}

impl Stream {
    /// An empty stream.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            buffer: Vec::new(),
            searched: 0,
            end: None,
            half_ping: false,
            broken: None,
        }
    }

    /// Takes octets. [`Self::next`] is to be called until it returns `None` before the next call.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the next whole message or keep-alive, or `None` if more has to be read.
    ///
    /// # Errors
    /// Nothing more can be read from this stream.
    #[expect(
        clippy::should_implement_trait,
        reason = "it ends with an error, not with None"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, StreamError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        if self.end.is_none()
            && let Some(keep_alive) = self.take_line_ends()
        {
            return Ok(Some(keep_alive));
        }
        if self.end.is_none() {
            let Some(head_end) = self.find_head_end() else {
                return if self.buffer.len() > MAX_MESSAGE {
                    Err(self.break_off(StreamError::TooLarge))
                } else {
                    Ok(None)
                };
            };
            let head = self.buffer.get(..head_end).unwrap_or_default();
            let length = match declared_length(head) {
                Ok(length) => length,
                Err(_) => return Ok(Some(self.refuse(head_end, StreamError::Unframed))),
            };
            let end = head_end.saturating_add(length);
            if end > MAX_MESSAGE {
                return Ok(Some(self.refuse(head_end, StreamError::TooLarge)));
            }
            self.end = Some(end);
        }
        let Some(end) = self.end else {
            return Ok(None);
        };
        let Some(message) = self.buffer.get(..end) else {
            return Ok(None);
        };
        let message = message.to_vec();
        self.drop_front(end);
        Ok(Some(Frame::Message(message)))
    }

    /// Whether the start of a message waits for the rest.
    #[must_use]
    pub fn is_within_message(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Removes line ends at the front. They are keep-alives, or stand before a message (RFC 3261
    /// section 7.5).
    fn take_line_ends(&mut self) -> Option<Frame> {
        loop {
            let length = match self.buffer.as_slice() {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                [] | [b'\r'] => return None,
                _ => {
                    self.half_ping = false;
                    return None;
                }
            };
            self.drop_front(length);
            if self.role == Role::Connected {
                return Some(Frame::Pong);
            }
            self.half_ping = !self.half_ping;
            if !self.half_ping {
                return Some(Frame::Ping);
            }
        }
    }

    /// Returns the end of the empty line that ends the head.
    fn find_head_end(&mut self) -> Option<usize> {
        // The end has four octets, and may overlap the octets searched before.
        let from = self.searched.saturating_sub(3);
        let unsearched = self.buffer.get(from..).unwrap_or_default();
        let mut ends = unsearched
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .filter_map(|(at, _)| {
                let after = unsearched.get(at.saturating_add(1)..)?;
                let length = if after.starts_with(b"\r\n") {
                    3
                } else if after.starts_with(b"\n") {
                    2
                } else {
                    return None;
                };
                Some(from.saturating_add(at).saturating_add(length))
            });
        let end = ends.next();
        self.searched = self.buffer.len();
        end
    }

    /// Returns the head alone, and ends the stream.
    fn refuse(&mut self, head_end: usize, error: StreamError) -> Frame {
        self.buffer.truncate(head_end);
        let head = std::mem::take(&mut self.buffer);
        self.break_off(error);
        Frame::Message(head)
    }

    fn break_off(&mut self, error: StreamError) -> StreamError {
        self.broken = Some(error);
        self.buffer = Vec::new();
        error
    }

    fn drop_front(&mut self, length: usize) {
        self.buffer.drain(..length.min(self.buffer.len()));
        self.searched = 0;
        self.end = None;
        // A long message does not keep its memory.
        if self.buffer.is_empty() && self.buffer.capacity() > 8192 {
            self.buffer = Vec::new();
        }
    }
}
