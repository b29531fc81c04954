//! The output of a room.

use crate::{AnnouncementId, Encoding, ParticipantId};

/// A mix in one encoding: a stream of packets. A room never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MixId(pub u64);

/// A mix for subscriptions. It contains the audio of all its participants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mixture {
    /// All participants that are heard, and all announcements.
    Everyone,
    /// The participants and announcements of a group.
    Group(usize),
}

/// A change of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnouncementState {
    /// Its first frame is in the mix.
    Started,
    /// It was heard, and has ended: it was stopped, or its source has ended or broken.
    Ended,
    /// It was not heard at all, because its source is broken or not Opus.
    Failed,
}

/// Receives the output of a frame. The functions are called during a tick, and should return
/// quickly.
///
/// Within a tick, `opened` comes before `hears`, and `hears` before the packets that it concerns.
pub trait Output {
    /// A mix starts. Its packets follow in this tick, or when it has a listener.
    fn opened(&mut self, mix: MixId, encoding: Encoding);

    /// A mix has ended, because nobody hears it any more.
    fn closed(&mut self, mix: MixId);

    /// The participant gets this mix from this tick's packet on, or nothing if `None`.
    fn hears(&mut self, participant: ParticipantId, mix: Option<MixId>);

    /// The packet of a mix in this tick, at most one. There may be none during silence, or if a
    /// relayed packet was lost.
    ///
    /// `timestamp` is in units of the codec's clock (48 kHz or 8 kHz). All mixes of a room with the
    /// same clock have the same timestamp in a tick, so that a listener can move from one to
    /// another. `marker` is set on the first packet after a pause (RFC 7587 section 4.1).
    fn packet(&mut self, mix: MixId, timestamp: u32, marker: bool, payload: &[u8]);

    /// A participant has started or stopped talking.
    fn talking(&mut self, participant: ParticipantId, talking: bool);

    /// The audio of the room (`None`) or of a group, in the room's format, as it is encoded. It
    /// follows a call of [`Room::listen`](crate::Room::listen).
    fn sound(&mut self, group: Option<usize>, sound: &[f32]);

    /// An announcement has started, ended or failed.
    fn announcement(&mut self, announcement: AnnouncementId, state: AnnouncementState);
}
