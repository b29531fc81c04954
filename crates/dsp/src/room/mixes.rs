//! The encoded mixes: each is encoded once for all who hear it.

use slab::Slab;

use super::encodings::{self, difference, normal, shared};
use super::history::{FRAMES, History};
use super::job::Work;
use super::sounds::Sounds;
use super::{EncodeJob, MixId, Mixture, Output};
use crate::{AudioCodec, Encoding, Format, Relayed};

/// The silent frames that are encoded before the encoder rests. By then earlier audio has faded in
/// it.
const TAIL: u32 = 10;

/// The interval in frames at which listeners of a silent mix get a frame of silence, like with
/// libopus.
const REMINDER: u32 = 20;

/// The greatest bitrate of relayed packets in bit/s, if a listener asks for none.
const MOST_UNASKED: u32 = 96_000;

/// The lowest bitrate, in bit/s, of a mix that may be replaced by relayed packets: 1 bit/s per
/// hertz of the room, within these bounds. Below it, the change would be audible.
const LEAST_ASKED: [u32; 2] = [12_000, 20_000];

/// The greatest bitrate at which libopus encodes speech with SILK, in bit/s.
const MOST_SILK: u32 = 56_000;

/// The ticks without use after which an encoder is released: 10 s.
const KEEP: u64 = 500;

/// The participants in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Everyone,
    Group(usize),
    /// Everyone but the participant at this index.
    AllBut(usize),
}

impl Of {
    /// Returns the encoding of this mix for a participant that asks for `asked`.
    fn encoding(self, asked: Encoding) -> Encoding {
        match self {
            Of::Everyone => shared(asked),
            Of::Group(_) | Of::AllBut(_) => normal(asked),
        }
    }
}

impl From<Mixture> for Of {
    fn from(mixture: Mixture) -> Self {
        match mixture {
            Mixture::Everyone => Of::Everyone,
            Mixture::Group(group) => Of::Group(group),
        }
    }
}

/// A mix in one encoding.
#[derive(Debug)]
pub(super) struct Mix {
    pub(super) id: MixId,
    pub(super) of: Of,
    pub(super) encoding: Encoding,
    /// The number of participants that hear it.
    pub(super) listeners: u32,
    /// The number of subscriptions, and of those that want silence while the room is empty.
    subscriptions: u32,
    always_on: u32,
    is_reported: bool,
    /// The tick of its last use.
    used: u64,
    /// The last frame that its encoder has seen.
    encoded: Option<u64>,
    /// The number of silent frames in a row.
    quiet: u32,
    /// Whether the next packet is the first after a pause.
    paused: bool,
    /// A packet of silence.
    silence: Vec<u8>,
    /// `None` if it is not made yet, or runs elsewhere.
    work: Option<Box<Work>>,
    /// The packet of this tick.
    due: Due,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// The packet of the encoder.
    Encoded,
    /// The packet of the only participant that is heard.
    Relayed,
    /// The packet of silence.
    Silence,
    /// The first byte of the packet of silence, for continued silence (RFC 6716 section 2.1.9).
    Pause,
}

impl Mix {
    fn is_used(&self, inhabited: bool) -> bool {
        self.listeners > 0 || self.always_on > 0 || (self.subscriptions > 0 && inhabited)
    }

    /// Whether packets are wanted during silence: forwarders and G.711 have no pauses.
    fn is_continuous(&self) -> bool {
        self.subscriptions > 0 || self.encoding.codec != AudioCodec::Opus
    }

    /// Prepares the encoder for this tick.
    fn prepare(&mut self, key: usize, format: Format, sounds: &Sounds<'_>, tick: &mut Tick<'_>) {
        let missed = self.encoded.map_or(u64::MAX, |last| tick.number - 1 - last);
        self.used = tick.number;
        self.encoded = Some(tick.number);
        if let Some(relayed) = tick.relayed
            && self.of == Of::Everyone
            && self.encoding.codec == AudioCodec::Opus
        {
            self.quiet = 0;
            // The encoder is prepared again when it is needed.
            self.encoded = None;
            if relayed == Relayed::Packet {
                self.due = Due::Relayed;
            }
            return;
        }
        if !sounds.is_silent(self.of) {
            self.quiet = 0;
        } else if missed == 0 {
            self.quiet = self.quiet.saturating_add(1);
        } else {
            self.quiet = 1;
        }
        if self.quiet > TAIL && !self.silence.is_empty() {
            tick.silent += 1;
            self.due = match (self.quiet - TAIL - 1) % REMINDER {
                _ if self.is_continuous() => Due::Silence,
                0 if self.quiet == TAIL + 1 => Due::Pause,
                0 => Due::Silence,
                1 if self.quiet > TAIL + REMINDER => Due::Pause,
                _ => Due::Nothing,
            };
            return;
        }
        let encoding = self.encoding;
        let id = self.id;
        let work = self
            .work
            .get_or_insert_with(|| Box::new(Work::new(id, key, encoding, format)));
        work.sound.clear();
        if missed > 0 && !matches!(self.of, Of::Group(_)) {
            let frames = usize::try_from(missed).map_or(FRAMES, |missed| missed.min(FRAMES));
            let frames = frames.min(tick.warming);
            tick.warming -= frames;
            tick.warmed += frames as u64;
            work.sound.extend_from_slice(tick.history.last(frames));
        }
        sounds.render(self.of, &mut work.sound);
        tick.encoded += 1;
        self.due = Due::Encoded;
    }

    /// Emits the packet of this tick. `time` is in frames.
    fn emit(&mut self, time: u64, relayed: &[u8], out: &mut impl Output) -> Result<(), ()> {
        let step = u64::from(self.encoding.codec.clock_rate() / 50);
        let timestamp = time.wrapping_mul(step) as u32;
        let marker = std::mem::take(&mut self.paused) && self.quiet == 0;
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Nothing => self.paused = self.quiet > 0,
            Due::Encoded => {
                let result = self.work.as_mut().and_then(|work| work.result.take());
                let (Some(work), Some(Ok(()))) = (&self.work, result) else {
                    // The next encoder has to be prepared anew.
                    self.encoded = None;
                    return Err(());
                };
                out.packet(self.id, timestamp, marker, &work.packet);
                if self.quiet >= TAIL {
                    self.silence.clone_from(&work.packet);
                }
            }
            Due::Relayed => out.packet(self.id, timestamp, marker, relayed),
            Due::Silence => out.packet(self.id, timestamp, marker, &self.silence),
            Due::Pause => {
                self.paused = true;
                // The code 0: one frame, which is empty.
                let toc = self.silence.first().map_or(0, |toc| toc & 0b1111_1100);
                out.packet(self.id, timestamp, marker, &[toc]);
            }
        }
        Ok(())
    }
}

/// The inputs that all mixes of a tick share, and the results.
pub(super) struct Tick<'a> {
    pub(super) number: u64,
    /// Whether there are participants or announcements.
    pub(super) inhabited: bool,
    pub(super) history: &'a History,
    /// The relayed packet, if only one participant is heard.
    pub(super) relayed: Option<Relayed>,
    /// The frames that may still be used to prepare encoders in this tick.
    pub(super) warming: usize,
    pub(super) encoded: u64,
    pub(super) warmed: u64,
    pub(super) silent: u64,
}

/// All mixes of a room.
#[derive(Debug)]
pub(super) struct Mixes {
    format: Format,
    next: u64,
    all: Slab<Mix>,
    /// The mixes whose end was not reported yet.
    ended: Vec<MixId>,
}

impl Mixes {
    pub(super) fn new(format: Format) -> Self {
        Mixes {
            format,
            next: 0,
            all: Slab::new(),
            ended: Vec::new(),
        }
    }

    /// Finds a mix or opens it. If the room's mix has too many encodings, it returns the most
    /// similar one.
    pub(super) fn find_or_open(&mut self, of: Of, encoding: Encoding, tick: u64) -> usize {
        let encoding = of.encoding(encoding);
        if let Some(key) = self.find(of, encoding) {
            return key;
        }
        if of == Of::Everyone
            && encoding.codec == AudioCodec::Opus
            && let Some(key) = self.most_alike(encoding)
        {
            return key;
        }
        let id = MixId(self.next);
        self.next += 1;
        self.all.insert(Mix {
            id,
            of,
            encoding,
            listeners: 0,
            subscriptions: 0,
            always_on: 0,
            is_reported: false,
            used: tick,
            encoded: None,
            quiet: 0,
            paused: false,
            silence: Vec::new(),
            work: None,
            due: Due::Nothing,
        })
    }

    fn find(&self, of: Of, encoding: Encoding) -> Option<usize> {
        self.all
            .iter()
            .find_map(|(key, mix)| (mix.of == of && mix.encoding == encoding).then_some(key))
    }

    /// Returns the room's mix with the most similar encoding, if no more may be opened.
    fn most_alike(&self, encoding: Encoding) -> Option<usize> {
        let known = self
            .all
            .iter()
            .filter(|(_, mix)| mix.of == Of::Everyone && mix.encoding.codec == encoding.codec);
        if known.clone().count() < encodings::MOST {
            return None;
        }
        let (key, _) =
            known.min_by_key(|(_, mix)| difference(mix.encoding, encoding, self.format))?;
        Some(key)
    }

    /// Returns the frames that the encoder of a mix needs for its preparation.
    pub(super) fn unready(&self, key: usize, tick: u64) -> usize {
        let encoded = self.all.get(key).and_then(|mix| mix.encoded);
        encoded.map_or(FRAMES, |last| {
            usize::try_from(tick - 1 - last).map_or(FRAMES, |missed| missed.min(FRAMES))
        })
    }

    pub(super) fn id(&self, key: usize) -> Option<MixId> {
        Some(self.all.get(key)?.id)
    }

    /// Whether the mix is this one, in this encoding.
    pub(super) fn is(&self, key: usize, of: Of, encoding: Encoding) -> bool {
        self.all
            .get(key)
            .is_some_and(|mix| mix.of == of && mix.encoding == of.encoding(encoding))
    }

    pub(super) fn subscribe(
        &mut self,
        mixture: Mixture,
        encoding: Encoding,
        always_on: bool,
        tick: u64,
    ) -> MixId {
        let key = self.find_or_open(mixture.into(), encoding, tick);
        let Some(mix) = self.all.get_mut(key) else {
            // It was found or opened just now.
            return MixId(self.next);
        };
        mix.subscriptions += 1;
        mix.always_on += u32::from(always_on);
        mix.id
    }

    pub(super) fn unsubscribe(&mut self, id: MixId, always_on: bool) {
        if let Some((_, mix)) = self.all.iter_mut().find(|(_, mix)| mix.id == id) {
            mix.subscriptions = mix.subscriptions.saturating_sub(1);
            mix.always_on = mix.always_on.saturating_sub(u32::from(always_on));
        }
    }

    /// Whether a subscription wants silence while the room is empty.
    pub(super) fn are_always_on(&self) -> bool {
        self.all.iter().any(|(_, mix)| mix.always_on > 0)
    }

    /// Whether this group has a subscription.
    pub(super) fn has_group(&self, group: usize) -> bool {
        self.all
            .iter()
            .any(|(_, mix)| mix.of == Of::Group(group) && mix.subscriptions > 0)
    }

    /// Moves a listener from one mix to another.
    pub(super) fn listen(&mut self, before: Option<usize>, after: Option<usize>) {
        if let Some(mix) = before.and_then(|key| self.all.get_mut(key)) {
            mix.listeners = mix.listeners.saturating_sub(1);
        }
        if let Some(mix) = after.and_then(|key| self.all.get_mut(key)) {
            mix.listeners += 1;
        }
    }

    /// Changes the encoding of a mix with a single listener.
    pub(super) fn configure(&mut self, key: usize, encoding: Encoding) {
        if let Some(mix) = self.all.get_mut(key) {
            mix.encoding = normal(encoding);
            if let Some(work) = &mut mix.work {
                work.configure(mix.encoding);
            }
        }
    }

    /// Ends a mix at once, because its participant has left.
    pub(super) fn end(&mut self, key: usize) {
        if let Some(mix) = self.all.try_remove(key)
            && mix.is_reported
        {
            self.ended.push(mix.id);
        }
    }

    /// Reports new mixes, and closes those without use for long. Their owners are passed to
    /// `closed`.
    pub(super) fn report(
        &mut self,
        tick: u64,
        out: &mut impl Output,
        mut closed: impl FnMut(Of, usize),
    ) {
        for mix in self.ended.drain(..) {
            out.closed(mix);
        }
        self.all.retain(|key, mix| {
            if !mix.is_reported {
                mix.is_reported = true;
                out.opened(mix.id, mix.encoding);
            }
            let unused = mix.listeners == 0 && mix.subscriptions == 0;
            if unused && tick.saturating_sub(mix.used) > KEEP {
                out.closed(mix.id);
                closed(mix.of, key);
                return false;
            }
            true
        });
    }

    /// Returns the greatest average size in bytes of the packets of participant `owner`, if all its
    /// listeners may hear them unchanged.
    pub(super) fn relayable(&self, owner: usize) -> Option<usize> {
        let [lowest, highest] = LEAST_ASKED;
        let least = self.format.rate.hertz().clamp(lowest, highest);
        let mut most = usize::MAX;
        for (_, mix) in &self.all {
            if !mix.is_used(true) || mix.of == Of::AllBut(owner) {
                continue;
            }
            let encoding = &mix.encoding;
            // Its own packets lack the requested FEC.
            let protected = encoding.fec && encoding.expected_loss > 0;
            let suits = encoding
                .bitrate
                .is_none_or(|bitrate| (least..=MOST_SILK).contains(&bitrate));
            let alike = mix.of == Of::Everyone && encoding.codec == AudioCodec::Opus;
            if !alike || protected || !suits {
                return None;
            }
            most = most.min(most_bytes(encoding.bitrate, self.format));
        }
        Some(most)
    }

    pub(super) fn prepare(&mut self, sounds: &Sounds<'_>, tick: &mut Tick<'_>) {
        for (key, mix) in &mut self.all {
            if mix.is_used(tick.inhabited) {
                mix.prepare(key, self.format, sounds, tick);
            }
        }
    }

    pub(super) fn take_jobs(&mut self, jobs: &mut Vec<EncodeJob>) {
        for (_, mix) in &mut self.all {
            if mix.due == Due::Encoded {
                jobs.extend(mix.work.take().map(EncodeJob));
            }
        }
    }

    pub(super) fn put_back(&mut self, job: EncodeJob) {
        if let Some(mix) = self.all.get_mut(job.0.key)
            && mix.id == job.0.mix
        {
            mix.work = Some(job.0);
        }
    }

    pub(super) fn encode(&mut self) {
        for (_, mix) in &mut self.all {
            if mix.due == Due::Encoded
                && let Some(work) = &mut mix.work
            {
                work.run();
            }
        }
    }

    /// Emits the packets. Returns the number of mixes without one because their encoder is missing.
    /// `time` is in frames.
    pub(super) fn emit(&mut self, time: u64, relayed: &[u8], out: &mut impl Output) -> u64 {
        self.all
            .iter_mut()
            .map(|(_, mix)| u64::from(mix.emit(time, relayed, out).is_err()))
            .sum()
    }
}

/// Returns the greatest average size of relayed packets in place of a mix of this bitrate: a
/// quarter more. Without a bitrate, the room's rate decides.
fn most_bytes(bitrate: Option<u32>, format: Format) -> usize {
    let bitrate = match bitrate {
        Some(bitrate) => bitrate.saturating_add(bitrate / 4),
        None => (3 * format.rate.hertz()).min(MOST_UNASKED),
    };
    bitrate as usize / 8 / 50
}
