//! Messages in WebSocket frames: protobuf in binary ones, JSON in text.

use std::sync::OnceLock;

use bytes::Bytes;
use livekit_protocol::{SignalRequest, SignalResponse, signal_response};
use prost::Message;

/// The longest message of a client, in bytes.
pub const MAX_MESSAGE: usize = 2 << 20;

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

/// A response that is written once in each form, however many clients get it.
#[derive(Debug)]
pub struct Frame {
    response: SignalResponse,
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
            binary: OnceLock::new(),
            json: OnceLock::new(),
        }
    }

    /// Returns the message.
    pub fn message(&self) -> Option<&signal_response::Message> {
        self.response.message.as_ref()
    }

    /// Returns the frame's content.
    pub fn content(&self, form: Form) -> Bytes {
        match form {
            Form::Binary => self
                .binary
                .get_or_init(|| self.response.encode_to_vec().into())
                .clone(),
            Form::Json => self
                .json
                .get_or_init(|| {
                    serde_json::to_vec(&self.response)
                        .unwrap_or_default()
                        .into()
                })
                .clone(),
        }
    }
}
