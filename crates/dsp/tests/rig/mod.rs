//! A room with senders and listeners, in virtual time.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "no test crate uses all of it, and a test fails by a panic"
)]

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use portunus_dsp::{
    AnnouncementId, AnnouncementState, AudioCodec, Channels, Content, Encoding, FRAME, Format,
    IncomingPacket, MixId, Output, ParticipantId, ParticipantOptions, Room, RoomOptions,
    SampleRate, g711, g722, level,
};

pub const MONO_16: Format = Format {
    rate: SampleRate::Hz16000,
    channels: Channels::Mono,
};

pub const STEREO_48: Format = Format {
    rate: SampleRate::Hz48000,
    channels: Channels::Stereo,
};

pub const ENCODING: Encoding = Encoding {
    codec: AudioCodec::Opus,
    bitrate: Some(32_000),
    complexity: 4,
    fec: false,
    expected_loss: 0,
};

pub fn participant() -> ParticipantOptions {
    ParticipantOptions {
        codec: AudioCodec::Opus,
        muted: false,
        suspended: false,
        immune: false,
        gain: 1.0,
        position: 0.5,
        group: None,
        denoise: false,
        levels: true,
        talk: None,
        encoding: ENCODING,
    }
}

pub fn encoder(format: Format) -> opusic_c::Encoder {
    let mut encoder =
        opusic_c::Encoder::new(channels(format), rate(format), opusic_c::Application::Audio)
            .expect("an encoder");
    encoder
        .set_bitrate(opusic_c::Bitrate::Value(96_000))
        .expect("a bitrate");
    encoder
}

/// An encoder like that of browsers, whose packets can be relayed.
pub fn caller(format: Format, bitrate: u32) -> opusic_c::Encoder {
    let mut encoder =
        opusic_c::Encoder::new(channels(format), rate(format), opusic_c::Application::Voip)
            .expect("an encoder");
    encoder
        .set_bitrate(opusic_c::Bitrate::Value(bitrate))
        .expect("a bitrate");
    // The synthetic speech would be taken for music.
    encoder
        .set_signal(opusic_c::Signal::Voice)
        .expect("a signal");
    encoder
}

pub fn decoder(format: Format) -> opusic_c::Decoder {
    opusic_c::Decoder::new(channels(format), rate(format)).expect("a decoder")
}

fn channels(format: Format) -> opusic_c::Channels {
    match format.channels {
        Channels::Mono => opusic_c::Channels::Mono,
        Channels::Stereo => opusic_c::Channels::Stereo,
    }
}

fn rate(format: Format) -> opusic_c::SampleRate {
    match format.rate {
        SampleRate::Hz8000 => opusic_c::SampleRate::Hz8000,
        SampleRate::Hz12000 => opusic_c::SampleRate::Hz12000,
        SampleRate::Hz16000 => opusic_c::SampleRate::Hz16000,
        SampleRate::Hz24000 => opusic_c::SampleRate::Hz24000,
        SampleRate::Hz48000 => opusic_c::SampleRate::Hz48000,
    }
}

/// A tone of a participant.
pub fn tone(format: Format, hertz: f32, loud: f32, frame: u64) -> Vec<f32> {
    let count = format.rate.frame_len() as u64;
    (0..count)
        .flat_map(|at| {
            let time = (frame * count + at) as f64 / f64::from(format.rate.hertz());
            let sample = loud * (std::f64::consts::TAU * f64::from(hertz) * time).sin() as f32;
            std::iter::repeat_n(sample, format.channels.count())
        })
        .collect()
}

/// Synthetic speech: harmonics of a gliding voice, in formants and syllables. `voice` is the number
/// of the speaker.
pub fn speech(format: Format, voice: u64, loud: f32, frame: u64) -> Vec<f32> {
    use std::f64::consts::TAU;
    let count = format.rate.frame_len() as u64;
    let rate = f64::from(format.rate.hertz());
    let pitch = 95.0 + 37.0 * (voice % 5) as f64;
    let syllables = 3.0 + 0.37 * (voice % 7) as f64;
    let highest = (0.45 * rate).min(7_000.0);
    let mut strengths: Vec<f64> = Vec::new();
    (0..count)
        .flat_map(|at| {
            let time = (frame * count + at) as f64 / rate + voice as f64 * 0.71;
            // Formants move so slowly that they are the same for some samples.
            if at % 16 == 0 {
                let vowel = (TAU * 1.7 * time).sin();
                let formants = [500.0 + 200.0 * vowel, 1_500.0 - 400.0 * vowel, 2_600.0];
                let strength = |hertz: f64| {
                    let near = |formant: f64| (-((hertz - formant) / 180.0).powi(2)).exp();
                    (formants.map(near).iter().sum::<f64>() + 0.02) / (1.0 + hertz / 2_000.0)
                };
                let harmonics = (1..).map(|harmonic| f64::from(harmonic) * pitch);
                strengths.clear();
                strengths.extend(harmonics.take_while(|it| *it < highest).map(strength));
            }
            let phase = TAU * pitch * time + 2.5 * (TAU * 1.3 * time).sin();
            // The sines of multiples of the phase, each by the two before.
            let (twice_cosine, mut before, mut sine) = (2.0 * phase.cos(), 0.0, phase.sin());
            let mut sample = 0.0;
            for strength in &strengths {
                sample += strength * sine;
                (before, sine) = (sine, twice_cosine * sine - before);
            }
            let syllable = (TAU * syllables * time).sin().max(0.0).sqrt();
            let sample = (f64::from(loud) * 0.3 * sample * syllable) as f32;
            std::iter::repeat_n(sample, format.channels.count())
        })
        .collect()
}

/// The noise of an open microphone, at a level of -`level` dBov.
pub fn noise(format: Format, level: f32, frame: u64) -> Vec<f32> {
    // Evenly distributed samples from -1 to 1 have a third of the energy of full scale.
    let loud = 3f32.sqrt() * 10f32.powf(-level / 20.0);
    let mut state = frame.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..format.frame_len())
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            loud * ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
        })
        .collect()
}

/// Returns the amplitude of a tone in a piece of audio.
pub fn amount(sound: &[f32], rate: SampleRate, hertz: f32) -> f32 {
    let (mut sine, mut cosine) = (0.0f64, 0.0f64);
    for (at, sample) in sound.iter().enumerate() {
        let angle = std::f64::consts::TAU * f64::from(hertz) * at as f64 / f64::from(rate.hertz());
        sine += f64::from(*sample) * angle.sin();
        cosine += f64::from(*sample) * angle.cos();
    }
    (2.0 * sine.hypot(cosine) / sound.len() as f64) as f32
}

/// The encoder of a participant.
pub enum Way {
    Opus(opusic_c::Encoder),
    G711(g711::Law),
    G722(Box<g722::Encoder>),
}

/// A packet that was heard.
#[derive(Debug, Clone)]
pub struct Heard {
    pub tick: u64,
    pub mix: MixId,
    pub timestamp: u32,
    pub marker: bool,
    pub payload: Vec<u8>,
}

/// Records the output of a room.
#[derive(Debug, Default)]
pub struct Log {
    pub tick: u64,
    pub open: BTreeMap<MixId, Encoding>,
    pub hears: HashMap<ParticipantId, MixId>,
    pub packets: Vec<Heard>,
    pub talking: Vec<(u64, ParticipantId, bool)>,
    pub announcements: Vec<(u64, AnnouncementId, AnnouncementState)>,
    pub sounds: Vec<(Option<usize>, Vec<f32>)>,
    pub switches: u32,
}

impl Output for Log {
    fn opened(&mut self, mix: MixId, encoding: Encoding) {
        assert!(self.open.insert(mix, encoding).is_none());
    }

    fn closed(&mut self, mix: MixId) {
        assert!(self.open.remove(&mix).is_some());
        assert!(self.hears.values().all(|hears| *hears != mix));
    }

    fn hears(&mut self, participant: ParticipantId, mix: Option<MixId>) {
        self.switches += 1;
        match mix {
            Some(mix) => {
                assert!(self.open.contains_key(&mix), "told before it was opened");
                self.hears.insert(participant, mix);
            }
            None => {
                self.hears.remove(&participant);
            }
        }
    }

    fn packet(&mut self, mix: MixId, timestamp: u32, marker: bool, payload: &[u8]) {
        assert!(self.open.contains_key(&mix));
        self.packets.push(Heard {
            tick: self.tick,
            mix,
            timestamp,
            marker,
            payload: payload.to_vec(),
        });
    }

    fn talking(&mut self, participant: ParticipantId, talking: bool) {
        self.talking.push((self.tick, participant, talking));
    }

    fn sound(&mut self, group: Option<usize>, sound: &[f32]) {
        self.sounds.push((group, sound.to_vec()));
    }

    fn announcement(&mut self, announcement: AnnouncementId, state: AnnouncementState) {
        self.announcements.push((self.tick, announcement, state));
    }
}

/// A room with its senders, and the decoders of its listeners.
pub struct Rig {
    pub room: Room,
    pub log: Log,
    pub format: Format,
    pub now: Instant,
    senders: HashMap<ParticipantId, (Way, u64)>,
    ears: HashMap<ParticipantId, opusic_c::Decoder>,
    wide_ears: HashMap<ParticipantId, g722::Decoder>,
    /// The audio that each has heard.
    pub heard: HashMap<ParticipantId, Vec<f32>>,
    pub levels: bool,
    /// If set, other threads encode, and so many of them never return their jobs.
    pub threads: Option<usize>,
}

impl Rig {
    pub fn new(options: RoomOptions) -> Self {
        Rig {
            format: options.format,
            room: Room::new(options),
            log: Log::default(),
            now: Instant::now(),
            senders: HashMap::new(),
            ears: HashMap::new(),
            wide_ears: HashMap::new(),
            heard: HashMap::new(),
            levels: true,
            threads: None,
        }
    }

    pub fn mono(loudest: usize) -> Self {
        Rig::new(RoomOptions {
            format: MONO_16,
            loudest,
            groups: 0,
        })
    }

    /// Adds a participant and connects it.
    pub fn join(&mut self, id: u64, options: ParticipantOptions) {
        let id = ParticipantId(id);
        self.room.join(id, options).expect("a place");
        self.room.connect(id, true);
    }

    /// Removes a participant, of which the room reports nothing more.
    pub fn leave(&mut self, id: u64) {
        self.room.leave(ParticipantId(id));
        self.log.hears.remove(&ParticipantId(id));
    }

    /// Sends the next packet of a participant.
    pub fn send(&mut self, id: u64, sound: &[f32]) {
        let level = self.levels.then(|| level::level(sound));
        self.send_as(id, sound, level);
    }

    /// Sends the next packet of a participant, with this level.
    pub fn send_as(&mut self, id: u64, sound: &[f32], level: Option<u8>) {
        let format = self.format;
        let (way, seq) = self
            .senders
            .entry(ParticipantId(id))
            .or_insert_with(|| (Way::Opus(encoder(format)), 0));
        let mut payload = Vec::new();
        let step = match way {
            Way::Opus(encoder) => {
                payload.resize(1_276, 0);
                let length = encoder
                    .encode_float_to_slice(sound, &mut payload)
                    .expect("a packet");
                payload.truncate(length);
                960
            }
            Way::G711(law) => {
                g711::encode(*law, sound, &mut payload);
                160
            }
            Way::G722(encoder) => {
                encoder.encode(sound, &mut payload);
                160
            }
        };
        let packet = IncomingPacket {
            seq: *seq,
            timestamp: *seq as u32 * step,
            payload: &payload,
            content: Content::Codec,
            level,
            arrival: self.now,
        };
        *seq += 1;
        self.room.push(ParticipantId(id), &packet);
    }

    pub fn sends_by(&mut self, id: u64, way: Way) {
        self.senders.insert(ParticipantId(id), (way, 0));
    }

    pub fn send_tone(&mut self, id: u64, hertz: f32, loud: f32) {
        let tone = tone(self.format, hertz, loud, self.log.tick);
        self.send(id, &tone);
    }

    pub fn send_speech(&mut self, id: u64, loud: f32) {
        let speech = speech(self.format, id, loud, self.log.tick);
        self.send(id, &speech);
    }

    /// Runs 20 ms. Listeners decode their packets, or nothing if there is none.
    pub fn tick(&mut self) {
        self.log.tick += 1;
        self.now += FRAME;
        let before = self.log.packets.len();
        match self.threads {
            None => self.room.tick(self.now, &mut self.log),
            Some(lost) => self.split_tick(lost),
        }
        let format = self.format;
        for (id, mix) in &self.log.hears {
            let codec = self.log.open[mix].codec;
            let packet = self.log.packets[before..]
                .iter()
                .find(|packet| packet.mix == *mix);
            let heard = self.heard.entry(*id).or_default();
            let start = heard.len();
            match codec {
                AudioCodec::Opus => {
                    let ear = self.ears.entry(*id).or_insert_with(|| decoder(format));
                    heard.resize(start + format.frame_len(), 0.0);
                    let payload = packet.map_or(&[][..], |packet| &packet.payload);
                    ear.decode_float_to_slice(payload, &mut heard[start..], false)
                        .expect("a packet that can be decoded");
                }
                AudioCodec::Pcma | AudioCodec::Pcmu => {
                    let law = g711::Law::of(codec).expect("a law");
                    g711::decode(law, &packet.expect("a packet").payload, heard);
                }
                AudioCodec::G722 => {
                    let ear = self.wide_ears.entry(*id).or_default();
                    ear.decode(&packet.expect("a packet").payload, heard);
                }
            }
        }
    }

    /// Runs a tick in which other threads encode, but `lost` jobs never come back.
    fn split_tick(&mut self, lost: usize) {
        let mut jobs = Vec::new();
        self.room.mix(self.now, &mut self.log);
        self.room.take_jobs(&mut jobs);
        let threads: Vec<_> = jobs
            .into_iter()
            .skip(lost)
            .map(|mut job| {
                std::thread::spawn(move || {
                    job.run();
                    job
                })
            })
            .collect();
        for thread in threads {
            self.room.put_back(thread.join().expect("a thread"));
        }
        self.room.emit(&mut self.log);
    }

    /// Returns the last samples that a participant has heard.
    pub fn last(&self, id: u64, frames: usize) -> &[f32] {
        let heard = &self.heard[&ParticipantId(id)];
        &heard[heard.len().saturating_sub(frames * self.format.frame_len())..]
    }

    /// Returns the amplitude of a tone in the last frames that a participant has heard.
    pub fn hears(&self, id: u64, hertz: f32) -> f32 {
        amount(self.last(id, 10), self.format.rate, hertz)
    }

    pub fn mix_of(&self, id: u64) -> Option<MixId> {
        self.log.hears.get(&ParticipantId(id)).copied()
    }
}
