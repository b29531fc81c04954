//! Where messages begin and end: in datagrams and WebSocket frames (RFC 3261 section 18.3, RFC 7118), and in streams.
//!
//! What comes out is for [`crate::message::Message::parse`].

use crate::message::{MAX_MESSAGE, declared_length};

/// The message in a datagram, or in a frame of a WebSocket. `None` if it is a keep-alive: line ends, zeros or nothing
/// (RFC 5626), or STUN.
#[must_use]
pub fn datagram(bytes: &[u8]) -> Option<&[u8]> {
    // Line ends before a message are skipped (RFC 3261 section 7.5).
    let start = bytes.iter().position(|byte| !b"\r\n".contains(byte))?;
    // No message starts with an octet below 4; STUN does (RFC 5389 section 6), and some keep-alives.
    bytes
        .get(start..)
        .filter(|message| message.first().is_some_and(|byte| *byte >= 4))
}

/// Who opened a connection: keep-alives are sent by the one side and answered by the other (RFC 5626 section 4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We did.
    Connected,
    /// The peer did.
    Accepted,
}

/// What a stream brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message. Where the stream cannot go on behind it, it has its head only: it cannot be parsed, but answered.
    Message(Vec<u8>),
    /// The peer asks whether we are there: to be answered with [`PONG`].
    Ping,
    /// The peer is there.
    Pong,
}

/// What asks whether the peer is there.
pub const PING: &[u8] = b"\r\n\r\n";
/// What answers that.
pub const PONG: &[u8] = b"\r\n";

/// A stream in which nobody can tell any more where messages begin. It is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A message has more than [`MAX_MESSAGE`] octets.
    #[error("message is too large")]
    TooLarge,
    /// A Content-Length is malformed.
    #[error("length of a message is unknown")]
    Unframed,
}

/// The messages of a stream. They are delimited by Content-Length; without one there is no body.
///
/// Memory: one message, and what was pushed with its end.
#[derive(Debug)]
pub struct Stream {
    role: Role,
    buffer: Vec<u8>,
    /// Octets of the buffer in which no head ends.
    searched: usize,
    /// Where the message ends, once that is known.
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

    /// Takes what was read. All of [`Self::next`] is to be taken before more is pushed.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next whole message or keep-alive. `None` if more has to be read.
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

    /// Whether a message has begun that is not whole.
    #[must_use]
    pub fn is_within_message(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Takes line ends off the front. They are keep-alives, or stand before a message (RFC 3261 section 7.5).
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

    /// Where the empty line ends that ends the head.
    fn find_head_end(&mut self) -> Option<usize> {
        // An end may straddle what was searched: it has four octets.
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

    /// Gives out the head alone, and ends the stream.
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
        // A long message does not hold its memory for ever.
        if self.buffer.is_empty() && self.buffer.capacity() > 8192 {
            self.buffer = Vec::new();
        }
    }
}
