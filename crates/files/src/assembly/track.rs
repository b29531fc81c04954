//! A track: from its packets to frames.

use portunus_rtp::SeqNo;
use portunus_rtp::red;

use crate::bitstream::Setup;
use crate::container::Rotation;
use crate::track::{Codec, Kind};

use super::lipsync::{Lipsync, Stamp};
use super::merge::{Opening, Queue, Queued};
use super::order::InOrder;
use super::picture::Video;
use super::sound::{Piece, Put, Sound};
use super::step::TrackStats;
use super::talk::Talk;
use super::{Arrived, Coded, GapReason, Nanos, Note, SECOND, duration, nanos};

/// The interval between keyframe requests.
const ASKS: Nanos = SECOND;
/// After this time without packets, nobody waits for a track.
const AWAITED: Nanos = SECOND;
/// The shortest gap at the end that is noted.
const LAST_GAP: Nanos = SECOND / 4;
/// The shortest silence that is noted.
const SILENCE: Nanos = SECOND;

/// A track.
#[derive(Debug)]
pub(super) struct Track {
    order: InOrder<Held>,
    medium: Medium,
    split_on_size: bool,
    /// The number of the last packet.
    last: Option<SeqNo>,
    encoding: Option<u8>,
    talk: Talk,
    is_open: bool,
    has_ended: bool,
    arrived: Option<Nanos>,
    pub(super) out: Out,
}

#[derive(Debug)]
enum Medium {
    Sound(Sound),
    Video(Box<Video>),
}

impl Medium {
    /// `begins_part`: the track had other content before.
    fn new(codec: Codec, setup: Option<Setup>, split_on_size: bool, begins_part: bool) -> Self {
        match codec.kind() {
            Kind::Audio => Medium::Sound(Sound::new(codec).after(begins_part)),
            Kind::Video => {
                let video = Video::new(codec, setup, split_on_size);
                Medium::Video(Box::new(video.after(begins_part)))
            }
        }
    }

    fn codec(&self) -> Codec {
        match self {
            Medium::Sound(sound) => sound.codec(),
            Medium::Video(video) => video.codec(),
        }
    }
}

/// The output of a track.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) track: usize,
    pub(super) queue: Queue,
    pub(super) stats: TrackStats,
    /// How far the track has come, including content that is not recorded.
    pub(super) progress: Nanos,
    /// The end of the recorded content.
    pub(super) end: Option<Nanos>,
    /// The notes for the next frame.
    pub(super) notes: Vec<Note>,
    /// The reason for a gap before the next frame.
    missing: Option<GapReason>,
    /// The simulcast encoding of the next frame, if it has changed.
    layer: Option<u8>,
    wants_keyframe: bool,
    asked: Option<Nanos>,
    now: Nanos,
}

/// A packet whose turn has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) seq: SeqNo,
    pub(super) at: Nanos,
    pub(super) stamp: Stamp,
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    pub(super) encoding: u8,
    pub(super) codec: Coded,
    pub(super) level: Option<u8>,
    pub(super) rotation: Option<Rotation>,
    pub(super) payload: &'a [u8],
}

/// A packet that waits for others.
#[derive(Debug)]
struct Held {
    packet: Packet<'static>,
    payload: Vec<u8>,
}

impl Held {
    fn packet(&self) -> Packet<'_> {
        Packet {
            payload: &self.payload,
            ..self.packet
        }
    }
}

impl Out {
    pub(super) fn push(&mut self, frame: Queued) {
        self.queue.push(frame);
    }

    /// Notes that content is missing from here on.
    pub(super) fn miss(&mut self, why: GapReason) {
        // The first reason counts, but a mute or a slow disk explains more than its consequences.
        let is_cause = matches!(why, GapReason::Muted | GapReason::Disk);
        if self.missing.is_none() || is_cause {
            self.missing = Some(why);
        }
    }

    pub(super) fn want_keyframe(&mut self) {
        self.wants_keyframe = true;
    }

    /// Whether a keyframe is to be requested now.
    pub(super) fn asks(&mut self) -> bool {
        let is_time = (self.asked).is_none_or(|asked| self.now.saturating_sub(asked) >= ASKS);
        let asks = is_time && std::mem::take(&mut self.wants_keyframe);
        if asks {
            self.asked = Some(self.now);
        }
        asks
    }

    /// Returns the notes for a frame at `at`. Missing packets for at least `silence` are noted,
    /// too.
    pub(super) fn notes_at(&mut self, at: Nanos, silence: Nanos) -> Vec<Note> {
        let from = self.end.unwrap_or(at);
        self.gap(from, at, silence);
        if let Some(encoding) = self.layer.take() {
            let at = duration(at);
            self.notes.push(Note::Layer { at, encoding });
        }
        std::mem::take(&mut self.notes)
    }

    /// Notes a gap.
    fn gap(&mut self, from: Nanos, to: Nanos, silence: Nanos) {
        let length = to.saturating_sub(from);
        let why = match self.missing.take() {
            Some(why) => why,
            None if length >= silence => GapReason::Silent,
            None => return,
        };
        if length > 0 {
            let (from, to) = (duration(from), duration(to));
            self.notes.push(Note::Gap { from, to, why });
        }
    }
}

impl Track {
    pub(super) fn new(
        track: usize,
        codec: Codec,
        setup: Option<Setup>,
        split_on_size: bool,
        is_open: bool,
    ) -> Self {
        let medium = Medium::new(codec, setup, split_on_size, false);
        Self {
            order: InOrder::new(),
            medium,
            split_on_size,
            last: None,
            encoding: None,
            talk: Talk::default(),
            is_open,
            has_ended: false,
            arrived: None,
            out: Out {
                track,
                queue: Queue::default(),
                stats: TrackStats::default(),
                progress: 0,
                end: None,
                notes: Vec::new(),
                missing: None,
                layer: None,
                wants_keyframe: false,
                asked: None,
                now: 0,
            },
        }
    }
}

impl Track {
    /// Takes a packet that has arrived.
    pub(super) fn push(&mut self, arrived: &Arrived<'_>, lipsync: &mut Lipsync) {
        let at = nanos(arrived.at);
        self.arrived = self.arrived.max(Some(at));
        self.out.now = self.out.now.max(at);
        if let Coded::Codec(codec) = arrived.codec {
            lipsync.set_codec(self.out.track, codec);
        }
        let stamp = lipsync.arrive(
            self.out.track,
            at,
            arrived.stream,
            arrived.timestamp,
            arrived.capture,
        );
        let packet = Packet {
            seq: arrived.seq,
            at,
            stamp,
            timestamp: arrived.timestamp,
            marker: arrived.marker,
            encoding: arrived.encoding,
            codec: arrived.codec,
            level: arrived.level,
            rotation: arrived.rotation,
            payload: arrived.payload,
        };
        if self.order.passes(arrived.seq, arrived.at) {
            self.out.stats.packets = self.out.stats.packets.saturating_add(1);
            return self.take(&packet, lipsync);
        }
        let held = Held {
            packet: Packet {
                payload: &[],
                ..packet
            },
            payload: arrived.payload.to_vec(),
        };
        let bytes = arrived.payload.len();
        let is_taken = (self.order).push(arrived.seq, arrived.at, bytes, held);
        let stats = &mut self.out.stats;
        stats.packets = stats.packets.saturating_add(is_taken.into());
        stats.late = stats.late.saturating_add((!is_taken).into());
        self.take_due(lipsync);
    }

    /// Notes that time passes.
    pub(super) fn tick(&mut self, now: Nanos, lipsync: &mut Lipsync) {
        self.out.now = self.out.now.max(now);
        self.order.tick(duration(now));
        self.take_due(lipsync);
        if let Medium::Video(video) = &self.medium
            && self.is_open
            && video.waits()
            && self.is_alive()
        {
            self.out.want_keyframe();
        }
    }

    fn take_due(&mut self, lipsync: &mut Lipsync) {
        while let Some(held) = self.order.pop() {
            self.take(&held.packet(), lipsync);
        }
    }

    /// Takes the next packet in order.
    fn take(&mut self, packet: &Packet<'_>, lipsync: &mut Lipsync) {
        let expected = self
            .last
            .map_or(packet.seq.0, |last| last.0.saturating_add(1));
        let lost = packet.seq.0.saturating_sub(expected);
        self.last = Some(packet.seq);
        if lost > 0 {
            self.out.stats.lost = self.out.stats.lost.saturating_add(lost);
            self.out.miss(GapReason::Loss);
        }
        match packet.codec {
            Coded::Codec(codec) => self.become_codec(codec, lipsync),
            Coded::Red => {}
            Coded::Other => {
                self.out.stats.unfit = self.out.stats.unfit.saturating_add(1);
                return;
            }
        }
        if self.encoding.replace(packet.encoding) != Some(packet.encoding)
            && let Medium::Video(_) = self.medium
        {
            self.out.layer = Some(packet.encoding);
        }
        let Self {
            medium, out, talk, ..
        } = self;
        match (medium, packet.codec) {
            (Medium::Video(video), Coded::Codec(_)) => video.push(packet, lipsync, out),
            (Medium::Video(_), _) => out.stats.unfit = out.stats.unfit.saturating_add(1),
            (Medium::Sound(sound), Coded::Red) => unpack(sound, packet, lost, lipsync, out, talk),
            (Medium::Sound(sound), _) => {
                hear(sound, packet, lipsync, out, talk);
            }
        }
    }

    fn become_codec(&mut self, codec: Codec, lipsync: &mut Lipsync) {
        if self.medium.codec() == codec {
            return;
        }
        if let Medium::Video(video) = &mut self.medium {
            video.interrupt(lipsync, &mut self.out);
        }
        let has_begun = self.out.end.is_some();
        self.medium = Medium::new(codec, None, self.split_on_size, has_begun);
    }

    /// Connects another source to the track, which has ended. `begins_part`: the next part starts
    /// with it.
    pub(super) fn replace(
        &mut self,
        codec: Codec,
        setup: Option<Setup>,
        is_open: bool,
        begins_part: bool,
    ) {
        if let Some((from, to)) = self.talk.end() {
            self.out.notes.push(talks(from, to));
        }
        if begins_part || self.medium.codec() != codec {
            let begins_part = begins_part || self.out.end.is_some();
            self.medium = Medium::new(codec, setup, self.split_on_size, begins_part);
        } else if let Medium::Sound(sound) = &mut self.medium {
            sound.interrupt();
        }
        self.order = InOrder::new();
        self.last = None;
        self.encoding = None;
        self.talk = Talk::default();
        self.is_open = is_open;
        self.has_ended = false;
        self.arrived = None;
        self.out.miss(GapReason::Muted);
    }

    /// Whether packets came recently, or wait for missing ones.
    fn is_alive(&self) -> bool {
        let quiet = self
            .arrived
            .map(|arrived| self.out.now.saturating_sub(arrived));
        quiet.is_some_and(|quiet| quiet < AWAITED) || self.order.is_waiting()
    }

    /// Whether frames of other tracks wait for this track.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_open && !self.has_ended && self.is_alive()
    }

    /// Whether a file does not start without the track.
    pub(super) fn is_expected(&self) -> bool {
        self.is_open && !self.has_ended
    }

    /// Opens or closes the track.
    pub(super) fn gate(&mut self, open: bool, at: Nanos, lipsync: &mut Lipsync) {
        if open == self.is_open {
            return;
        }
        self.is_open = open;
        self.out.now = self.out.now.max(at);
        // No more packets from before come.
        while let Some(held) = self.order.take_first() {
            self.take(&held.packet(), lipsync);
        }
        if let Medium::Video(video) = &mut self.medium {
            video.interrupt(lipsync, &mut self.out);
        }
        self.out.miss(GapReason::Muted);
    }

    /// Notes that packets of the track were dropped.
    pub(super) fn overrun(&mut self) {
        self.out.miss(GapReason::Disk);
    }

    /// Ends the track.
    pub(super) fn end(&mut self, lipsync: &mut Lipsync) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.order.end();
        self.take_due(lipsync);
        if let Medium::Video(video) = &mut self.medium {
            video.interrupt(lipsync, &mut self.out);
        }
    }

    pub(super) fn is_video(&self) -> bool {
        matches!(self.medium, Medium::Video(_))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the last notes at the end, which is at `now`.
    pub(super) fn last_notes(&mut self, now: Nanos) -> Vec<Note> {
        if let Some((from, to)) = self.talk.end() {
            self.out.notes.push(talks(from, to));
        }
        // Packets on their way are no gap.
        let from = self.out.end.unwrap_or(now);
        if now.saturating_sub(from) >= LAST_GAP {
            self.out.gap(from, now, SILENCE);
        }
        std::mem::take(&mut self.out.notes)
    }

    /// Fills missing audio until then. Returns false if there was nothing to fill.
    pub(super) fn fill(&mut self, until: Nanos) -> bool {
        let Medium::Sound(sound) = &mut self.medium else {
            return false;
        };
        let out = &mut self.out;
        let mut has_filled = false;
        sound.fill(until, &mut |piece| {
            has_filled = true;
            out.sound(piece, None, Vec::new());
        });
        has_filled
    }
}

/// Splits redundant audio: lost packets first, then the packet's own content.
fn unpack(
    sound: &mut Sound,
    packet: &Packet<'_>,
    lost: u64,
    lipsync: &mut Lipsync,
    out: &mut Out,
    talk: &mut Talk,
) {
    let mut recovered = 0;
    let pt = red::unpack(packet.payload).last().map(|block| block.pt);
    for block in red::unpack(packet.payload) {
        let is_primary = block.after == 0;
        let ticks = packet.stamp.ticks.saturating_sub(block.offset.into());
        let is_missing = (sound.next())
            .is_some_and(|next| next.stream == packet.stamp.stream && ticks >= next.ticks);
        if !is_primary && (lost == 0 || !is_missing) || Some(block.pt) != pt {
            continue;
        }
        let part = Packet {
            stamp: Stamp {
                ticks,
                ..packet.stamp
            },
            level: packet.level.filter(|_| is_primary),
            payload: block.payload,
            ..*packet
        };
        let is_placed = hear(sound, &part, lipsync, out, talk);
        recovered += u64::from(is_placed && !is_primary);
    }
    out.stats.lost = out.stats.lost.saturating_sub(recovered.min(lost));
}

/// Takes a packet of audio. Returns whether it has its place now.
fn hear(
    sound: &mut Sound,
    packet: &Packet<'_>,
    lipsync: &mut Lipsync,
    out: &mut Out,
    talk: &mut Talk,
) -> bool {
    let may_step = sound.next().is_none_or(|next| next != packet.stamp);
    let at = lipsync.place(out.track, packet.stamp, packet.at, may_step);
    out.progress = out.progress.max(at);
    let mut pieces = Vec::new();
    let put = sound.put(
        packet.payload,
        packet.stamp,
        at,
        packet.level,
        &mut |piece| {
            pieces.push(piece);
        },
    );
    match put {
        Put::Placed { missed } => {
            if let Some((from, to)) = missed {
                out.gap(from, to, SILENCE);
            }
            out.missing = None;
        }
        Put::LeftOut => out.stats.left_out = out.stats.left_out.saturating_add(1),
        Put::Unfit => out.stats.unfit = out.stats.unfit.saturating_add(1),
    }
    for piece in pieces {
        let end = piece.at.saturating_add(piece.duration);
        if !piece.is_fill
            && let Some((from, to)) = talk.hear(packet.level, piece.at, end)
        {
            out.notes.push(talks(from, to));
        }
        let setup = sound.open();
        let notes = std::mem::take(&mut out.notes);
        out.sound(piece, setup, notes);
    }
    put != Put::LeftOut
}

impl Out {
    fn sound(&mut self, piece: Piece, opening: Option<Box<Opening>>, notes: Vec<Note>) {
        let end = piece.at.saturating_add(piece.duration);
        self.progress = self.progress.max(end);
        self.end = Some(end);
        if piece.is_fill {
            self.stats.filled = self.stats.filled.saturating_add(duration(piece.duration));
        }
        self.push(Queued {
            at: piece.at,
            duration: piece.duration,
            keyframe: true,
            data: piece.data,
            opening,
            notes,
        });
    }
}

fn talks(from: Nanos, to: Nanos) -> Note {
    Note::Talks {
        from: duration(from),
        to: duration(to),
    }
}
