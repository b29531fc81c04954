//! RTP payloads into frames: the other way round from [`crate::packetize`], and in the same forms.
//!
//! A [`Depacketizer`] takes the packets of one stream in order and hands out each frame when it is whole. Of a frame that
//! lacks something nothing is handed out but that it is broken. Memory is bounded by [`MAX_FRAME`].

mod av1;
mod h264;
mod h265;
mod nal;
mod vp8;
mod vp9;

use std::fmt::Debug;

use crate::SeqNo;

/// The longest frame that is put together, in bytes. A longer one is broken.
pub const MAX_FRAME: usize = 8 << 20;

/// How payloads become frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// RFC 7741. A frame is what the decoder takes at once.
    Vp8,
    /// RFC 9628. A frame is all that came of a picture: the frames of several spatial layers with a superframe index.
    Vp9,
    /// The Alliance for Open Media's format. A frame is a temporal unit: OBUs with their sizes, without delimiter.
    Av1,
    /// RFC 6184. A frame is an access unit: NAL units with lengths of four bytes, without delimiters and filler.
    H264,
    /// RFC 7798. A frame is as of H.264.
    H265,
    /// A payload is a frame as it is: Opus (RFC 7587), G.711 (RFC 3551).
    Whole,
}

/// A packet, as far as frames are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Its sequence number, higher than that of the packet before: what is not is passed over.
    pub seq: SeqNo,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// The marker bit: of video, the frame ends here.
    pub marker: bool,
    /// Its payload without padding. One that is empty carries nothing, and nothing is missed for it.
    pub bytes: &'a [u8],
}

/// A whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The RTP timestamp of its packets.
    pub timestamp: u32,
    /// A decoder can begin here, given parameter sets that may be told elsewhere. Of [`PayloadKind::Whole`] each frame.
    pub keyframe: bool,
    /// Nothing refers to it, as far as it says so: it can be missing without harm to others.
    pub droppable: bool,
    /// Its first packet.
    pub first: SeqNo,
    /// Its last packet.
    pub last: SeqNo,
    /// Its bytes, in the form that [`crate::packetize::PayloadFormat`] takes.
    pub data: &'a [u8],
}

/// What comes out: of each packet that was sent, whether it arrived or not, at most one outcome tells. Those with an
/// empty payload may be in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// A frame that lacks packets, is malformed or longer than [`MAX_FRAME`], or the place of packets that never came.
    Broken {
        /// The RTP timestamp: of the packet that comes behind where a gap is all that is known.
        timestamp: u32,
        /// The first packet that is there or missing.
        first: SeqNo,
        /// The last one.
        last: SeqNo,
        /// It is one frame and nothing refers to it: others take no harm.
        droppable: bool,
    },
}

/// Puts the frames of one stream together.
#[derive(Debug)]
pub struct Depacketizer {
    form: Box<dyn Form>,
    /// The sequence number that comes next, once there was one.
    next: Option<SeqNo>,
    open: Option<Open>,
    /// The bytes of the open frame.
    data: Vec<u8>,
}

/// A frame whose last packet has not come.
#[derive(Debug, Clone, Copy)]
struct Open {
    timestamp: u32,
    first: SeqNo,
    last: SeqNo,
    broken: bool,
}

/// What is known of a whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    keyframe: bool,
    droppable: bool,
}

/// How a codec's frames are put together. It keeps what runs over the packets of one frame.
trait Form: Debug + Send {
    /// Whether a frame begins with this payload. `after_gap`: what came before it is not there.
    fn begins(&mut self, payload: &[u8], after_gap: bool) -> bool;

    /// Whether the payload is of another frame than those before, though it has the same timestamp.
    fn begins_another(&self, _payload: &[u8]) -> bool {
        false
    }

    /// Appends what the payload carries. Nothing: it is malformed, or does not go on where the one before ended.
    fn append(&mut self, payload: &[u8], data: &mut Vec<u8>) -> Option<()>;

    /// Whether there is a picture so far: if not, what comes next belongs to it whatever it says.
    fn may_end(&self) -> bool {
        true
    }

    /// Whether the frame ends without a marker.
    fn ends(&self) -> bool {
        false
    }

    /// Completes the frame. Nothing: its end is missing.
    fn finish(&mut self, data: &mut Vec<u8>) -> Option<Facts>;

    /// Whether nothing refers to the frame, as far as it has come.
    fn droppable(&self) -> bool;

    /// Begins a new frame.
    fn clear(&mut self);
}

impl Depacketizer {
    /// One that has seen nothing.
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

    /// Takes the next packet and hands out what it completes.
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
                // Its end is missing, and what followed it may be, too.
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

    /// The stream has ended: what is open will not be completed.
    pub fn end(&mut self, emit: impl FnMut(Outcome<'_>)) {
        self.close_broken(self.form.droppable(), emit);
        self.forget();
    }

    /// Begins anew: what comes next is of another stream.
    pub fn forget(&mut self) {
        self.next = None;
        self.open = None;
        self.data.clear();
        self.form.clear();
    }

    /// Whether the payload is of the frame that is open.
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

    /// Hands out the open frame.
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

    /// Says that the open frame, if there is one, is broken.
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

    /// Begins a new frame.
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
