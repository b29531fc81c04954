//! A participant's packets in order, and frames of sound made of them.

use std::time::Instant;

use super::ReceiverStats;
use super::buffer::Buffer;
use super::delay::Delay;
use super::playout::Playout;
use super::relay::Relay;
use super::timeline::{MS, SECOND, Timeline};
use crate::{AudioCodec, Format};

/// What a receiver is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// What the participant sends.
    pub codec: AudioCodec,
    /// The form of the room's sound.
    pub format: Format,
}

/// What a frame is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// Nothing is due: all samples are zero.
    Silence,
    /// The participant's sound.
    Sound {
        /// Some of it is made up for what was missing.
        concealed: bool,
    },
}

/// A frame of a room.
pub(super) const FRAME: i64 = 20 * MS;
/// How many packets that were passed over are kept, to warm up a decoder that comes in later.
const KEPT_TO_WARM_UP: usize = 2;
/// Sound is thrown away, not played faster, if it is later than it should be by more than this.
const MOST_EXCESS: i64 = 500 * MS;
/// How far the delay may be from what it should be before the sound is shortened or lengthened.
pub(super) const TOLERANCE: i64 = 5 * MS;
/// How much sound must be there before it is shortened: two pitch periods of 10 ms beside the frame.
const AHEAD_TO_SHORTEN: i64 = 40 * MS;
/// How much is made up at a time while nothing comes.
const MAKE_UP: i64 = 10 * MS;
/// What is missing between two packets and is less is left out: libopus makes up no less than 2.5 ms.
pub(super) const LEAST_GAP: i64 = 2 * MS;
/// A decoder is given back when nothing was heard for this long.
const GIVE_BACK: i64 = 5 * SECOND;
/// How fast losses are forgotten: half of them in 140 packets.
pub(super) const FORGET_LOSS: f32 = 0.995;
/// From this share of lost packets on, packets wait for those after them that hold them as well.
const WORTH_WAITING: f32 = 0.01;

/// One participant's way in: takes packets as they come, gives a frame of sound each 20 ms.
///
/// Each tick of a room takes either [`play`](Self::play) or [`skip`](Self::skip), once. A receiver that is skipped decodes
/// nothing.
#[derive(Debug)]
pub struct Receiver {
    pub(super) options: ReceiverOptions,
    pub(super) stats: ReceiverStats,
    pub(super) timeline: Timeline,
    pub(super) delay: Delay,
    pub(super) buffer: Buffer,
    /// Made when sound is first heard.
    pub(super) playout: Option<Box<Playout>>,
    pub(super) state: State,
    /// The sender's time of what is decoded next, or passed over next.
    pub(super) next: i64,
    /// The number of the packet that was decoded last.
    pub(super) last_seq: i64,
    /// How long that was, and how loud it says it was.
    pub(super) last_len: i64,
    pub(super) last_level: Option<u8>,
    /// How much was made up while it was not known what is missing.
    pub(super) debt: i64,
    /// The delay is being changed until it is as it should be.
    pub(super) shortening: bool,
    /// The share of packets that were lost of late.
    pub(super) lost: f32,
    /// For how many packets more it is thought that packets hold those before them as well: speech does, breaks do not.
    pub(super) redundancy: u8,
    /// When sound was last heard.
    heard: i64,
    pub(super) relay: Relay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is heard until a packet is due.
    Silent,
    Playing,
    /// Frames are passed over.
    Skipped,
    /// Packets are handed on as they are.
    Relaying,
}

/// What came next of sound.
enum Next {
    Sound,
    MadeUp,
    /// There is nothing more for now.
    Nothing,
}

impl Receiver {
    /// A receiver that has seen nothing yet. Its decoder is made when it is first needed.
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

    /// Writes the frame that is due to `into`, which is as long as [`Format::frame_len`] says; the rest of a longer one is
    /// silence.
    ///
    /// What is played after frames were skipped fades in. Who skips frames after some were played has to fade the last one
    /// out.
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

    /// Passes over the frame that is due without decoding it.
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

    /// Passes over the frame that is due, but tells how loud it is, in -dBov: its packet is decoded by itself, and not heard. It takes a third
    /// of what it takes to play a frame after others were skipped. None: nothing is due, or it cannot be decoded.
    pub fn measure(&mut self, now: Instant) -> Option<u8> {
        self.skip(now);
        if !self.is_due() || !self.make_playout() {
            return None;
        }
        self.heard = self.timeline.time(now);
        self.playout.as_mut()?.measure(self.buffer.front()?)
    }

    /// The first packet holds sound that is due.
    fn is_due(&self) -> bool {
        self.buffer
            .front()
            .is_some_and(|front| front.media <= self.next && !front.dtx)
    }

    /// How loud the frame is that is due, in -dBov, as its packet tells; it is not decoded. None: nothing is due, or packets
    /// do not tell.
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
                // The louder of the two.
                decoded.into_iter().chain(front).min()
            }
        }
    }

    /// Nothing is heard until a packet is due.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.state, State::Silent | State::Skipped)
    }

    /// What was counted, and the delay now.
    pub fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            target_ms: u32::try_from(self.wait() / MS).unwrap_or(0),
            ..self.stats
        }
    }

    /// The sender's time of what is due when packets wait as long as they should.
    pub(super) fn due_at(&self, now: i64) -> i64 {
        now - self.delay.least_transit() - self.wait()
    }

    /// How long a packet is to wait that was held up nowhere: longer if that helps to have back those that were lost.
    pub(super) fn wait(&self) -> i64 {
        let worth = self.lost > WORTH_WAITING && self.redundancy > 0;
        self.delay.wait(if worth {
            self.last_len.min(3 * FRAME)
        } else {
            0
        })
    }

    /// Goes on after frames were skipped: at the packet that is due, with those before it to warm up the decoder.
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

    /// Begins to play if a packet is due.
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

    /// Plays from the first packet on, or from where the delay is bearable.
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
            // It fails if there is no memory for it; then the participant is not heard.
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

    /// Throws packets away if the delay is more than can be made up for.
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

    /// How much sound there is that was not played yet.
    fn ahead(&self) -> i64 {
        self.playout.as_ref().map_or(0, |playout| playout.len())
    }

    /// By how much the delay should change.
    ///
    /// Packets come at times that have nothing to do with ticks: what is decoded at a tick has waited for as long as fits,
    /// plus steps of a packet or a frame, whichever is shorter. The delay is right if it is the shortest of those that is as
    /// long as the wait. Sound that was decoded before it was needed makes it longer to no avail.
    fn change(&mut self, now: i64) -> i64 {
        let ahead = self.ahead();
        let wait = self.wait();
        let step = self.last_len.min(FRAME);
        // Of packets that are shorter than a frame, several are needed at a tick; the last comes later than the first.
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

    /// Shortens the sound that is there, or what is missing, by up to about `excess`.
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

    /// Lengthens the sound that is there.
    fn lengthen(&mut self, lack: i64) {
        let alike = if lack > 2 * FRAME { 0.5 } else { 0.75 };
        if let Some(playout) = &mut self.playout {
            self.stats.lengthened += playout.lengthen(alike) as u64;
        }
    }

    /// Decodes the first packet that waits.
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

    /// Adds some sound to what is there.
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
        // Some of what is missing was made up already, while it was not known what it is.
        let paid = gap.min(self.debt);
        self.debt = 0;
        self.next += paid;
        let gap = gap - paid;
        let excess = self.next + self.wait() + FRAME + TOLERANCE;
        let excess = (now - self.delay.least_transit() - excess).clamp(0, gap);
        self.next += excess;
        self.fill(gap - excess)
    }

    /// Fills some of a gap before the first packet.
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

    /// The sender sends nothing for now (DTX), or its clock has jumped: the sound ends, and begins again with what is due.
    fn pause(&mut self, now: i64) -> Next {
        let due = self.due_at(now);
        let Some(front) = self.buffer.front() else {
            return Next::Nothing;
        };
        if !front.dtx && front.media <= due {
            // It is high time already.
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

    /// Ends the sound.
    fn end(&mut self) -> Next {
        self.state = State::Silent;
        if let Some(playout) = &mut self.playout {
            playout.end_within(FRAME);
        }
        Next::Nothing
    }

    /// Nothing is there: it is made up until something comes or it has faded.
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
