//! Seats: m-lines of a subscription that are not bound to a publisher. Another publisher takes a
//! seat without a negotiation.

use portunus_rtp::{ExtensionKind, Mid, Pt};
use portunus_sdp::{CodecName, Kind, MediaOffer};

use super::format::{fmtp, offered_extensions};
use super::payloads::Payloads;
use crate::RoomSettings;
use crate::publication::{Stream, placeholder};

/// An m-line that is not bound to a publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat {
    place: SeatPlace,
    /// The codecs that the room offers; after the client's answer, those that it accepted.
    formats: Vec<SeatFormat>,
}

/// The stream of a followed publisher that a seat receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeatPlace {
    /// The slot of the publisher. All m-lines of a slot receive the same publisher.
    pub(super) slot: usize,
    /// The index among the publisher's streams of the m-line's kind.
    pub(super) nth: usize,
}

/// A codec that a seat may carry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeatFormat {
    codec: CodecName,
    pt: Option<Pt>,
    fmtp: Option<String>,
}

impl Seat {
    /// Returns a seat of the client's offer, for these codecs.
    pub(super) fn offered(place: SeatPlace, codecs: impl Iterator<Item = CodecName>) -> Self {
        let format = |codec| SeatFormat {
            codec,
            pt: None,
            fmtp: None,
        };
        Seat {
            place,
            formats: codecs.map(format).collect(),
        }
    }

    /// Returns a seat for all codecs of the room, and the header extensions to offer with it.
    pub(super) fn new(
        kind: Kind,
        place: SeatPlace,
        options: &RoomSettings,
        payloads: &mut Payloads,
    ) -> (Self, Vec<(ExtensionKind, u8)>) {
        let codecs = options.codecs(kind);
        let mut extensions = Vec::new();
        let mut formats = Vec::with_capacity(codecs.len());
        for codec in codecs {
            let Some(any) = Mid::new("0") else { continue };
            let stream = placeholder(options, *codec, None, any, 0);
            let fmtp = fmtp(&stream.format);
            for extension in offered_extensions(&stream.format) {
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
        (Seat { place, formats }, extensions)
    }

    pub(super) const fn slot(&self) -> usize {
        self.place.slot
    }

    /// Adds its codecs to its m-line in an offer.
    pub(super) fn offer(&self, media: &mut MediaOffer) {
        for format in &self.formats {
            media.add_codec(format.codec, format.pt, format.fmtp.clone());
        }
    }

    /// Keeps the codecs that the client has accepted.
    pub(super) fn keep(&mut self, taken: &[CodecName]) {
        self.formats.retain(|format| taken.contains(&format.codec));
    }

    /// Returns the stream of a publisher that belongs on the seat.
    pub(super) fn stream_of<'a>(&self, kind: Kind, streams: &'a [Stream]) -> Option<&'a Stream> {
        let carries = |stream: &&Stream| {
            let codec = stream.format.codec;
            let known = |format: &SeatFormat| Some(format.codec) == codec;
            stream.kind == kind && !stream.disabled && self.formats.iter().any(known)
        };
        streams.iter().filter(carries).nth(self.place.nth)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
            let seat = Seat::offered(SeatPlace { slot: 0, nth }, codecs.iter().copied());
            seat.stream_of(Kind::Video, streams)
                .map(|stream| stream.index)
        };
        assert_eq!(shown(0, &both, &streams), Some(1));
        assert_eq!(shown(1, &both, &streams), Some(2));
        assert_eq!(shown(0, &[CodecName::Vp8], &streams), Some(2));
        assert_eq!(shown(0, &[CodecName::Av1], &streams), None);
        streams[1].disabled = true;
        assert_eq!(shown(0, &both, &streams), Some(2));
        let mut seat = Seat::offered(SeatPlace { slot: 0, nth: 1 }, both.into_iter());
        seat.keep(&[CodecName::Vp8]);
        let shown = seat.stream_of(Kind::Video, &streams);
        assert_eq!(shown.map(|stream| stream.index), Some(3));
    }
}
