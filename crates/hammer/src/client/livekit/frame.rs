//! Frames of LiveKit's signalling as messages.

use bytes::Bytes;
use livekit_protocol::{SignalRequest, SignalResponse, signal_request, signal_response};
use prost::{DecodeError, Message, decode_length_delimiter};

/// The fields of the responses that hammer reads: join, answer, offer, trickle, track_published,
/// leave, reconnect and request_response. Rooms of thousands send many of the others.
const READ: [usize; 8] = [1, 2, 3, 4, 6, 8, 19, 22];

/// Returns the frame of a request.
pub(super) fn encode(message: signal_request::Message) -> Bytes {
    let message = Some(message);
    SignalRequest { message }.encode_to_vec().into()
}

/// Reads a frame. Returns `None` for a response that hammer does not need.
pub(super) fn decode(frame: Bytes) -> Result<Option<signal_response::Message>, DecodeError> {
    // The key of a field has the form of a length. Its lowest three bits are the wire type.
    let field = decode_length_delimiter(frame.clone()).map_or(0, |key| key >> 3);
    match READ.contains(&field) {
        true => Ok(SignalResponse::decode(frame)?.message),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use livekit_protocol::{ParticipantUpdate, Ping, RequestResponse, SessionDescription};
    use signal_response::Message as Response;

    use super::*;

    fn frame(message: Response) -> Bytes {
        let message = Some(message);
        SignalResponse { message }.encode_to_vec().into()
    }

    #[test]
    fn only_needed_responses_are_read() {
        let offer = Response::Offer(SessionDescription {
            sdp: "v=0".to_owned(),
            ..SessionDescription::default()
        });
        assert_eq!(decode(frame(offer.clone())), Ok(Some(offer)));
        let refusal = Response::RequestResponse(RequestResponse::default());
        assert_eq!(decode(frame(refusal.clone())), Ok(Some(refusal)));
        let update = Response::Update(ParticipantUpdate::default());
        assert_eq!(decode(frame(update)), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_refused_or_skipped() {
        assert_eq!(decode(Bytes::new()), Ok(None));
        assert_eq!(decode(Bytes::from_static(&[0xff; 20])), Ok(None));
        // An offer whose length is more than there is.
        assert!(decode(Bytes::from_static(&[0x1a, 9, 1])).is_err());
    }

    #[test]
    fn requests_are_read_back() {
        let ping = signal_request::Message::PingReq(Ping::default());
        let read = SignalRequest::decode(encode(ping.clone())).unwrap();
        assert_eq!(read.message, Some(ping));
    }
}
