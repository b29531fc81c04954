//! The work of a room every 20 ms.

use std::time::Instant;

use super::mixes::{Of, Tick};
use super::participant::Probe;
use super::sounds::Sounds;
use super::{AnnouncementState, EncodeJob, Output, Room};
use crate::mix::{Gains, choose};

/// The ticks for which a participant keeps its own mix after it was heard: its last words may still
/// be in an encoder, and it may continue soon.
const HANGOVER: u64 = 15;

/// If too many senders have no levels in their packets, each is decoded once in this many ticks.
const PROBE: u64 = 4;

/// The limit of frames that prepare encoders in a tick. If many start to talk at once, some get
/// their own mix some ticks later.
const WARMING: usize = 64;

impl Room {
    /// Mixes, encodes and emits 20 ms.
    pub fn tick(&mut self, now: Instant, out: &mut impl Output) {
        self.mix(now, out);
        self.emit(out);
    }

    /// The first part of a tick: decodes, mixes, and reports everything but packets.
    pub fn mix(&mut self, now: Instant, out: &mut impl Output) {
        self.tick += 1;
        self.stats.ticks += 1;
        self.look(now, out);
        self.choose();
        self.gather(now);
        self.announcements(out);
        self.route(out);
        self.prepare();
        self.report_sounds(out);
    }

    /// The second part: moves the jobs of this tick to `jobs`. The remaining ones are run by
    /// [`emit`](Room::emit).
    pub fn take_jobs(&mut self, jobs: &mut Vec<EncodeJob>) {
        self.mixes.take_jobs(jobs);
    }

    /// Takes back a job that was run. Without it, its mix has no packets until the next tick makes
    /// a new encoder.
    pub fn put_back(&mut self, job: EncodeJob) {
        self.mixes.put_back(job);
    }

    /// The last part: runs the remaining jobs, and emits the packets.
    pub fn emit(&mut self, out: &mut impl Output) {
        self.mixes.encode();
        let time = self.tick.wrapping_add(self.left_out);
        self.stats.failed += self.mixes.emit(time, &self.relay.packet, out);
    }

    /// Determines who sends, and how loud.
    fn look(&mut self, now: Instant, out: &mut impl Output) {
        let (muted, format, tick) = (self.muted, self.options.format, self.tick);
        let all = self.options.loudest == 0;
        // Senders without levels are decoded all the time, unless there are too many.
        let probe_all = all || self.unknown <= self.options.loudest;
        self.unknown = 0;
        self.sending.clear();
        self.candidates.clear();
        for (place, participant) in &mut self.participants {
            if let Some(options) = &participant.options.talk
                && participant.options.levels
                && let Some(talking) = participant.talk.frame(options)
            {
                out.talking(participant.id, talking);
            }
            if participant.input.is_none() {
                continue;
            }
            let wanted = participant.gains(muted, format);
            let denoise = participant.options.denoise;
            participant
                .input
                .take_if(|input| input.is_idle(&wanted, tick));
            if let Some(input) = &mut participant.input {
                self.sending.push(place);
                let probe = if probe_all {
                    Probe::Play
                } else if (tick + place as u64).is_multiple_of(PROBE) {
                    Probe::Measure
                } else {
                    Probe::No
                };
                if input.look(now, probe, denoise) {
                    self.stats.decoded += 1;
                }
                if !input.reports_levels() || input.is_heard() {
                    self.unknown += 1;
                }
                if !wanted.is_silent() {
                    self.candidates.extend(input.candidate(place, all));
                }
            }
        }
    }

    /// Chooses who is heard.
    fn choose(&mut self) {
        choose(&mut self.candidates, self.options.loudest);
        for candidate in &self.candidates {
            if let Some(participant) = self.participants.get_mut(candidate.who)
                && let Some(input) = &mut participant.input
            {
                input.set_heard(candidate.heard);
            }
        }
    }

    /// Decodes and adds up the participants that are heard.
    fn gather(&mut self, now: Instant) {
        self.everyone.begin(true);
        for (number, group) in self.groups.iter_mut().enumerate() {
            let listened = self
                .listened
                .iter()
                .any(|listened| listened.group == Some(number));
            group.begin(listened || self.mixes.has_group(number));
        }
        let relayed = self.relay(now);
        for place in &self.sending {
            let Some(participant) = self.participants.get_mut(*place) else {
                continue;
            };
            let wanted = participant.gains(self.muted, self.options.format);
            let group = participant.options.group;
            let denoise = participant.options.denoise;
            let Some(input) = &mut participant.input else {
                continue;
            };
            if relayed == Some(*place) {
                participant.sounded = Some(self.tick);
                continue;
            }
            if input.mix(now, wanted, denoise) {
                self.stats.decoded += 1;
            } else {
                self.stats.skipped += 1;
            }
            if let Some(sound) = input.contribution() {
                participant.sounded = Some(self.tick);
                self.everyone.add(sound);
                if let Some(group) = group.and_then(|group| self.groups.get_mut(group)) {
                    group.add(sound);
                }
            }
        }
        for departing in &mut self.departing {
            let input = &mut departing.input;
            // It is not measured.
            let _ = input.look(now, Probe::No, departing.denoise);
            input.mix(now, Gains::SILENT, departing.denoise);
            if let Some(sound) = input.contribution() {
                self.everyone.add(sound);
                if let Some(group) = departing.group.and_then(|group| self.groups.get_mut(group)) {
                    group.add(sound);
                }
            }
        }
        self.departing.clear();
    }

    fn announcements(&mut self, out: &mut impl Output) {
        let frame = self.options.format.frame_len();
        self.announcements.retain_mut(|announcement| {
            let news = announcement.tick(frame);
            if let Some(sound) = announcement.sound() {
                self.everyone.add(sound);
                if let Some(group) = announcement
                    .group
                    .and_then(|group| self.groups.get_mut(group))
                {
                    group.add(sound);
                }
            }
            if let Some(news) = news {
                out.announcement(announcement.id, news);
            }
            !matches!(
                news,
                Some(AnnouncementState::Ended | AnnouncementState::Failed)
            )
        });
    }

    /// Determines the mix of each participant.
    fn route(&mut self, out: &mut impl Output) {
        let tick = self.tick;
        let mut warming = WARMING;
        for (place, participant) in &mut self.participants {
            let own = participant
                .sounded
                .is_some_and(|sounded| tick - sounded <= HANGOVER);
            let hears_own = participant.hears.is_some() && participant.hears == participant.own;
            if own == hears_own && !participant.unsettled {
                continue;
            }
            participant.unsettled = false;
            let encoding = participant.options.encoding;
            let hears = if !participant.listens() {
                None
            } else if own {
                let key = *participant.own.get_or_insert_with(|| {
                    self.mixes.find_or_open(Of::AllBut(place), encoding, tick)
                });
                let unready = self.mixes.unready(key, tick);
                let shared = participant
                    .hears
                    .is_some_and(|hears| self.mixes.is(hears, Of::Everyone, encoding));
                if unready > warming && shared {
                    // It hears itself for one more tick, because the encoder is not prepared yet.
                    continue;
                }
                warming = warming.saturating_sub(unready);
                Some(key)
            } else {
                participant
                    .hears
                    .filter(|hears| self.mixes.is(*hears, Of::Everyone, encoding))
                    .or_else(|| Some(self.mixes.find_or_open(Of::Everyone, encoding, tick)))
            };
            if hears != participant.hears {
                self.mixes.listen(participant.hears, hears);
                participant.hears = hears;
                self.routed.push((participant.id, hears));
            }
        }
        let participants = &mut self.participants;
        self.mixes.report(tick, out, |of, key| {
            if let Of::AllBut(owner) = of
                && let Some(participant) = participants.get_mut(owner)
            {
                participant.own = participant.own.filter(|own| *own != key);
            }
        });
        for (participant, hears) in self.routed.drain(..) {
            out.hears(participant, hears.and_then(|key| self.mixes.id(key)));
        }
    }

    /// Prepares the encoders.
    fn prepare(&mut self) {
        self.rendered.clear();
        self.everyone.render(&mut self.rendered);
        self.bridge();
        let mut tick = Tick {
            number: self.tick,
            inhabited: !self.participants.is_empty() || !self.announcements.is_empty(),
            history: &self.history,
            relayed: self.relay.relayed(),
            warming: WARMING,
            encoded: 0,
            warmed: 0,
            silent: 0,
        };
        let sounds = Sounds {
            everyone: &self.everyone,
            groups: &self.groups,
            participants: &self.participants,
        };
        self.mixes.prepare(&sounds, &mut tick);
        self.stats.encoded += tick.encoded + tick.warmed;
        self.stats.warmed += tick.warmed;
        self.stats.silent += tick.silent;
        if self.relay.of.is_none() {
            self.history.push(&self.rendered);
        }
    }

    /// Emits the audio that was asked for.
    fn report_sounds(&mut self, out: &mut impl Output) {
        if self.participants.is_empty() {
            return;
        }
        for listened in &mut self.listened {
            let sum = match listened.group {
                None => Some(&self.everyone),
                Some(group) => self.groups.get(group),
            };
            listened.sound.clear();
            if let Some(sum) = sum {
                sum.render(&mut listened.sound);
                listened.limiter.process(&mut listened.sound);
                out.sound(listened.group, &listened.sound);
            }
        }
    }
}
