//! The refusals of a room.

use std::sync::Arc;

use portunus_sdp::Kind;

use crate::PersonId;

/// The reason why a room refuses a request. A door maps it to its own codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The client has left, or was kicked.
    #[error("No longer in the room")]
    NotInRoom,
    /// There is no such publisher or m-line.
    #[error("No such feed ({0})")]
    NoSuchFeed(String),
    /// There is no participant with this id.
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
    /// Another participant has this id.
    #[error("The id {0} is taken")]
    IdExists(String),
    /// The room has its limit of publishers.
    #[error("The maximum of {0} publishers is reached")]
    PublishersFull(u64),
    /// The participant does not publish.
    #[error("Not published")]
    NotPublished,
    /// The room does not have the codec that a publisher forces for this kind of media.
    #[error("not a codec of this room")]
    ForeignCodec(Kind),
    /// The room requires end-to-end encryption.
    #[error("this room needs end-to-end encryption")]
    E2eeNeeded,
    /// The room requires the private id of a participant for a subscription.
    #[error("this room needs a private_id")]
    OwnerNeeded,
    /// The participant to whom the subscription belongs was kicked.
    #[error("kicked")]
    OwnerKicked,
    /// The recording cannot be made.
    #[error("Cannot record: {0}")]
    Recording(String),
    /// An offer instead of an answer, or an answer instead of an offer.
    #[error("Unexpected type of this side's description")]
    WrongSdpType,
    /// The subscription would have more m-lines than permitted.
    #[error("Too many streams in one subscription")]
    TooManyLines,
    /// A subscription cannot mix feeds with and without end-to-end encryption.
    #[error("Feeds with and without end-to-end encryption cannot be mixed")]
    MixedFeeds,
    /// The viewer did not declare that it can decrypt the media.
    #[error(
        "This is encrypted end to end, and whoever watches it has to say that it can decrypt that (e2ee)"
    )]
    Encrypted,
    /// The client has made the offer, so the room cannot make one.
    #[error("The m-lines are those of the client's offer")]
    LinesOfClient,
    /// The subscription would be empty.
    #[error("There is nothing to offer")]
    NothingToOffer,
    /// The subscription is empty.
    #[error("There is nothing to offer: subscribe first")]
    SubscribeFirst,
    /// The viewer's offer accepts none of the streams.
    #[error("There is nothing to receive")]
    NothingToReceive,
    /// The subscription has fewer seats than the requested number of speakers.
    #[error("there are not so many seats")]
    TooFewSeats,
    /// The stream has its limit of forwarders.
    #[error("a stream has 64 forwarders at most")]
    TooManyForwarders,
    /// The publisher has its limit of publications on other servers.
    #[error("a publisher is on 64 other servers at most")]
    TooManyRemotes,
    /// The publisher is of this server.
    #[error("not a remote publisher")]
    NotRemote,
    /// The publisher is of another server, or a placeholder.
    #[error("not a publisher of this server")]
    NotOurs,
    /// A socket cannot be opened.
    #[error("{0}")]
    Socket(String),
    /// Too many clients of other nodes are joining at the same time.
    #[error("Too many clients are joining: try again")]
    TooManyJoins,
    /// The former PeerConnection is still being closed. A later attempt can succeed.
    #[error("The former PeerConnection is being closed")]
    Closing,
    /// The offer and the answer do not fit.
    #[error("{0}")]
    Negotiation(String),
}
