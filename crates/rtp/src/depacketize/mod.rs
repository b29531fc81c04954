//! RTP payloads to frames: the reverse of [`crate::packetize`], with the same forms.
//!
//! A [`Depacketizer`] takes the packets of one stream in order and returns each complete frame. An
//! incomplete frame is only reported as broken. Memory is bounded by [`MAX_FRAME`].

mod av1;
mod h264;
mod h265;
mod nal;
mod vp8;
mod vp9;

use std::fmt::Debug;

use crate::SeqNo;

/// The longest frame, in bytes. Longer ones are broken.
pub const MAX_FRAME: usize = 8 << 20;

/// The form of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// RFC 7741. A frame is what the decoder takes at once.
    Vp8,
    /// RFC 9628. A frame is the received part of a picture: the frames of several spatial layers
    /// have a superframe index.
    Vp9,
    /// The Alliance for Open Media's format. A frame is a temporal unit: OBUs with their sizes,
    /// without delimiters.
    Av1,
    /// RFC 6184. A frame is an access unit: NAL units with lengths of four bytes, without
    /// delimiters and filler data.
    H264,
    /// RFC 7798. A frame has the same form as with H.264.
    H265,
    /// The payload is the frame: Opus (RFC 7587), G.711 (RFC 3551).
    Whole,
}

/// The parts of a packet that matter for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The sequence number. Packets that do not follow the previous one are skipped.
    pub seq: SeqNo,
    /// The RTP timestamp.
    pub timestamp: u32,
    /// The marker bit. With video, it ends the frame.
    pub marker: bool,
    /// The payload without padding. An empty one carries nothing, and is no loss.
    pub bytes: &'a [u8],
}

/// A complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The RTP timestamp of its packets.
    pub timestamp: u32,
    /// Whether a decoder can start here, given parameter sets that may come separately. True for
    /// each frame of [`PayloadKind::Whole`].
    pub keyframe: bool,
    /// Whether no other frame refers to it, as far as it shows. It can be dropped without harm.
    pub droppable: bool,
    /// Its first packet.
    pub first: SeqNo,
    /// Its last packet.
    pub last: SeqNo,
    /// The bytes, in the form of [`crate::packetize::PayloadFormat`].
    pub data: &'a [u8],
}

/// A result. Each sent packet belongs to at most one, whether it arrived or not. Packets with an
/// empty payload may belong to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// A complete frame.
    Frame(Frame<'a>),
    /// A frame that lacks packets, is malformed or longer than [`MAX_FRAME`], or the place of
    /// missing packets.
    Broken {
        /// The RTP timestamp. For a gap alone, that of the next packet.
        timestamp: u32,
        /// The first packet, arrived or missing.
        first: SeqNo,
        /// The last packet.
        last: SeqNo,
        /// Whether it is one frame to which no other refers.
        droppable: bool,
    },
}

/// Assembles the frames of one stream.
#[derive(Debug)]
pub struct Depacketizer {
    form: Box<dyn Form>,
    /// The next sequence number, after the first packet.
    next: Option<SeqNo>,
    open: Option<Open>,
    /// The bytes of the open frame.
    data: Vec<u8>,
}

/// A frame whose last packet has not arrived.
#[derive(Debug, Clone, Copy)]
struct Open {
    timestamp: u32,
    first: SeqNo,
    last: SeqNo,
    broken: bool,
}

/// The properties of a complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    keyframe: bool,
    droppable: bool,
}

/// Assembles the frames of a codec. It keeps the state of one frame.
trait Form: Debug + Send {
    /// Returns whether a frame starts with this payload. `after_gap` says that packets before it
    /// are missing.
    fn begins(&mut self, payload: &[u8], after_gap: bool) -> bool;

    /// Returns whether the payload belongs to another frame than the previous one, although the
    /// timestamp is the same.
    fn begins_another(&self, _payload: &[u8]) -> bool {
        false
    }

    /// Appends the payload's content. Returns `None` if it is malformed or does not continue the
    /// previous one.
    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()>;

    /// Returns whether there is a picture so far. If not, the next payload belongs to it in any
    /// case.
    fn may_end(&self) -> bool {
        true
    }

    /// Returns whether the frame ends without a marker.
    fn ends(&self) -> bool {
        false
    }

    /// Completes the frame. Returns `None` if its end is missing.
    fn finish(&mut self, data: &mut Vec<u8>) -> Option<Facts>;

    /// Returns whether no frame refers to this one, as far as it has arrived.
    fn droppable(&self) -> bool;

    /// Starts a new frame.
    fn clear(&mut self);
}

impl Depacketizer {
    /// Makes one without any state.
    pub fn new(kind: PayloadKind) -> Self {
        let form: Box<dyn Form> = match kind {
            PayloadKind::Vp8 => Box::<vp8::Vp8Form>::default(),
            PayloadKind::Vp9 => Box::<vp9::Vp9Form>::default(),
            PayloadKind::Av1 => Box::<av1::Av1Form>::default(),
            PayloadKind::H264 => Box::<h264::H264Form>::default(),
            PayloadKind::H265 => Box::<h265::H265Form>::default(),
            PayloadKind::Whole => Box::new(Whole),
        };
        Self {
            form,
            next: None,
            open: None,
            data: Vec::new(),
        }
    }

    /// Takes the next packet and passes on the frames that it completes.
    pub fn push(&mut self, payload: &Payload<'_>, mut emit: impl FnMut(Outcome<'_>)) {
        let expected = self.next.unwrap_or(payload.seq);
        if payload.seq < expected {
            return;
        }
        let is_first = self.next.is_none();
        self.next = Some(SeqNo(payload.seq.0.saturating_add(1)));
        let mut lost = (payload.seq > expected).then_some(expected);
        let after_gap = is_first || lost.is_some();
        if self.open.is_some() && !self.goes_on(payload, lost.is_some()) {
            if let (Some(_), Some(open)) = (lost.take(), &mut self.open) {
                // Its end is missing, and perhaps also the packets after it.
                open.last = before(payload.seq);
                self.close_broken(false, &mut emit);
            } else {
                self.close(&mut emit);
            }
        }
        match &mut self.open {
            Some(open) => {
                open.broken |= lost.is_some();
                open.timestamp = payload.timestamp;
                open.last = payload.seq;
            }
            None => {
                let begins = payload.bytes.is_empty() || self.form.begins(payload.bytes, after_gap);
                let mut first = payload.seq;
                match lost {
                    Some(lost) if begins => emit(Outcome::Broken {
                        timestamp: payload.timestamp,
                        first: lost,
                        last: before(payload.seq),
                        droppable: false,
                    }),
                    Some(lost) => first = lost,
                    None => {}
                }
                if payload.bytes.is_empty() {
                    return;
                }
                self.open = Some(Open {
                    timestamp: payload.timestamp,
                    first,
                    last: payload.seq,
                    broken: !begins,
                });
            }
        }
        self.append(payload.bytes);
        let ends = payload.marker && (self.form.may_end() || self.open_is_broken());
        if ends || self.form.ends() {
            self.close(&mut emit);
        }
    }

    /// Ends the stream: the open frame will not be completed.
    pub fn end(&mut self, emit: impl FnMut(Outcome<'_>)) {
        self.close_broken(self.form.droppable(), emit);
        self.forget();
    }

    /// Resets the state for another stream.
    pub fn forget(&mut self) {
        self.next = None;
        self.open = None;
        self.data.clear();
        self.form.clear();
    }

    /// Returns whether the payload belongs to the open frame.
    fn goes_on(&self, payload: &Payload<'_>, after_gap: bool) -> bool {
        let Some(open) = &self.open else {
            return false;
        };
        if payload.bytes.is_empty() {
            return true;
        }
        if open.timestamp != payload.timestamp {
            return !after_gap && !open.broken && !self.form.may_end();
        }
        after_gap || open.broken || !self.form.begins_another(payload.bytes)
    }

    fn open_is_broken(&self) -> bool {
        self.open.is_some_and(|open| open.broken)
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(open) = self.open.as_mut().filter(|open| !open.broken) else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        let done = self.form.append(bytes, &mut self.data);
        open.broken = done.is_none() || self.data.len() > MAX_FRAME;
    }

    /// Passes on the open frame.
    fn close(&mut self, mut emit: impl FnMut(Outcome<'_>)) {
        let Some(open) = self.open.filter(|open| !open.broken) else {
            let droppable = self.form.droppable();
            return self.close_broken(droppable, emit);
        };
        let Some(facts) = self.form.finish(&mut self.data) else {
            return self.close_broken(false, emit);
        };
        if !self.data.is_empty() {
            emit(Outcome::Frame(Frame {
                timestamp: open.timestamp,
                keyframe: facts.keyframe,
                droppable: facts.droppable,
                first: open.first,
                last: open.last,
                data: &self.data,
            }));
        }
        self.begin();
    }

    /// Reports the open frame as broken, if there is one.
    fn close_broken(&mut self, droppable: bool, mut emit: impl FnMut(Outcome<'_>)) {
        if let Some(open) = self.open {
            emit(Outcome::Broken {
                timestamp: open.timestamp,
                first: open.first,
                last: open.last,
                droppable,
            });
        }
        self.begin();
    }

    /// Starts a new frame.
    fn begin(&mut self) {
        self.open = None;
        self.data.clear();
        self.form.clear();
    }
}

fn before(seq: SeqNo) -> SeqNo {
    SeqNo(seq.0.saturating_sub(1))
}

/// Payloads that are frames.
#[derive(Debug)]
struct Whole;

impl Form for Whole {
    fn begins(&mut self, _payload: &[u8], _after_gap: bool) -> bool {
        true
    }

    fn ends(&self) -> bool {
        true
    }

    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()> {
        data.extend_from_slice(payload);
        Some(())
    }

    fn finish(&mut self, _data: &mut Vec<u8>) -> Option<Facts> {
        Some(Facts {
            keyframe: true,
            droppable: true,
        })
    }

    fn droppable(&self) -> bool {
        true
    }

    fn clear(&mut self) {}
}

#[cfg(test)]
mod tests;
