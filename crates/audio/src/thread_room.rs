//! A room on its thread.

use std::collections::HashMap;
use std::time::Instant;

use portunus_dsp::{IncomingPacket, ParticipantState, Room, RoomStats};
use portunus_media::{RouteOptions, SourceRef, TappedPacket};
use tokio::sync::mpsc;

use crate::clocks::Clocks;
use crate::command::Command;
use crate::leg::codec;
use crate::media_access::MediaAccess;
use crate::outbox::Outbox;
use crate::outputs::{Outgoing, Outputs};
use crate::recording::MixFile;
use crate::splitter::{Cost, Helped, Splitter};
use crate::taps::{Tap, Tapped};
use crate::{
    AudioError, AudioEvent, Out, ParticipantId, ParticipantOptions, ParticipantStats, RecordingId,
    RoomOptions,
};

/// The frames for which an idle room is still mixed. By then it has released its encoders and
/// reported that.
const IDLE: u32 = 600;

/// A room with its inputs and outputs.
#[derive(Debug)]
pub(crate) struct ThreadRoom {
    room: Room,
    people: HashMap<ParticipantId, Person>,
    outputs: Outputs,
    counted: RoomStats,
    cost: Cost,
    idle: u32,
    #[cfg(test)]
    has_fault: bool,
}

/// The source and the output of a participant.
struct ParticipantMedia {
    input: Option<SourceRef>,
    output: Option<Out>,
}

/// The input of a participant.
#[derive(Debug)]
struct Person {
    tap: Option<Tapped>,
    /// Whether its talking is reported.
    tells_talking: bool,
}

impl ThreadRoom {
    pub(crate) fn new(
        options: RoomOptions,
        clocks: Clocks,
        events: mpsc::Sender<AudioEvent>,
    ) -> Self {
        Self {
            room: Room::new(options),
            people: HashMap::new(),
            outputs: Outputs::new(clocks, Outbox::new(events)),
            counted: RoomStats::default(),
            cost: Cost::default(),
            idle: 0,
            #[cfg(test)]
            has_fault: false,
        }
    }

    /// The number of participants.
    pub(crate) fn len(&self) -> usize {
        self.people.len()
    }

    /// Keeps the room awake after a command.
    pub(crate) fn stay_awake(&mut self) {
        self.idle = 0;
    }

    /// Whether nothing will happen before the next command.
    pub(crate) fn may_sleep(&self) -> bool {
        self.idle >= IDLE && self.outputs.is_quiet()
    }

    /// Whether anybody hears it.
    pub(crate) fn is_heard(&self) -> bool {
        !self.room.is_idle()
    }

    /// Skips frames.
    pub(crate) fn skip(&mut self, frames: u64) {
        self.room.skip(frames);
        self.outputs.skip(frames);
    }

    /// Takes a packet of a participant's source.
    pub(crate) fn push(&mut self, tap: Tap, packet: &TappedPacket) {
        let Some(content) = tap.content(packet.codec()) else {
            return;
        };
        let incoming = IncomingPacket {
            seq: packet.seq().0,
            timestamp: packet.timestamp(),
            payload: packet.payload(),
            content,
            level: packet.level(),
            arrival: packet.arrival(),
        };
        self.room.push(tap.participant, &incoming);
    }

    /// Mixes a frame. Returns the work for it, and the part of other threads.
    pub(crate) fn tick(
        &mut self,
        now: Instant,
        splitter: &mut Splitter,
        access: &mut MediaAccess<'_>,
    ) -> (RoomStats, Helped) {
        #[cfg(test)]
        assert!(!self.has_fault, "a fault of the room, for a test");
        self.room.mix(now, &mut self.outputs.with(access));
        let helped = splitter.encode(&mut self.room, &mut self.cost);
        self.outputs.inhabited = self.room.has_participants();
        self.room.emit(&mut self.outputs.with(access));
        self.outputs.end_frame(&mut self.room, access);
        self.idle = match self.room.is_idle() {
            true => self.idle.saturating_add(1),
            false => 0,
        };
        let stats = self.room.stats();
        let before = std::mem::replace(&mut self.counted, stats);
        let done = RoomStats {
            ticks: stats.ticks - before.ticks,
            decoded: stats.decoded - before.decoded,
            relayed: stats.relayed - before.relayed,
            encoded: stats.encoded - before.encoded,
            ..RoomStats::default()
        };
        (done, helped)
    }

    /// Returns the number of events that were replaced since the last call.
    pub(crate) fn take_merged(&mut self) -> u64 {
        self.outputs.events.take_merged()
    }

    /// Executes a command. `place` is the room's index on its thread.
    pub(crate) fn take_command(
        &mut self,
        place: usize,
        command: Command,
        access: &mut MediaAccess<'_>,
    ) {
        match command {
            Command::Open { .. } | Command::Close => {}
            #[cfg(test)]
            Command::Fault { .. } => self.has_fault = true,
            Command::Join {
                participant,
                options,
                input,
                output,
            } => {
                let media = ParticipantMedia { input, output };
                self.join(place, participant, *options, media, access);
            }
            Command::Set {
                participant,
                options,
            } => self.set(participant, *options, access),
            Command::Connect {
                participant,
                connected,
            } => self.room.connect(participant, connected),
            Command::Leave { participant } => {
                self.leave(participant, access);
                self.outputs.forget(participant, access);
            }
            Command::Mute(muted) => self.room.set_muted(muted),
            Command::Announce {
                announcement,
                group,
                file,
                reply,
            } => {
                if self.outputs.events.is_full() {
                    let _ = reply.send(Err(AudioError::Behind));
                    return;
                }
                let is_new = !self.outputs.announcements.has(announcement);
                let source = self.outputs.announcements.begin(announcement, file);
                let started = self.room.announce(announcement, group, source);
                if started.is_err() && is_new {
                    self.outputs.announcements.forget(announcement);
                }
                // The announcement is heard even if nobody waits for the reply.
                let _ = reply.send(started.map_err(AudioError::from));
            }
            Command::StopAnnouncement(announcement) => {
                self.outputs.announcements.stop(announcement);
                self.room.stop_announcement(announcement);
            }
            Command::Record {
                recording,
                file,
                reply,
            } => {
                let started = self.record(recording, file);
                let _ = reply.send(started);
            }
            Command::StopRecording => self.outputs.stop_recording(&mut self.room),
            Command::Mix {
                id,
                mixture,
                encoding,
                ingest,
                always_on,
            } => match self.room.subscribe(mixture, encoding, always_on) {
                Ok(mix) => self.outputs.subscribe(id, mix, ingest, always_on),
                Err(error) => tracing::warn!(%error, "a mix is not made"),
            },
            Command::DropMix { id } => {
                if let Some((mix, always_on)) = self.outputs.unsubscribe(id) {
                    self.room.unsubscribe(mix, always_on);
                }
            }
            Command::Stats { participant, reply } => {
                if let Some(state) = self.room.participant(participant) {
                    let person = self.people.get(&participant);
                    let tells = person.is_some_and(|person| person.tells_talking);
                    let _ = reply.send(stats(&state, tells));
                }
            }
        }
    }

    fn join(
        &mut self,
        place: usize,
        participant: ParticipantId,
        options: ParticipantOptions,
        media: ParticipantMedia,
        access: &mut MediaAccess<'_>,
    ) {
        let talked = self.room.participant(participant);
        let talked = talked.is_some_and(|state| state.talking);
        self.leave(participant, access);
        if talked {
            // An earlier participant with this number may have talked, and its silence would not be
            // reported.
            self.outputs.events.push(AudioEvent::Talking {
                participant,
                talking: false,
            });
        }
        let (sends, tells_talking) = (codec(options.codec), options.talk.is_some());
        if let Err(error) = self.room.join(participant, options) {
            tracing::warn!(%error, "a participant is not let in");
            self.outputs.forget(participant, access);
            return;
        }
        let tap = media.input.map(|source| {
            let key = access.taps.add(Tap {
                room: place,
                participant,
                codec: sends,
            });
            let options = RouteOptions::default();
            let route = access.media.collect(source, options, access.collector, key);
            Tapped { route, key }
        });
        self.people
            .insert(participant, Person { tap, tells_talking });
        self.room.set_hearing(participant, media.output.is_some());
        // A participant that keeps its output hears one stream.
        match media.output {
            Some(output) => self.outputs.set(participant, Outgoing::new(output), access),
            None => self.outputs.forget(participant, access),
        }
    }

    fn set(
        &mut self,
        participant: ParticipantId,
        options: ParticipantOptions,
        access: &mut MediaAccess<'_>,
    ) {
        let Some(person) = self.people.get_mut(&participant) else {
            return;
        };
        person.tells_talking = options.talk.is_some();
        if let Some(tap) = person.tap {
            access.taps.set_codec(tap.key, codec(options.codec));
        }
        if let Err(error) = self.room.set(participant, options) {
            tracing::warn!(%error, "a participant is not changed");
        }
    }

    /// Removes the input of a participant. Its output is removed separately.
    fn leave(&mut self, participant: ParticipantId, access: &mut MediaAccess<'_>) {
        let Some(person) = self.people.remove(&participant) else {
            return;
        };
        self.room.leave(participant);
        self.outputs.events.forget(participant);
        if let Some(tap) = person.tap {
            access.media.remove_route(tap.route);
            access.taps.remove(tap.key);
        }
    }

    fn record(&mut self, recording: RecordingId, file: MixFile) -> Result<String, AudioError> {
        if self.outputs.events.is_full() {
            return Err(AudioError::Behind);
        }
        let name = file.name();
        self.outputs.record(recording, file, &mut self.room)?;
        Ok(name)
    }

    /// Ends the room with all that workers have of it.
    pub(crate) fn end(&mut self, access: &mut MediaAccess<'_>, by_fault: bool) {
        for participant in self.people.keys().copied().collect::<Vec<_>>() {
            self.leave(participant, access);
        }
        self.outputs.end(&mut self.room, access, by_fault);
    }
}

/// Converts the statistics for plugins.
fn stats(state: &ParticipantState, tells_talking: bool) -> ParticipantStats {
    let receiver = state.receiver.unwrap_or_default();
    ParticipantStats {
        delay: std::time::Duration::from_millis(receiver.delay_ms.into()),
        target: std::time::Duration::from_millis(receiver.target_ms.into()),
        level: (state.level < portunus_dsp::level::SILENCE || state.heard).then_some(state.level),
        talking: tells_talking.then_some(state.talking),
        heard: state.heard,
        received: receiver.received,
        recovered: receiver.recovered,
        late: receiver.late,
        refused: receiver.invalid + receiver.duplicate + receiver.overflow,
        concealed: receiver.concealed,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use portunus_dsp::{
        AudioCodec, Channels, Content, Encoding, FRAME, Format, SampleRate, TalkOptions,
    };
    use portunus_media::{Collector, MediaPlane};

    use super::*;
    use crate::feeds::Feeds;
    use crate::splitter::Pool;
    use crate::taps::Taps;

    #[test]
    fn who_begins_anew_is_told_to_talk_no_more_after_all_that_was_told_before() {
        let (media, ..) = MediaPlane::detached();
        let clocks = Clocks {
            opus: media.shared_clock(),
            g711: media.shared_clock(),
        };
        let (events, mut told) = mpsc::channel(16);
        let format = Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        };
        let options = RoomOptions {
            format,
            loudest: 8,
            groups: 0,
        };
        let mut room = ThreadRoom::new(options, clocks, events);
        let (collector, mut feeds) = (Collector::new(16), Feeds::new(&media));
        let mut taps = Taps::default();
        let mut access = MediaAccess {
            media: &media,
            collector: &collector,
            feeds: &mut feeds,
            taps: &mut taps,
        };
        let codec = AudioCodec::Pcmu;
        let options = ParticipantOptions {
            codec,
            muted: false,
            suspended: false,
            immune: false,
            gain: 1.0,
            position: 0.5,
            group: None,
            denoise: false,
            levels: true,
            talk: Some(TalkOptions {
                packets: 5,
                level: 40,
            }),
            encoding: Encoding {
                codec,
                bitrate: None,
                complexity: 1,
                fec: false,
                expected_loss: 0,
            },
        };
        let id = ParticipantId(1);
        let mut splitter = Splitter::new(std::sync::Arc::new(Pool::new(1)));
        let join = |room: &mut ThreadRoom, access: &mut MediaAccess<'_>| {
            let media = ParticipantMedia {
                input: None,
                output: None,
            };
            room.join(0, id, options.clone(), media, access);
            room.room.connect(id, true);
        };
        join(&mut room, &mut access);
        let start = Instant::now();
        for n in 0..20_u32 {
            let now = start + FRAME * n;
            let packet = IncomingPacket {
                seq: n.into(),
                timestamp: n * 160,
                payload: &[0x20; 160],
                content: Content::Codec,
                level: Some(10),
                arrival: now,
            };
            room.room.push(id, &packet);
            room.tick(now, &mut splitter, &mut access);
        }
        // That it talks was not taken yet.
        join(&mut room, &mut access);
        join(&mut room, &mut access);
        let mut all = Vec::new();
        while let Ok(AudioEvent::Talking { talking, .. }) = told.try_recv() {
            all.push(talking);
        }
        assert_eq!(all, [true, false]);
    }
}
