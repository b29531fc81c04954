//! The state of a participant.

use std::time::Instant;

use crate::input::QUIET;
use crate::level::{self, SILENCE};
use crate::mix::{Candidate, Denoiser, Gains, Standing, TalkWindow, Trust};
use crate::{
    AudioCodec, Format, IncomingPacket, ParticipantId, ParticipantOptions, Played, Receiver,
    ReceiverOptions, Relayed,
};

/// The ticks without packets after which the receiver is released: 10 s.
const KEEP: u64 = 500;

/// A participant. A listener has no more than this.
#[derive(Debug)]
pub(super) struct Participant {
    pub(super) id: ParticipantId,
    pub(super) options: ParticipantOptions,
    pub(super) connected: bool,
    /// Whether its mix has a receiver.
    pub(super) hearing: bool,
    pub(super) talk: TalkWindow,
    /// The last level in its packets.
    pub(super) level: u8,
    pub(super) input: Option<Box<Input>>,
    /// The mix that it hears.
    pub(super) hears: Option<usize>,
    /// The mix without it.
    pub(super) own: Option<usize>,
    /// The last tick in which it was in the mix.
    pub(super) sounded: Option<u64>,
    /// Whether its mix has to be checked again.
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

    /// Whether it may be heard.
    fn is_let_in(&self, room_muted: bool) -> bool {
        let options = &self.options;
        let silenced = options.muted || options.suspended || (room_muted && !options.immune);
        self.connected && !silenced
    }

    /// Returns the gains of its audio.
    pub(super) fn gains(&self, room_muted: bool, format: Format) -> Gains {
        let options = &self.options;
        if self.is_let_in(room_muted) {
            Gains::new(options.gain, options.position, format.channels)
        } else {
            Gains::SILENT
        }
    }

    /// Whether its packets may be relayed unchanged.
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
            // Packets of a participant that may not be heard are no talking: the window fills with
            // silence.
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
        input.reports_levels = level.is_some();
        input.pushed = tick;
        input.receiver.push(packet);
    }
}

/// Whether the level of a frame is measured if its packet has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    No,
    /// Decodes it as if it were heard.
    Play,
    /// Decodes it separately.
    Measure,
}

/// The input of a participant: from its packets to the mix.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) receiver: Receiver,
    format: Format,
    denoiser: Option<Box<Denoiser>>,
    standing: Standing,
    trust: Trust,
    /// The gains at the end of the last frame.
    gains: Gains,
    sound: Vec<f32>,
    frame: FrameState,
    /// Whether its packets carry levels.
    reports_levels: bool,
    /// Whether the frame of this tick is quiet, and the one before was.
    quiet: bool,
    was_quiet: bool,
    pushed: u64,
}

/// The state of the frame of this tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameState {
    /// It has this level, by its packet.
    Due(Option<u8>),
    /// It was decoded.
    Played { sound: bool },
    /// Its packet is relayed.
    Relayed,
    /// It was skipped, or is over.
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
            reports_levels: false,
            quiet: true,
            was_quiet: true,
            pushed: 0,
        }
    }

    /// Whether it has faded out, or had no packets for long.
    pub(super) fn is_idle(&self, wanted: &Gains, tick: u64) -> bool {
        (wanted.is_silent() && self.gains.is_silent()) || tick.saturating_sub(self.pushed) > KEEP
    }

    pub(super) fn reports_levels(&self) -> bool {
        self.reports_levels
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

    /// Prepares the frame of this tick: reads its level from the packet, or measures it if needed
    /// or if it is heard. Returns whether it was decoded only for that.
    pub(super) fn look(&mut self, now: Instant, probe: Probe, denoise: bool) -> bool {
        if self.reports_levels {
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

    /// Whether it is in the mix of this tick.
    pub(super) fn sounds(&self, wanted: Gains) -> bool {
        let brings = match self.frame {
            _ if !self.standing.is_heard() => false,
            FrameState::Due(Some(SILENCE)) => self.receiver.is_relaying(),
            FrameState::Due(None) => !self.reports_levels || !self.receiver.is_silent(),
            FrameState::Due(Some(_))
            | FrameState::Played { .. }
            | FrameState::Passed
            | FrameState::Relayed => true,
        };
        (brings && !wanted.is_silent()) || self.fades()
    }

    /// Takes the packet of this tick unchanged into `packet`, if possible. Relaying starts after a
    /// quiet frame and not during a fade, or at any packet after skipped frames. `most` is the
    /// greatest size of packets.
    pub(super) fn relay(
        &mut self,
        now: Instant,
        wanted: Gains,
        most: usize,
        hurry: bool,
        packet: &mut Vec<u8>,
    ) -> Relayed {
        let goes_on = self.receiver.is_relaying() && self.gains == wanted;
        if !self.reports_levels
            || !self.standing.is_heard()
            || !(goes_on || self.was_quiet || hurry)
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

    /// Decodes the frame if it is to be in the mix, and applies its gains. Returns whether it was
    /// decoded.
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

    /// Returns its audio in the mix of this tick.
    pub(super) fn contribution(&self) -> Option<&[f32]> {
        (self.frame == FrameState::Played { sound: true }).then_some(&self.sound)
    }

    pub(super) fn fades(&self) -> bool {
        !self.gains.is_silent()
    }

    /// Decodes the frame. Returns whether there is audio.
    fn play(&mut self, now: Instant, denoise: bool) -> bool {
        self.sound.resize(self.format.frame_len(), 0.0);
        let played = self.receiver.play(now, &mut self.sound);
        if let FrameState::Due(Some(level)) = self.frame
            && self.reports_levels
            && played == (Played::Sound { concealed: false })
        {
            let lied = self.trust.compare(level, level::level(&self.sound));
            self.standing.lower(lied);
        }
        let mut sound = played != Played::Silence;
        if denoise && sound && self.denoiser.is_none() {
            // It fails only for rates that rooms do not have.
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
