//! A receiver: it turns the packets of a participant into frames of audio.

use std::time::Instant;

use super::ReceiverStats;
use super::buffer::Buffer;
use super::delay::Delay;
use super::playout::Playout;
use super::relay::Relay;
use super::timeline::{MS, SECOND, Timeline};
use crate::{AudioCodec, Format};

/// The options of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// The codec of the participant.
    pub codec: AudioCodec,
    /// The format of the room.
    pub format: Format,
}

/// The content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// Nothing was due, so all samples are zero.
    Silence,
    /// The participant's audio.
    Sound {
        /// Whether part of it is concealed.
        concealed: bool,
    },
}

/// The length of a frame.
pub(super) const FRAME: i64 = 20 * MS;
/// The skipped packets that are kept to prepare a decoder later.
const KEPT_TO_WARM_UP: usize = 2;
/// The excess of the delay above which audio is dropped instead of played faster.
const MOST_EXCESS: i64 = 500 * MS;
/// The deviation of the delay that is tolerated before audio is shortened or lengthened.
pub(super) const TOLERANCE: i64 = 5 * MS;
/// The audio that must be there to be shortened: two pitch periods of 10 ms besides the frame.
const AHEAD_TO_SHORTEN: i64 = 40 * MS;
/// The length of one step of concealment while no packet comes.
const MAKE_UP: i64 = 10 * MS;
/// Shorter gaps between packets are left out, because libopus conceals at least 2.5 ms.
pub(super) const LEAST_GAP: i64 = 2 * MS;
/// The time without audio after which a decoder is released.
const GIVE_BACK: i64 = 5 * SECOND;
/// The factor by which observed losses decay per packet: half in 140 packets.
pub(super) const FORGET_LOSS: f32 = 0.995;
/// The share of lost packets above which packets wait for later ones that contain them, too.
const WORTH_WAITING: f32 = 0.01;

/// The receiver of a participant: takes packets as they come, and returns a frame of audio every 20
/// ms.
///
/// Each tick of a room calls either [`play`](Self::play) or [`skip`](Self::skip), once. A receiver
/// that is skipped decodes nothing.
#[derive(Debug)]
pub struct Receiver {
    pub(super) options: ReceiverOptions,
    pub(super) stats: ReceiverStats,
    pub(super) timeline: Timeline,
    pub(super) delay: Delay,
    pub(super) buffer: Buffer,
    /// Made when audio is first heard.
    pub(super) playout: Option<Box<Playout>>,
    pub(super) state: State,
    /// The sender's time of the next audio to decode or skip.
    pub(super) next: i64,
    /// The number of the last decoded packet.
    pub(super) last_seq: i64,
    /// Its length and its level.
    pub(super) last_len: i64,
    pub(super) last_level: Option<u8>,
    /// The concealed length for which it is not known yet what is missing.
    pub(super) debt: i64,
    /// Whether the delay is being reduced.
    pub(super) shortening: bool,
    /// The share of recently lost packets.
    pub(super) lost: f32,
    /// The number of packets for which redundancy is still expected: speech has it, pauses do not.
    pub(super) redundancy: u8,
    /// When audio was last heard.
    heard: i64,
    pub(super) relay: Relay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is heard until a packet is due.
    Silent,
    Playing,
    /// Frames are skipped.
    Skipped,
    /// Packets are relayed unchanged.
    Relaying,
}

/// The result of a step of decoding.
enum Next {
    Sound,
    MadeUp,
    /// There is nothing more now.
    Nothing,
}

impl Receiver {
    /// Returns a receiver without packets. Its decoder is made when it is first needed.
    pub fn new(options: ReceiverOptions) -> Self {
        Self {
            options,
            stats: ReceiverStats::default(),
            timeline: Timeline::default(),
            delay: Delay::default(),
            buffer: Buffer::default(),
            playout: None,
            state: State::Silent,
            next: i64::MIN,
            last_seq: i64::MIN,
            last_len: FRAME,
            last_level: None,
            debt: 0,
            shortening: false,
            lost: 0.0,
            redundancy: 0,
            heard: 0,
            relay: Relay::default(),
        }
    }

    /// Writes the due frame to `into`, which has the length [`Format::frame_len`]; the rest of a
    /// longer buffer becomes silent.
    ///
    /// After skipped frames the audio fades in. A caller that skips frames after played ones has to
    /// fade the last one out.
    pub fn play(&mut self, now: Instant, into: &mut [f32]) -> Played {
        let now = self.timeline.time(now);
        match self.state {
            State::Skipped => self.come_back(now),
            State::Relaying => self.resume(|_| {}),
            State::Silent | State::Playing => {}
        }
        if self.state == State::Silent {
            self.begin(now);
        }
        let played = match self.state {
            State::Playing => self.play_on(now, into),
            State::Silent | State::Skipped | State::Relaying => Played::Silence,
        };
        if played == Played::Silence {
            into.fill(0.0);
            self.give_back(now);
        } else {
            self.heard = now;
        }
        played
    }

    /// Skips the due frame without decoding it.
    pub fn skip(&mut self, now: Instant) {
        let now = self.timeline.time(now);
        self.state = State::Skipped;
        self.next = self.due_at(now);
        while self
            .buffer
            .front()
            .is_some_and(|front| front.end() <= self.next)
        {
            self.buffer.pass(KEPT_TO_WARM_UP);
        }
        self.give_back(now);
    }

    /// Skips the due frame, but returns its level in -dBov, for which the packet is decoded
    /// separately. It takes a third of the time of playing a frame after skipped ones. Returns
    /// `None` if nothing is due, or it cannot be decoded.
    pub fn measure(&mut self, now: Instant) -> Option<u8> {
        self.skip(now);
        if !self.is_due() || !self.make_playout() {
            return None;
        }
        self.heard = self.timeline.time(now);
        self.playout.as_mut()?.measure(self.buffer.front()?)
    }

    /// Whether the first packet contains due audio.
    fn is_due(&self) -> bool {
        self.buffer
            .front()
            .is_some_and(|front| front.media <= self.next && !front.dtx)
    }

    /// Returns the level of the due frame in -dBov, by its packet. Returns `None` if nothing is
    /// due, or packets have no levels.
    pub fn due_level(&self, now: Instant) -> Option<u8> {
        let now = self.timeline.time(now);
        let front = self.buffer.front();
        match self.state {
            State::Silent | State::Skipped => {
                let due = self.due_at(now);
                self.buffer
                    .waiting()
                    .find(|packet| packet.end() > due)
                    .filter(|packet| packet.media <= due)
                    .and_then(|packet| packet.level)
            }
            State::Relaying => front
                .filter(|front| front.media < self.next + LEAST_GAP)
                .map_or(self.last_level, |front| front.level),
            State::Playing => {
                let left = self.playout.as_ref().map_or(0, |playout| playout.len());
                let decoded = self.last_level.filter(|_| left > 0 || front.is_none());
                let front = front
                    .filter(|front| left < FRAME && front.media <= self.next)
                    .and_then(|front| front.level);
                // The louder one.
                decoded.into_iter().chain(front).min()
            }
        }
    }

    /// Whether nothing is heard until a packet is due.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.state, State::Silent | State::Skipped)
    }

    /// Returns the counters, and the present delay.
    pub fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            target_ms: u32::try_from(self.wait() / MS).unwrap_or(0),
            ..self.stats
        }
    }

    /// Returns the sender's time of the audio that is due with the wanted delay.
    pub(super) fn due_at(&self, now: i64) -> i64 {
        now - self.delay.least_transit() - self.wait()
    }

    /// Returns the wait of a packet without delay. It is longer if that helps to recover lost
    /// packets.
    pub(super) fn wait(&self) -> i64 {
        let worth = self.lost > WORTH_WAITING && self.redundancy > 0;
        self.delay.wait(if worth {
            self.last_len.min(3 * FRAME)
        } else {
            0
        })
    }

    /// Continues after skipped frames: at the due packet, with earlier ones to prepare the decoder.
    fn come_back(&mut self, now: i64) {
        self.state = State::Silent;
        let due = self.due_at(now);
        self.next = due;
        while self.buffer.front().is_some_and(|front| front.end() <= due) {
            self.buffer.pass(KEPT_TO_WARM_UP);
        }
        if self.is_due() && self.make_playout() {
            if let Some(playout) = &mut self.playout {
                playout.reset();
                self.buffer
                    .before()
                    .for_each(|packet| playout.warm_up(packet));
            }
            self.start(now);
        } else if let Some(playout) = &mut self.playout {
            playout.silence();
        }
        self.buffer.forget(0);
    }

    /// Starts to play if a packet is due.
    fn begin(&mut self, now: i64) {
        while self
            .buffer
            .front()
            .is_some_and(|front| front.end() <= self.next || front.dtx)
        {
            if let Some(front) = self.buffer.front() {
                if front.media > self.due_at(now) {
                    return;
                }
                self.next = self.next.max(front.end());
                self.last_seq = front.seq;
            }
            self.buffer.pass(0);
        }
        let due = self.due_at(now);
        if self.buffer.front().is_some_and(|front| front.media <= due) && self.make_playout() {
            if let Some(playout) = &mut self.playout {
                playout.begin();
            }
            self.start(now);
        }
    }

    /// Plays from the first packet on, or from where the delay is acceptable.
    fn start(&mut self, now: i64) {
        let Some(front) = self.buffer.front() else {
            return;
        };
        self.next = front.media;
        self.last_seq = front.seq - 1;
        self.state = State::Playing;
        self.debt = 0;
        self.shortening = false;
        self.throw_away(now);
    }

    pub(super) fn make_playout(&mut self) -> bool {
        if self.playout.is_none() {
            // It fails if memory is short. Then the participant is not heard.
            self.playout = Playout::new(self.options.codec, self.options.format)
                .ok()
                .map(Box::new);
        }
        self.playout.is_some()
    }

    pub(super) fn give_back(&mut self, now: i64) {
        if self.playout.is_some() && now - self.heard > GIVE_BACK {
            self.playout = None;
        }
    }

    /// Drops packets when the delay exceeds what time-stretching can recover.
    fn throw_away(&mut self, now: i64) {
        let due = self.due_at(now);
        if self.next >= due - MOST_EXCESS {
            return;
        }
        while let Some(front) = self.buffer.front().filter(|front| front.end() <= due) {
            self.next = front.end();
            self.last_seq = front.seq;
            self.stats.overflow += 1;
            self.buffer.pass(0);
        }
        self.next = self.next.max(due - MOST_EXCESS);
    }

    /// Plays a frame while packets come.
    fn play_on(&mut self, now: i64, into: &mut [f32]) -> Played {
        self.throw_away(now);
        let change = self.change(now);
        let mut concealed = false;
        while self.state == State::Playing && self.ahead() < FRAME {
            match self.next_sound(now) {
                Next::Sound => {}
                Next::MadeUp => concealed = true,
                Next::Nothing => break,
            }
        }
        if change < 0 {
            self.shorten(-change);
        } else if change > 0 {
            self.lengthen(change);
        }
        let frame = self.options.format.frame_len();
        let (into, beyond) = into.split_at_mut(frame.min(into.len()));
        beyond.fill(0.0);
        let taken = self
            .playout
            .as_mut()
            .map_or(0, |playout| playout.take(into));
        if let Some(missing) = into.get_mut(taken..) {
            missing.fill(0.0);
        }
        if taken == 0 {
            return Played::Silence;
        }
        self.stats.played += 1;
        self.stats.concealed += u64::from(concealed);
        Played::Sound { concealed }
    }

    /// Returns the length of decoded audio that was not played yet.
    fn ahead(&self) -> i64 {
        self.playout.as_ref().map_or(0, |playout| playout.len())
    }

    /// Returns by how much the delay should change.
    ///
    /// Packet times are independent of ticks. Audio decoded at a tick has waited for some time,
    /// plus steps of a packet or a frame, whichever is shorter. The delay is right if it is the
    /// shortest of these that is at least the wait. Audio that was decoded too early makes it
    /// longer for nothing.
    fn change(&mut self, now: i64) -> i64 {
        let ahead = self.ahead();
        let wait = self.wait();
        let step = self.last_len.min(FRAME);
        // A tick needs several packets that are shorter than a frame, and the last comes later than
        // the first.
        let slack = now - self.delay.least_transit() - self.next - (FRAME - step);
        let delay = slack + (FRAME - step) + ahead;
        self.stats.delay_ms = u32::try_from(delay / MS).unwrap_or(0);
        let least = wait - TOLERANCE;
        let right = least + (slack - least).rem_euclid(step) + (FRAME - step);
        if delay > wait + FRAME + TOLERANCE {
            self.shortening = true;
        }
        if delay <= right + 2 * MS {
            self.shortening = false;
        }
        if self.shortening {
            return right - delay;
        }
        if ahead < FRAME && slack < least && self.debt == 0 {
            right - delay
        } else {
            0
        }
    }

    /// Shortens the decoded audio, or a gap, by up to about `excess`.
    fn shorten(&mut self, excess: i64) {
        while self.ahead() < AHEAD_TO_SHORTEN
            && self
                .buffer
                .front()
                .is_some_and(|front| front.media <= self.next && !front.dtx)
        {
            self.decode_front();
        }
        let (alike, times) = match excess / MS {
            ..60 => (0.85, 1),
            60..150 => (0.6, 1),
            _ => (0.3, 2),
        };
        let Some(playout) = &mut self.playout else {
            return;
        };
        for _ in 0..times {
            if playout.len() < FRAME + FRAME / 2 {
                break;
            }
            self.stats.shortened += playout.shorten(alike) as u64;
        }
    }

    /// Lengthens the decoded audio.
    fn lengthen(&mut self, lack: i64) {
        let alike = if lack > 2 * FRAME { 0.5 } else { 0.75 };
        if let Some(playout) = &mut self.playout {
            self.stats.lengthened += playout.lengthen(alike) as u64;
        }
    }

    /// Decodes the first waiting packet.
    fn decode_front(&mut self) -> Next {
        let (Some(front), Some(playout)) = (self.buffer.front(), &mut self.playout) else {
            return Next::Nothing;
        };
        let decoded = playout.decode(front, self.next);
        if decoded.is_err() {
            self.stats.invalid += 1;
            playout.make_up(front.len.min(FRAME));
        }
        self.next = front.end();
        self.last_seq = front.seq;
        self.last_len = front.len;
        self.last_level = front.level.or(self.last_level.filter(|_| front.redundant));
        self.stats.recovered += u64::from(front.redundant);
        self.lost *= FORGET_LOSS;
        if front.redundant {
            self.lost += 1.0 - FORGET_LOSS;
        }
        self.debt = 0;
        self.buffer.pass(0);
        if decoded.is_ok() {
            Next::Sound
        } else {
            Next::MadeUp
        }
    }

    /// Adds audio to the decoded audio.
    fn next_sound(&mut self, now: i64) -> Next {
        let Some(front) = self.buffer.front() else {
            return self.wait_for_packet();
        };
        if front.end() <= self.next {
            self.buffer.pass(0);
            return Next::Sound;
        }
        let gap = front.media - self.next;
        if !front.dtx && gap < LEAST_GAP {
            self.next = self.next.max(front.media);
            return self.decode_front();
        }
        if front.dtx && gap <= 0 || front.seq == self.last_seq + 1 {
            return self.pause(now);
        }
        // A part of the gap was concealed before the gap was known.
        let paid = gap.min(self.debt);
        self.debt = 0;
        self.next += paid;
        let gap = gap - paid;
        let excess = self.next + self.wait() + FRAME + TOLERANCE;
        let excess = (now - self.delay.least_transit() - excess).clamp(0, gap);
        self.next += excess;
        self.fill(gap - excess)
    }

    /// Fills a part of a gap before the first packet.
    fn fill(&mut self, gap: i64) -> Next {
        let (Some(front), Some(playout)) = (self.buffer.front(), &mut self.playout) else {
            return Next::Nothing;
        };
        if gap > 0 && gap <= front.fec && playout.recover(front, gap).is_ok() {
            self.next += gap;
            self.stats.recovered += 1;
            self.lost += 1.0 - FORGET_LOSS;
            return Next::Sound;
        }
        if gap < LEAST_GAP {
            self.next = front.media;
            return Next::Sound;
        }
        let beyond_fec = if gap > front.fec {
            gap - front.fec
        } else {
            gap
        };
        let made_up = playout.make_up(beyond_fec.min(FRAME));
        self.next += made_up.min(gap);
        self.lost += (1.0 - FORGET_LOSS) * made_up as f32 / self.last_len as f32;
        Next::MadeUp
    }

    /// Ends the audio, because the sender pauses (DTX) or its clock has jumped. It restarts with
    /// the next due packet.
    fn pause(&mut self, now: i64) -> Next {
        let due = self.due_at(now);
        let Some(front) = self.buffer.front() else {
            return Next::Nothing;
        };
        if !front.dtx && front.media <= due {
            // It is late already.
            self.next = front.media;
            return Next::Sound;
        }
        if front.dtx {
            self.next = front.end();
            self.last_seq = front.seq;
            self.last_level = None;
            self.buffer.pass(0);
        }
        self.end()
    }

    /// Ends the audio.
    fn end(&mut self) -> Next {
        self.state = State::Silent;
        if let Some(playout) = &mut self.playout {
            playout.end_within(FRAME);
        }
        Next::Nothing
    }

    /// Conceals until a packet comes or the audio has faded.
    fn wait_for_packet(&mut self) -> Next {
        if self.playout.as_ref().is_none_or(|playout| playout.faded()) {
            self.state = State::Silent;
            return Next::Nothing;
        }
        self.make_up(MAKE_UP)
    }

    fn make_up(&mut self, len: i64) -> Next {
        let Some(playout) = &mut self.playout else {
            return Next::Nothing;
        };
        self.debt += playout.make_up(len);
        Next::MadeUp
    }
}
