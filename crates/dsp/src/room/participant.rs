//! What a room keeps of a participant.

use std::time::Instant;

use crate::level::{self, SILENCE};
use crate::mix::{Candidate, Denoiser, Gains, Standing, TalkWindow, Trust};
use crate::receive::QUIET;
use crate::{
    AudioCodec, Format, IncomingPacket, ParticipantId, ParticipantOptions, Played, Receiver,
    ReceiverOptions, Relayed,
};

/// Ticks without packets after which the receiver is given back: 10 s.
const KEEP: u64 = 500;

/// What a participant has that is only there: a listener has no more.
#[derive(Debug)]
pub(super) struct Participant {
    pub(super) id: ParticipantId,
    pub(super) options: ParticipantOptions,
    pub(super) connected: bool,
    /// Somebody takes what it hears.
    pub(super) hearing: bool,
    pub(super) talk: TalkWindow,
    /// The level of the last packet that told one.
    pub(super) level: u8,
    pub(super) input: Option<Box<Input>>,
    /// The mix that it hears.
    pub(super) hears: Option<usize>,
    /// The mix of all but it.
    pub(super) own: Option<usize>,
    /// The tick when it was in the mix last.
    pub(super) sounded: Option<u64>,
    /// What it hears has to be looked at again.
    pub(super) unsettled: bool,
}

impl Participant {
    pub(super) fn new(id: ParticipantId, options: ParticipantOptions) -> Self {
        Participant {
            id,
            options,
            connected: false,
            hearing: true,
            talk: TalkWindow::default(),
            level: SILENCE,
            input: None,
            hears: None,
            own: None,
            sounded: None,
            unsettled: false,
        }
    }

    /// It may be heard.
    fn is_let_in(&self, room_muted: bool) -> bool {
        let options = &self.options;
        let silenced = options.muted || options.suspended || (room_muted && !options.immune);
        self.connected && !silenced
    }

    /// What its sound is to be multiplied with.
    pub(super) fn gains(&self, room_muted: bool, format: Format) -> Gains {
        let options = &self.options;
        if self.is_let_in(room_muted) {
            Gains::new(options.gain, options.position, format.channels)
        } else {
            Gains::SILENT
        }
    }

    /// Others may hear what it sends as it is.
    pub(super) fn is_relayable(&self) -> bool {
        let options = &self.options;
        options.codec == AudioCodec::Opus
            && options.levels
            && options.gain == 1.0
            && !options.denoise
    }

    pub(super) fn listens(&self) -> bool {
        self.connected && self.hearing && !self.options.suspended
    }

    pub(super) fn push(
        &mut self,
        packet: &IncomingPacket<'_>,
        room_muted: bool,
        format: Format,
        tick: u64,
    ) {
        let level = packet.level.filter(|_| self.options.levels);
        if let Some(level) = level {
            self.level = level;
            // What nobody may hear is no talk: the window fills with silence, and it is told to have stopped.
            if self.is_let_in(room_muted) {
                self.talk.packet(level);
            }
        }
        if self.gains(room_muted, format).is_silent() {
            return;
        }
        let input = self
            .input
            .get_or_insert_with(|| Box::new(Input::new(&self.options, format)));
        input.tells_levels = level.is_some();
        input.pushed = tick;
        input.receiver.push(packet);
    }
}

/// Whether the level of a frame is to be known that its packet does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    No,
    /// It is decoded as if it were heard.
    Play,
    /// It is decoded by itself.
    Measure,
}

/// What becomes of a participant's packets until they are in the mix.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) receiver: Receiver,
    format: Format,
    denoiser: Option<Box<Denoiser>>,
    standing: Standing,
    trust: Trust,
    /// What the last frame ended with.
    gains: Gains,
    sound: Vec<f32>,
    frame: FrameState,
    /// Its packets tell how loud they are.
    tells_levels: bool,
    /// The frame of this tick is quiet, and the one before was.
    quiet: bool,
    was_quiet: bool,
    pushed: u64,
}

/// What the room knows of the frame of this tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameState {
    /// It has this level, as its packet tells.
    Due(Option<u8>),
    /// It was played.
    Played { sound: bool },
    /// Its packet is heard as it is.
    Relayed,
    /// It was passed over, or is over.
    Passed,
}

impl Input {
    fn new(options: &ParticipantOptions, format: Format) -> Self {
        Input {
            receiver: Receiver::new(ReceiverOptions {
                codec: options.codec,
                format,
            }),
            format,
            denoiser: None,
            standing: Standing::default(),
            trust: Trust::default(),
            gains: Gains::SILENT,
            sound: Vec::new(),
            frame: FrameState::Passed,
            tells_levels: false,
            quiet: true,
            was_quiet: true,
            pushed: 0,
        }
    }

    /// It is heard no more and has faded out, or nothing came for long.
    pub(super) fn is_idle(&self, wanted: &Gains, tick: u64) -> bool {
        (wanted.is_silent() && self.gains.is_silent()) || tick.saturating_sub(self.pushed) > KEEP
    }

    pub(super) fn tells_levels(&self) -> bool {
        self.tells_levels
    }

    pub(super) fn is_heard(&self) -> bool {
        self.standing.is_heard()
    }

    pub(super) fn set_heard(&mut self, heard: bool) {
        self.standing.set_heard(heard);
    }

    pub(super) fn candidate(&self, who: usize, all: bool) -> Option<Candidate> {
        self.standing.candidate(who, all)
    }

    /// Looks at the frame of this tick: its level as its packet tells, or else as it is, if it is to be known or it is heard. Tells
    /// whether it was decoded only for that.
    pub(super) fn look(&mut self, now: Instant, probe: Probe, denoise: bool) -> bool {
        if self.tells_levels {
            let level = self.receiver.due_level(now);
            self.was_quiet =
                std::mem::replace(&mut self.quiet, level.is_none_or(|level| level >= QUIET));
            self.frame = FrameState::Due(level);
            self.standing.frame(level.map(|it| self.trust.level(it)));
        } else if probe == Probe::Play || self.standing.is_heard() {
            let sound = self.play(now, denoise);
            let level = if sound {
                level::level(&self.sound)
            } else {
                SILENCE
            };
            self.standing.frame(Some(level));
        } else if probe == Probe::Measure {
            let level = self.receiver.measure(now);
            self.frame = FrameState::Due(level);
            self.standing.frame(Some(level.unwrap_or(SILENCE)));
            return level.is_some();
        } else {
            self.frame = FrameState::Due(None);
        }
        false
    }

    /// It is in the mix of this tick, unless it has nothing to be heard after all.
    pub(super) fn sounds(&self, wanted: Gains) -> bool {
        let brings = match self.frame {
            _ if !self.standing.is_heard() => false,
            FrameState::Due(Some(SILENCE)) => self.receiver.is_relaying(),
            FrameState::Due(None) => !self.tells_levels || !self.receiver.is_silent(),
            FrameState::Due(Some(_))
            | FrameState::Played { .. }
            | FrameState::Passed
            | FrameState::Relayed => true,
        };
        (brings && !wanted.is_silent()) || self.fades()
    }

    /// Takes the packet of this tick as it is, if it can be heard like that: it is put in place of what is in `packet`. It begins after a
    /// quiet frame, and not in the midst of a fade; at any if there is no time. `most` is how large packets may be.
    pub(super) fn relay(
        &mut self,
        now: Instant,
        wanted: Gains,
        (most, hurry): (usize, bool),
        packet: &mut Vec<u8>,
    ) -> Relayed {
        let goes_on = self.receiver.is_relaying() && self.gains == wanted;
        if !self.tells_levels || !self.standing.is_heard() || !(goes_on || self.was_quiet || hurry)
        {
            return Relayed::Refused;
        }
        let relayed = self.receiver.relay(now, most, hurry, packet);
        if relayed != Relayed::Refused {
            self.gains = wanted;
            self.frame = FrameState::Relayed;
        }
        relayed
    }

    pub(super) fn is_relayed(&self) -> bool {
        self.frame == FrameState::Relayed
    }

    /// Decodes the frame, if it is to be in the mix, and applies its gains. Tells whether it was decoded.
    pub(super) fn mix(&mut self, now: Instant, wanted: Gains, denoise: bool) -> bool {
        let wanted = match self.frame {
            _ if !self.standing.is_heard() => Gains::SILENT,
            FrameState::Due(Some(SILENCE)) => Gains::SILENT,
            _ => wanted,
        };
        let nothing = wanted.is_silent() && self.gains.is_silent();
        let sound = match self.frame {
            FrameState::Played { sound } => sound && !nothing,
            FrameState::Due(_) | FrameState::Passed | FrameState::Relayed if nothing => {
                self.receiver.skip(now);
                self.frame = FrameState::Passed;
                self.trust.forget();
                if let Some(denoiser) = &mut self.denoiser {
                    denoiser.pause();
                }
                return false;
            }
            FrameState::Due(_) | FrameState::Passed | FrameState::Relayed => {
                self.play(now, denoise)
            }
        };
        if sound {
            wanted.apply(&self.gains, &mut self.sound, self.format.channels);
        }
        self.gains = wanted;
        self.frame = FrameState::Played { sound };
        true
    }

    /// What it brings to the mix of this tick.
    pub(super) fn contribution(&self) -> Option<&[f32]> {
        (self.frame == FrameState::Played { sound: true }).then_some(&self.sound)
    }

    pub(super) fn fades(&self) -> bool {
        !self.gains.is_silent()
    }

    /// Decodes. Tells whether there is sound.
    fn play(&mut self, now: Instant, denoise: bool) -> bool {
        self.sound.resize(self.format.frame_len(), 0.0);
        let played = self.receiver.play(now, &mut self.sound);
        if let FrameState::Due(Some(told)) = self.frame
            && self.tells_levels
            && played == (Played::Sound { concealed: false })
        {
            let lied = self.trust.compare(told, level::level(&self.sound));
            self.standing.lower(lied);
        }
        let mut sound = played != Played::Silence;
        if denoise && sound && self.denoiser.is_none() {
            // It fails on rates that no room has.
            self.denoiser = Denoiser::new(self.format).ok().map(Box::new);
        }
        if let Some(denoiser) = &mut self.denoiser {
            sound = if sound {
                denoiser.process(&mut self.sound, denoise);
                true
            } else {
                denoiser.end(&mut self.sound)
            };
            if !denoise {
                self.denoiser.take_if(|it| it.is_off());
            }
        }
        self.frame = FrameState::Played { sound };
        sound
    }
}
