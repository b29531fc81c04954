//! The payload types of a mountpoint's streams.
//!
//! All m-lines of an offer share a transport. There a number means one codec with one set of
//! parameters (RFC 8843 section 10.1.2).

use super::{MediaSpec, SpecProblem, StreamCodec};

/// Returns whether packets with this number differ from RTCP on the same transport (RFC 5761
/// section 4).
pub(crate) const fn is_payload_type(pt: u8) -> bool {
    matches!(pt, 0..=63 | 96..=127)
}

/// The meaning of a payload type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadFormat {
    codec: StreamCodec,
    fmtp: Option<String>,
}

impl PayloadFormat {
    pub(crate) fn new(codec: StreamCodec, fmtp: Option<&str>) -> Self {
        PayloadFormat {
            codec,
            fmtp: fmtp.map(str::to_owned),
        }
    }
}

/// The payload types that are taken.
#[derive(Debug, Default)]
pub(crate) struct PayloadTypes {
    taken: Vec<(u8, PayloadFormat)>,
    /// The payload types of streams whose codec is unknown.
    reserved: Vec<u8>,
}

impl PayloadTypes {
    /// Notes that a stream has `pt`. Redundant audio takes the payload type of its Opus too.
    pub(crate) fn take(&mut self, pt: u8, format: PayloadFormat) {
        self.taken.extend(made_of(&format));
        self.taken.push((pt, format));
    }

    /// Reserves `pt` for a stream of unknown codec.
    pub(crate) fn reserve(&mut self, pt: u8) {
        self.reserved.push(pt);
    }

    /// Returns whether a stream of this format can have `pt`.
    fn has_room(&self, pt: u8, format: &PayloadFormat) -> bool {
        let of_pt = |(taken, _): &&(u8, PayloadFormat)| *taken == pt;
        let is_own = |(_, other): &(u8, PayloadFormat)| other == format;
        self.taken.iter().filter(of_pt).all(is_own)
            && made_of(format).is_none_or(|(inner, _)| inner != pt)
    }

    /// Returns a payload type for a format: `asked` if it is free, then `usual`, then any. `None`
    /// if none is free.
    pub(crate) fn find(&self, format: &PayloadFormat, asked: Option<u8>, usual: u8) -> Option<u8> {
        // The stream itself may have reserved the requested one.
        let asked = asked.filter(|pt| self.has_room(*pt, format));
        let others = [usual, format.codec.default_pt()].into_iter();
        let mut others = others.chain(96..=127).chain((35..=63).rev());
        asked.or_else(|| {
            others.find(|pt| {
                is_payload_type(*pt) && !self.reserved.contains(pt) && self.has_room(*pt, format)
            })
        })
    }
}

/// Returns the format in redundant audio, and its payload type, which the packets contain.
fn made_of(format: &PayloadFormat) -> Option<(u8, PayloadFormat)> {
    let pt = format.codec.made_of(format.fmtp.as_deref())?;
    Some((pt, PayloadFormat::new(StreamCodec::OPUS, None)))
}

/// Assigns a payload type to each stream with a known codec: the requested one, the codec's usual
/// one, or a free one.
pub(crate) fn assign(media: &mut [MediaSpec]) -> Result<(), SpecProblem> {
    let mut types = PayloadTypes::default();
    let format = |stream: &MediaSpec| {
        let codec = stream.codec?;
        Some(PayloadFormat::new(codec, stream.fmtp.as_deref()))
    };
    // The payload types inside of packets cannot change.
    let inner = media.iter().filter_map(format);
    types.taken = inner.filter_map(|format| made_of(&format)).collect();
    for stream in media.iter_mut() {
        match (stream.pt, format(stream)) {
            (Some(pt), Some(format)) if types.has_room(pt, &format) => types.take(pt, format),
            (Some(pt), Some(_)) => {
                let mid = stream.mid.as_str();
                tracing::warn!(
                    mid,
                    pt,
                    "the payload type stands for another codec, or other \
                    parameters: another one is offered"
                );
                stream.pt = None;
            }
            (Some(pt), None) => types.reserve(pt),
            (None, _) => {}
        }
    }
    for (index, stream) in media.iter_mut().enumerate() {
        let Some(format) = format(stream).filter(|_| stream.pt.is_none()) else {
            continue;
        };
        let pt = types.find(&format, None, format.codec.default_pt());
        let pt = pt.ok_or_else(|| {
            let reason = "there are more formats than payload types";
            SpecProblem::cannot_create("pt", reason).in_media(index)
        })?;
        types.take(pt, format);
        stream.pt = Some(pt);
    }
    Ok(())
}
