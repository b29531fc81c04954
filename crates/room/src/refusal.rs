//! Why a request is refused.

use std::sync::Arc;

use portunus_sdp::Kind;

use crate::PersonId;

/// Why a room refuses a request. A door maps it to its own codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The client has left, or was thrown out.
    #[error("No longer in the room")]
    NotInRoom,
    /// Nobody publishes this.
    #[error("No such feed ({0})")]
    NoSuchFeed(String),
    /// Nobody has this id.
    #[error("No such user {id} in room {room}")]
    NoSuchUser {
        /// The id.
        id: PersonId,
        /// The room.
        room: Arc<str>,
    },
    /// A publisher has no such m-line.
    #[error("No such stream {0}")]
    NoSuchStream(String),
    /// Somebody has this id already.
    #[error("The id {0} is taken")]
    IdExists(String),
    /// There may be only so many publishers.
    #[error("The maximum of {0} publishers is reached")]
    PublishersFull(u64),
    /// There is nothing that could end.
    #[error("Not published")]
    NotPublished,
    /// The room does not have the codec that a publisher insists on, for this kind of media.
    #[error("not a codec of this room")]
    ForeignCodec(Kind),
    /// The room needs end-to-end encryption.
    #[error("this room needs end-to-end encryption")]
    E2eeNeeded,
    /// The room needs the private id of a participant with each subscription.
    #[error("this room needs a private_id")]
    OwnerNeeded,
    /// The participant to whom the subscription belongs was thrown out.
    #[error("kicked")]
    OwnerKicked,
    /// What is to be recorded cannot be.
    #[error("Cannot record: {0}")]
    Recording(String),
    /// An offer where an answer is due, or the other way round.
    #[error("Unexpected type of this side's description")]
    WrongSdpType,
    /// The subscription has more m-lines than there can be.
    #[error("Too many streams in one subscription")]
    TooManyLines,
    /// A subscription has one kind of feeds only.
    #[error("Feeds with and without end-to-end encryption cannot be mixed")]
    MixedFeeds,
    /// The viewer cannot decrypt it.
    #[error(
        "This is encrypted end to end, and whoever watches it has to say that it can decrypt that (e2ee)"
    )]
    Encrypted,
    /// The client has made the offer, and takes none.
    #[error("The m-lines are those of the client's offer")]
    LinesOfClient,
    /// The subscription would be empty.
    #[error("There is nothing to offer")]
    NothingToOffer,
    /// The subscription is empty.
    #[error("There is nothing to offer: subscribe first")]
    SubscribeFirst,
    /// The viewer's offer takes nothing that there is.
    #[error("There is nothing to receive")]
    NothingToReceive,
    /// The subscription has fewer seats than speakers that it is to follow.
    #[error("there are not so many seats")]
    TooFewSeats,
    /// The forwarders of a stream are bounded.
    #[error("a stream has 64 forwarders at most")]
    TooManyForwarders,
    /// The other servers that somebody is published on are bounded.
    #[error("a publisher is on 64 other servers at most")]
    TooManyRemotes,
    /// It is a publisher of this server.
    #[error("not a remote publisher")]
    NotRemote,
    /// It is a publisher of another server, or a placeholder.
    #[error("not a publisher of this server")]
    NotOurs,
    /// A socket cannot be opened.
    #[error("{0}")]
    Socket(String),
    /// The former PeerConnection is just being closed; a moment later there can be another.
    #[error("The former PeerConnection is being closed")]
    Closing,
    /// Offer and answer do not go together.
    #[error("{0}")]
    Negotiation(String),
}
