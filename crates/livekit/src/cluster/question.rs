//! Questions of this door to itself at another node of a cluster, and the answers, in protobuf. Later
//! versions may add some, which earlier ones do not answer.

use livekit_protocol as lk;
use prost::Message;

use crate::services::{Code, ServiceError};

/// A question about a room.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FarQuestion {
    #[prost(
        oneof = "Asked",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16"
    )]
    content: Option<Asked>,
    /// How many nodes it has been sent to.
    #[prost(uint32, tag = "100")]
    hops: u32,
}

/// The content of a question.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Asked {
    /// A client wants to join.
    #[prost(message, tag = "1")]
    Enter(Entering),
    /// The participant with this identity wants to begin to publish.
    #[prost(string, tag = "2")]
    Publish(String),
    /// A request of the services.
    #[prost(message, boxed, tag = "3")]
    CreateRoom(Box<lk::CreateRoomRequest>),
    /// The description of one room.
    #[prost(string, tag = "4")]
    Room(String),
    /// As above.
    #[prost(message, tag = "5")]
    DeleteRoom(lk::DeleteRoomRequest),
    /// As above.
    #[prost(message, tag = "6")]
    ListParticipants(lk::ListParticipantsRequest),
    /// As above.
    #[prost(message, tag = "7")]
    GetParticipant(lk::RoomParticipantIdentity),
    /// As above.
    #[prost(message, tag = "8")]
    RemoveParticipant(lk::RoomParticipantIdentity),
    /// As above.
    #[prost(message, tag = "9")]
    MuteTrack(lk::MuteRoomTrackRequest),
    /// As above.
    #[prost(message, tag = "10")]
    UpdateParticipant(lk::UpdateParticipantRequest),
    /// As above.
    #[prost(message, tag = "11")]
    UpdateSubscriptions(lk::UpdateSubscriptionsRequest),
    /// As above.
    #[prost(message, tag = "12")]
    SendData(lk::SendDataRequest),
    /// As above.
    #[prost(message, tag = "13")]
    UpdateRoomMetadata(lk::UpdateRoomMetadataRequest),
    /// As above.
    #[prost(message, tag = "14")]
    MoveParticipant(lk::MoveParticipantRequest),
    /// As above.
    #[prost(message, tag = "15")]
    ForwardParticipant(lk::ForwardParticipantRequest),
    /// As above.
    #[prost(message, tag = "16")]
    PerformRpc(lk::PerformRpcRequest),
}

/// A client that wants to join.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Entering {
    #[prost(string, tag = "1")]
    pub(super) identity: String,
    /// The id of its session.
    #[prost(string, tag = "2")]
    pub(super) sid: String,
}

/// An answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FarAnswer {
    #[prost(message, optional, tag = "1")]
    fault: Option<FarFault>,
    /// The answer itself.
    #[prost(bytes = "vec", tag = "2")]
    body: Vec<u8>,
}

/// An error of a service.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FarFault {
    #[prost(string, tag = "1")]
    code: String,
    #[prost(string, tag = "2")]
    text: String,
}

impl FarQuestion {
    /// Reads a question, with the number of nodes that it has been sent to. Returns `None` if it is
    /// malformed, or of a later version.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Asked, u32)> {
        let question = FarQuestion::decode(bytes).ok()?;
        Some((question.content?, question.hops))
    }

    /// Returns a question that is sent for the first time if `hops` is 1.
    pub(super) fn new(content: Asked, hops: u32) -> Self {
        FarQuestion {
            content: Some(content),
            hops,
        }
    }
}

impl FarAnswer {
    /// Returns the answer to a request of the services.
    pub(super) fn of(answer: Result<Vec<u8>, ServiceError>) -> Self {
        match answer {
            Ok(body) => FarAnswer { fault: None, body },
            Err(error) => FarAnswer {
                fault: Some(FarFault {
                    code: error.code().name().to_owned(),
                    text: error.to_string(),
                }),
                body: Vec::new(),
            },
        }
    }

    /// Returns the answer to a request of the services.
    pub(super) fn into_result(self) -> Result<Vec<u8>, ServiceError> {
        match self.fault {
            None => Ok(self.body),
            Some(FarFault { code, text }) => {
                let code = Code::named(&code).unwrap_or(Code::Unknown);
                Err(ServiceError::new(code, text))
            }
        }
    }
}

/// Reads a question and an answer.
#[cfg(feature = "testing")]
pub(crate) fn read(bytes: &[u8]) {
    drop(FarQuestion::parse(bytes));
    drop(FarAnswer::decode(bytes).map(FarAnswer::into_result));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn questions_and_answers_are_the_same_when_they_were_written_and_read() {
        let asked = Asked::Enter(Entering {
            identity: "al".to_owned(),
            sid: "PA_1".to_owned(),
        });
        let bytes = FarQuestion::new(asked.clone(), 1).encode_to_vec();
        assert_eq!(FarQuestion::parse(&bytes), Some((asked, 1)));
        assert_eq!(FarQuestion::parse(&[0xff]), None);
        // One of a later version has no content that this one knows.
        assert_eq!(FarQuestion::parse(&[0xfa, 0x01, 0x00]), None);
        for error in [ServiceError::no_room(), ServiceError::no_remote_unmute()] {
            let bytes = FarAnswer::of(Err(error.clone())).encode_to_vec();
            let read = FarAnswer::decode(&*bytes).unwrap().into_result();
            assert_eq!(read, Err(error));
        }
        let bytes = FarAnswer::of(Ok(vec![7])).encode_to_vec();
        let read = FarAnswer::decode(&*bytes).unwrap();
        assert_eq!(read.into_result(), Ok(vec![7]));
    }
}
