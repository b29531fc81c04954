//! Messages in WebSocket frames: protobuf in binary ones, JSON in text.

use std::sync::OnceLock;

use bytes::Bytes;
use livekit_protocol::{
    JoinResponse, ParticipantInfo, SignalRequest, SignalResponse, signal_response,
};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, message};

/// The longest message of a client, in bytes.
pub const MAX_MESSAGE: usize = 2 << 20;

/// The size of a connection's permanent read buffer, in bytes. The library's default is 128 KiB.
pub(crate) const READ_BUFFER: usize = 4 << 10;

/// The form of a client's last message. The answers have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Protobuf.
    #[default]
    Binary,
    /// JSON.
    Json,
}

/// The reason why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is too long.
    #[error("longer than {MAX_MESSAGE} bytes")]
    TooLong,
    /// It is not protobuf.
    #[error("not protobuf: {0}")]
    Binary(#[from] prost::DecodeError),
    /// It is not JSON of the message.
    #[error("not JSON of a request: {0}")]
    Json(#[from] serde_json::Error),
}

/// Reads a request.
pub fn read(form: Form, frame: &[u8]) -> Result<SignalRequest, FrameError> {
    if frame.len() > MAX_MESSAGE {
        return Err(FrameError::TooLong);
    }
    match form {
        Form::Binary => Ok(SignalRequest::decode(frame)?),
        Form::Json => Ok(serde_json::from_slice(frame)?),
    }
}

/// The number of the field `join` of `SignalResponse`.
const JOIN: u32 = 1;

/// The number of the field `other_participants` of `JoinResponse`.
const OTHER_PARTICIPANTS: u32 = 3;

/// Encodes a participant as the field `other_participants` of a `join`.
pub(crate) fn other_participant(info: &ParticipantInfo) -> Bytes {
    let mut field = Vec::with_capacity(message::encoded_len(OTHER_PARTICIPANTS, info));
    message::encode(OTHER_PARTICIPANTS, info, &mut field);
    field.into()
}

/// A response that is written once in each form, however many clients get it.
#[derive(Debug)]
pub struct Frame {
    response: SignalResponse,
    /// The encoded other participants of a `join`. Empty for all other messages.
    others: Vec<Bytes>,
    binary: OnceLock<Bytes>,
    json: OnceLock<Bytes>,
}

impl Frame {
    /// Returns a frame of `message`.
    pub fn new(message: signal_response::Message) -> Self {
        Frame {
            response: SignalResponse {
                message: Some(message),
            },
            others: Vec::new(),
            binary: OnceLock::new(),
            json: OnceLock::new(),
        }
    }

    /// Returns a frame of `join` with these encoded [participants](other_participant). A join into a
    /// large room does not encode them again.
    pub(crate) fn joined(join: JoinResponse, others: Vec<Bytes>) -> Self {
        Frame {
            others,
            ..Frame::new(signal_response::Message::Join(join))
        }
    }

    /// Returns the message, without the others of [`Frame::joined`].
    pub fn message(&self) -> Option<&signal_response::Message> {
        self.response.message.as_ref()
    }

    /// Returns the frame's content.
    pub fn content(&self, form: Form) -> Bytes {
        match form {
            Form::Binary => self
                .binary
                .get_or_init(|| self.to_protobuf().into())
                .clone(),
            Form::Json => self.json.get_or_init(|| self.to_json().into()).clone(),
        }
    }

    fn to_protobuf(&self) -> Vec<u8> {
        let join = match &self.response.message {
            Some(signal_response::Message::Join(join)) if !self.others.is_empty() => join,
            _ => return self.response.encode_to_vec(),
        };
        let others: usize = self.others.iter().map(Bytes::len).sum();
        let len = join.encoded_len().saturating_add(others);
        // The key and the length have at most 11 bytes.
        let mut frame = Vec::with_capacity(len.saturating_add(11));
        encode_key(JOIN, WireType::LengthDelimited, &mut frame);
        encode_varint(len as u64, &mut frame);
        // Memory grows, so that writing cannot fail.
        let _ = join.encode(&mut frame);
        for other in &self.others {
            frame.extend_from_slice(other);
        }
        frame
    }

    fn to_json(&self) -> Vec<u8> {
        if self.others.is_empty() {
            return serde_json::to_vec(&self.response).unwrap_or_default();
        }
        let whole = SignalResponse::decode(self.content(Form::Binary));
        serde_json::to_vec(&whole.unwrap_or_default()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_join_with_written_others_is_as_one_with_others() {
        let other = |identity: &str| ParticipantInfo {
            identity: identity.to_owned(),
            ..ParticipantInfo::default()
        };
        let join = JoinResponse {
            server_version: "1".to_owned(),
            ping_timeout: 15,
            ..JoinResponse::default()
        };
        let all = [other("ann"), other("bob")];
        let fields = all.iter().map(other_participant).collect();
        let written = Frame::joined(join.clone(), fields);
        let whole = Frame::new(signal_response::Message::Join(JoinResponse {
            other_participants: all.to_vec(),
            ..join
        }));
        let read = |frame: &Frame| SignalResponse::decode(frame.content(Form::Binary)).unwrap();
        assert_eq!(read(&written), read(&whole));
        assert_eq!(written.content(Form::Json), whole.content(Form::Json));
    }
}
