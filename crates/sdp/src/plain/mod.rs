//! Descriptions for far ends without ICE and DTLS: telephones, SIP servers, media servers that take plain RTP or SRTP
//! with keys in the description (SDES, RFC 4568).
//!
//! A [`PlainSession`] stands between two negotiations. Towards the browser it takes and makes [`Description`]s, which know nothing of
//! transport; towards the far end it writes and reads SDP text, with addresses, ports and keys:
//!
//! ```text
//! browser's offer  --PlainSession::offer-->         SDP text     far end's answer --accept_answer--> browser's answer
//! far end's offer  --PlainSession::take_offer-->    browser's offer    browser's answer --answer-->  SDP text
//! ```
//!
//! The first audio and the first video m-line in use are taken; others are refused (port 0). What both sides agreed on is in a
//! [`PlainMedia`] for each of the two.
//!
//! [`Description`]: crate::Description

mod agree;
mod crypto;
mod ends;
mod error;
mod layout;
mod moving;
mod numbers;
mod read;
mod remote;
mod session;
mod to_browser;
mod transcode;
mod write;

pub use agree::{PlainCodec, PlainMedia};
pub use crypto::{CryptoRefusal, SdesKey, SrtpPolicy, Suite};
pub use ends::{Accepted, LocalEnd, LocalPorts, Ports, SrtpUse};
pub use error::PlainError;
pub use remote::{FarMedia, FarSession};
pub use session::PlainSession;
pub use transcode::Transcoding;
