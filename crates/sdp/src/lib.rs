//! JSEP offer/answer on top of an SDP library.
//!
//! The work is split in two. Plugins own the media lines: they read and make a [`Description`], which says
//! which m-lines there are, in which direction, with which codecs and header extensions, and nothing of
//! transport. The core owns the transport lines: its [`Session`] holds the JSEP state of one PeerConnection,
//! turns a plugin's `Description` into SDP text, and says in a [`Negotiated`] what an exchange agreed on.
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
mod fit;
mod fragment;
mod jsep;
mod local;
pub mod negotiated;
mod offer;
mod parse;
pub mod plain;
mod refused;
mod remote;
mod rtx;
mod session;
mod simulcast;
mod slot;
mod wire;

pub use answer::{AnswerOptions, MediaAnswer, OfferedFlags};
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
pub use refused::with_transport_everywhere;
pub use remote::{MediaSlot, RemoteDescription, RemoteMedia, SdpType, Setup, TransportFacts};
pub use session::{Session, Signaling};
pub use simulcast::{OfferedRid, RidOrder, Simulcast, SimulcastForm};
pub use wire::MAX_MEDIA;
