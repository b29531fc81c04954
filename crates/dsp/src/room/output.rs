//! What a room gives to whoever runs it.

use crate::{AnnouncementId, Encoding, ParticipantId};

/// A mix in one encoding: a stream of packets. A room never uses the number of a mix again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MixId(pub u64);

/// Of what a mix is that anybody may subscribe to. Nobody's sound is left out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mixture {
    /// All participants who are heard, and all announcements.
    Everyone,
    /// Those of a group, and its announcements.
    Group(usize),
}

/// What happened to an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnouncementState {
    /// Its first frame is in the mix.
    Started,
    /// It was heard, and is over: its source ended, broke, or it was stopped.
    Ended,
    /// It could not be heard at all: its source broke, or has no Opus.
    Failed,
}

/// Takes what a frame of a room brings. It is called while the room ticks, and should hand over and return.
///
/// Within a tick, `opened` comes before `hears`, and `hears` before the packets that it is about.
pub trait Output {
    /// A mix begins. Its packets follow in this tick, or when it has a listener.
    fn opened(&mut self, mix: MixId, encoding: Encoding);

    /// A mix ended: nobody hears it any more.
    fn closed(&mut self, mix: MixId);

    /// From this tick's packet on the participant is sent this mix; none: it is sent nothing.
    fn hears(&mut self, participant: ParticipantId, mix: Option<MixId>);

    /// The packet of a mix for this tick. A mix has at most one in a tick; while there is nothing to hear, or where a
    /// packet was lost that others would have heard as it is, it may have none.
    ///
    /// `timestamp` is of the codec's clock (48 kHz or 8 kHz). All mixes of a room with the same clock have the same
    /// timestamp in the same tick, so that a listener may be moved from one to another. `marker` is set on the first
    /// packet after a pause (RFC 7587 section 4.1).
    fn packet(&mut self, mix: MixId, timestamp: u32, marker: bool, payload: &[u8]);

    /// A participant began to talk, or stopped.
    fn talking(&mut self, participant: ParticipantId, talking: bool);

    /// The sound of all (none) or of a group, in the room's format, as it is encoded. Only what
    /// [`Room::listen`](crate::Room::listen) asked for.
    fn sound(&mut self, group: Option<usize>, sound: &[f32]);

    /// An announcement started, ended or failed.
    fn announcement(&mut self, announcement: AnnouncementId, state: AnnouncementState);
}
