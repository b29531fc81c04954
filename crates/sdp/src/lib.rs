//! JSEP offer/answer on top of an SDP library.
//!
//! The work is split in two. Plugins own the media lines: they read and make a [`Description`] with
//! the m-lines, their directions, codecs and header extensions, but without transport. The core
//! owns the transport lines: its [`Session`] holds the JSEP state of one PeerConnection, turns a
//! plugin's `Description` into SDP text, and returns the result of an exchange as a [`Negotiated`].
//!
//! ```text
//! SDP text --RemoteDescription::parse--> RemoteDescription { description: Description, … }
//! Description (from a plugin) --Session::local_answer / local_offer--> SDP text, Negotiated
//! ```
#![forbid(unsafe_code)]

mod agreement;
mod answer;
mod bundle;
mod codecs;
mod description;
mod error;
mod fragment;
mod jsep;
mod local;
mod media_lines;
pub mod negotiated;
mod offer;
mod offered_parts;
mod opus_flags;
pub mod plain;
mod refused_lines;
mod remote;
mod rtx;
mod session;
mod simulcast;
mod slot;
mod wire;

pub use answer::{AnswerOptions, MediaAnswer};
pub use codecs::{CodecName, CodecSpec};
pub use description::{Attribute, Bandwidth, Description, Direction, Extmap, Media, Msid, Origin};
pub use error::SdpError;
pub use fragment::{FragmentCandidate, FragmentError, IceFragment};
pub use jsep::{Jsep, LocalCandidates, LocalJsep, Svc};
pub use local::LocalTransport;
pub use negotiated::{
    Codec, DtlsRole, Feedback, Fingerprint, FingerprintHash, IceCredentials, Kind, Negotiated,
    NegotiatedMedia, Payload, RemoteSsrc, RemoteTransport,
};
pub use offer::{MediaOffer, OfferOptions};
pub use opus_flags::OfferedFlags;
pub use refused_lines::with_transport_everywhere;
pub use remote::{MediaSlot, RemoteDescription, RemoteMedia, SdpType, Setup, TransportFacts};
pub use session::{Session, Signaling};
pub use simulcast::{OfferedRid, RidOrder, Simulcast, SimulcastForm};
pub use wire::MAX_MEDIA;
