//! Seats: m-lines of a subscription that are not bound to a publisher. Whoever takes one gives way to others without a
//! negotiation.

use portunus_rtp::{ExtensionKind, Mid, Pt};
use portunus_sdp::{CodecName, Kind};

use super::line::{fmtp, offered_extensions};
use super::payloads::Payloads;
use crate::RoomSettings;
use crate::publication::{Stream, placeholder};

/// What makes an m-line a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat {
    /// Its place: the m-lines of one slot receive the same publisher.
    pub(super) slot: usize,
    /// Which of the publisher's streams of the m-line's kind.
    nth: usize,
    /// What it may carry; after the client's answer, what it does.
    pub(super) formats: Vec<SeatFormat>,
}

/// A codec that a seat may carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeatFormat {
    pub(super) codec: CodecName,
    pub(super) pt: Option<Pt>,
    pub(super) fmtp: Option<String>,
}

impl Seat {
    /// A seat that the client's offer has, for these codecs.
    pub(super) fn offered(
        slot: usize,
        nth: usize,
        codecs: impl Iterator<Item = CodecName>,
    ) -> Self {
        let format = |codec| SeatFormat {
            codec,
            pt: None,
            fmtp: None,
        };
        Seat {
            slot,
            nth,
            formats: codecs.map(format).collect(),
        }
    }

    /// A seat to be offered, for all codecs of the room, and the header extensions that go with it.
    pub(super) fn new(
        kind: Kind,
        (slot, nth): (usize, usize),
        options: &RoomSettings,
        payloads: &mut Payloads,
    ) -> (Self, Vec<(ExtensionKind, u8)>) {
        let codecs = options.codecs(kind);
        let mut extensions = Vec::new();
        let mut formats = Vec::with_capacity(codecs.len());
        for codec in codecs {
            let Some(any) = Mid::new("0") else { continue };
            let stream = placeholder(options, *codec, None, any, 0);
            let fmtp = fmtp(&stream);
            for extension in offered_extensions(&stream) {
                if !extensions.contains(&extension) {
                    extensions.push(extension);
                }
            }
            formats.push(SeatFormat {
                codec: *codec,
                pt: Some(payloads.number(*codec, None, fmtp.as_deref())),
                fmtp,
            });
        }
        let seat = Seat { slot, nth, formats };
        (seat, extensions)
    }

    /// Keeps the codecs that the client has taken.
    pub(super) fn keep(&mut self, taken: &[CodecName]) {
        self.formats.retain(|format| taken.contains(&format.codec));
    }

    /// The stream of a publisher that belongs on it.
    pub(super) fn stream_of<'a>(&self, kind: Kind, streams: &'a [Stream]) -> Option<&'a Stream> {
        let carries = |stream: &&Stream| {
            let codec = stream.codec;
            let known = |format: &SeatFormat| Some(format.codec) == codec;
            stream.kind == kind && !stream.disabled && self.formats.iter().any(known)
        };
        streams.iter().filter(carries).nth(self.nth)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stream(index: usize, codec: CodecName) -> Stream {
        let mid = Mid::new(&index.to_string()).unwrap();
        placeholder(&RoomSettings::default(), codec, None, mid, index)
    }

    #[test]
    fn a_seat_shows_the_stream_that_its_client_can_decode() {
        let mut streams = [
            stream(0, CodecName::Opus),
            stream(1, CodecName::H264),
            stream(2, CodecName::Vp8),
            stream(3, CodecName::Vp8),
        ];
        let both = [CodecName::Vp8, CodecName::H264];
        let shown = |nth, codecs: &[CodecName], streams: &[Stream]| {
            let seat = Seat::offered(0, nth, codecs.iter().copied());
            seat.stream_of(Kind::Video, streams)
                .map(|stream| stream.index)
        };
        assert_eq!(shown(0, &both, &streams), Some(1));
        assert_eq!(shown(1, &both, &streams), Some(2));
        assert_eq!(shown(0, &[CodecName::Vp8], &streams), Some(2));
        assert_eq!(shown(0, &[CodecName::Av1], &streams), None);
        streams[1].disabled = true;
        assert_eq!(shown(0, &both, &streams), Some(2));
        let mut seat = Seat::offered(0, 1, both.into_iter());
        seat.keep(&[CodecName::Vp8]);
        let shown = seat.stream_of(Kind::Video, &streams);
        assert_eq!(shown.map(|stream| stream.index), Some(3));
    }
}
