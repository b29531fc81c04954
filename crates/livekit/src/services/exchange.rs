//! One request and its answer, without a socket.

use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::json::{self, schema};
use super::{Code, ServiceError};

/// The form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Protobuf,
}

impl Format {
    /// Returns the form that a header `Content-Type` names.
    pub(super) fn of(content_type: &str, path: &str) -> Result<Self, ServiceError> {
        let name = content_type.split(';').next().unwrap_or_default();
        match name.trim().to_ascii_lowercase().as_str() {
            "application/json" => Ok(Format::Json),
            "application/protobuf" => Ok(Format::Protobuf),
            _ => {
                let text = format!("unexpected Content-Type: {content_type:?}");
                Err(ServiceError::bad_route(text, "POST", path))
            }
        }
    }

    /// Returns the header of an answer in this form.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Protobuf => "application/protobuf",
        }
    }

    /// Reads the body of a request.
    pub(super) fn read<T>(self, body: &[u8]) -> Result<T, ServiceError>
    where
        T: Message + Default + DeserializeOwned,
    {
        let (read, text) = match self {
            Format::Json => (json::read(body), "the json request could not be decoded"),
            Format::Protobuf => (
                T::decode(body).ok(),
                "the protobuf request could not be decoded",
            ),
        };
        read.ok_or_else(|| ServiceError::new(Code::Malformed, text))
    }

    /// Writes the body of an answer.
    pub(super) fn write<T>(
        self,
        message: &T,
        schema: &schema::Message,
    ) -> Result<Vec<u8>, ServiceError>
    where
        T: Message + Serialize,
    {
        match self {
            Format::Protobuf => Ok(message.encode_to_vec()),
            Format::Json => json::write(message, schema)
                .map(String::into_bytes)
                .map_err(|error| ServiceError::new(Code::Internal, error)),
        }
    }
}

/// Reads the body of one of the methods as JSON or protobuf, for fuzzing. Returns it as protobuf.
#[cfg(feature = "testing")]
pub fn read_call(method: u8, is_json: bool, body: &[u8]) -> Option<Vec<u8>> {
    use livekit_protocol as lk;

    fn read<T>(format: Format, body: &[u8]) -> Option<Vec<u8>>
    where
        T: Message + Default + DeserializeOwned,
    {
        let message: T = format.read(body).ok()?;
        Some(message.encode_to_vec())
    }
    let format = match is_json {
        true => Format::Json,
        false => Format::Protobuf,
    };
    match method % 16 {
        0 => read::<lk::CreateRoomRequest>(format, body),
        1 => read::<lk::ListRoomsRequest>(format, body),
        2 => read::<lk::RoomParticipantIdentity>(format, body),
        3 => read::<lk::UpdateParticipantRequest>(format, body),
        4 => read::<lk::UpdateSubscriptionsRequest>(format, body),
        5 => read::<lk::SendDataRequest>(format, body),
        6 => read::<lk::PerformRpcRequest>(format, body),
        7 => read::<lk::CreateAgentDispatchRequest>(format, body),
        8 => read::<lk::RoomCompositeEgressRequest>(format, body),
        9 => read::<lk::TrackCompositeEgressRequest>(format, body),
        10 => read::<lk::UpdateStreamRequest>(format, body),
        11 => read::<lk::CreateIngressRequest>(format, body),
        12 => read::<lk::UpdateIngressRequest>(format, body),
        13 => read::<lk::CreateSipInboundTrunkRequest>(format, body),
        14 => read::<lk::CreateSipDispatchRuleRequest>(format, body),
        _ => read::<lk::CreateSipParticipantRequest>(format, body),
    }
}

#[cfg(test)]
mod tests {
    use livekit_protocol::{DeleteRoomRequest, PerformRpcResponse};

    use super::*;

    #[test]
    fn parameters_and_case_of_a_content_type_do_not_matter() {
        let of = |text: &str| Format::of(text, "/").map_err(|error| error.code());
        assert_eq!(of("application/json"), Ok(Format::Json));
        assert_eq!(of("Application/JSON ; charset=utf-8"), Ok(Format::Json));
        assert_eq!(of("application/protobuf"), Ok(Format::Protobuf));
        for other in [
            "",
            "text/plain",
            "application/json2",
            "application/x-protobuf",
        ] {
            assert_eq!(of(other), Err(Code::BadRoute));
        }
    }

    #[test]
    fn bodies_that_cannot_be_read_are_malformed() {
        let read = |format: Format, body: &[u8]| {
            let request: Result<DeleteRoomRequest, _> = format.read(body);
            request.map(|it| it.room).map_err(|error| error.to_string())
        };
        assert_eq!(read(Format::Protobuf, b"\x0a\x01r"), Ok("r".to_owned()));
        assert_eq!(read(Format::Json, br#"{"room":"r"}"#), Ok("r".to_owned()));
        let expected = "the protobuf request could not be decoded".to_owned();
        assert_eq!(read(Format::Protobuf, b"\x0a\xff"), Err(expected.clone()));
        assert_eq!(read(Format::Protobuf, b"\x0a\x01\xff"), Err(expected));
        let expected = "the json request could not be decoded".to_owned();
        assert_eq!(read(Format::Json, b"{"), Err(expected));
    }

    #[test]
    fn answers_have_the_form_of_the_request() {
        let answer = PerformRpcResponse {
            payload: "p".to_owned(),
        };
        let write = |format: Format| format.write(&answer, &schema::PERFORM_RPC);
        assert_eq!(write(Format::Json), Ok(br#"{"payload":"p"}"#.to_vec()));
        assert_eq!(write(Format::Protobuf), Ok(b"\x0a\x01p".to_vec()));
    }
}
