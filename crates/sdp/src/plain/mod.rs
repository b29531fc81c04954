//! Descriptions for far ends without ICE and DTLS: telephones, SIP servers, and media servers with
//! plain RTP or with SRTP keys in the description (SDES, RFC 4568).
//!
//! A [`PlainSession`] connects two negotiations. Towards the browser it reads and makes
//! [`Description`]s, which have no transport. Towards the far end it writes and reads SDP text,
//! with addresses, ports and keys:
//!
//! ```text
//! browser's offer  --PlainSession::offer-->         SDP text     far end's answer
//! --accept_answer--> browser's answer
//! far end's offer  --PlainSession::take_offer-->    browser's offer    browser's answer
//! --answer-->  SDP text
//! ```
//!
//! The first active audio m-line and the first active video m-line are accepted; others are refused
//! (port 0). The result of each is a [`PlainMedia`].
//!
//! [`Description`]: crate::Description

mod agreement;
mod browser_side;
mod crypto;
mod ends;
mod error;
mod layout;
mod matching;
mod media;
mod numbers;
mod parser;
mod pending;
mod remote;
mod session;
mod takeover;
mod transcoding;
mod writer;

pub use crypto::{CryptoRefusal, SdesKey, SrtpPolicy, Suite};
pub use ends::{Accepted, LocalEnd, LocalPorts, Ports, SrtpUse};
pub use error::PlainError;
pub use media::{PlainCodec, PlainMedia, Transcoding};
pub use remote::{FarMedia, FarSession};
pub use session::PlainSession;
