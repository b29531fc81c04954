//! Errors of data channels.

use super::MAX_CHANNELS;
use super::dcep::{MAX_LABEL, MAX_PROTOCOL};

/// The reason why a message is not sent, or a channel not opened.
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
    /// [`MAX_CHANNELS`] are open.
    #[error("there are {MAX_CHANNELS} data channels already")]
    TooManyChannels,
    /// The message is longer than the peer accepts or this side sends.
    #[error("a message of {len} bytes is longer than the {limit} that can be sent")]
    TooLong {
        /// Its length, in bytes.
        len: usize,
        /// The longest that can be sent, in bytes.
        limit: usize,
    },
    /// The send buffer is full; an event reports when there is room again.
    #[error("{buffered} bytes wait to be sent already")]
    Full {
        /// Bytes in the buffer.
        buffered: usize,
    },
    /// There is no channel with this label.
    #[error("there is no such data channel")]
    NoChannel,
    /// The channel is being closed.
    #[error("the data channel is closing")]
    Closing,
}
