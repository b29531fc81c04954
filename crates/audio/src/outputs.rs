//! Where what a room makes goes: its mixes to ingests of workers, routes from these to participants, the rest to
//! whoever holds the room.

use std::collections::HashMap;
use std::sync::Arc;

use portunus_dsp::{
    AnnouncementId, AnnouncementState, AudioCodec, Encoding, MixId, Output, ParticipantId, Room,
};
use portunus_media::{IngestId, RouteId, RouteOptions};
use portunus_rtp::header::FIXED_HEADER_LEN;
use portunus_rtp::{Fields, Pt, Ssrc, header, write_header};
use smallvec::SmallVec;

use crate::announcement::Announcements;
use crate::command::Clocks;
use crate::leg::mix_ingest;
use crate::outbox::Outbox;
use crate::recording::{MixFile, Recording};
use crate::thread::Way;
use crate::{AudioError, AudioEvent, Out, RecordingId};

/// Recordings that were stopped and are still written, at most: each has a thread.
const UNWRITTEN: usize = 8;
/// The longest packet of a mix.
const MAX_PACKET: usize = 1_500;

/// The outputs of a room. What holds: a participant that hears a mix is counted as a listener of that mix's stream on
/// the worker of its output.
#[derive(Debug)]
pub(crate) struct Outputs {
    clocks: Clocks,
    pub(crate) events: Outbox,
    pub(crate) announcements: Announcements,
    mixes: HashMap<MixId, Mix>,
    outgoing: HashMap<ParticipantId, Outgoing>,
    subscriptions: HashMap<u64, Subscription>,
    recording: Option<Recording>,
    /// Somebody is in the room: it is recorded.
    pub(crate) inhabited: bool,
    /// Those before, which are still written.
    stopped: Vec<Recording>,
    packet: Vec<u8>,
    /// Mixes that ended in this frame.
    ended: Vec<IngestId>,
}

/// A mix with its streams.
#[derive(Debug)]
struct Mix {
    encoding: Encoding,
    ssrc: Ssrc,
    /// One on each worker that has somebody to hear it.
    streams: SmallVec<[Stream; 2]>,
    /// For those who are no participants.
    subscribed: SmallVec<[(u64, Stream); 1]>,
}

/// A mix as a worker has it: an ingest.
#[derive(Debug)]
struct Stream {
    ingest: IngestId,
    sequence: u16,
    listeners: usize,
}

/// A mix that somebody has who is no participant.
#[derive(Debug)]
struct Subscription {
    mix: MixId,
    ingest: IngestId,
    always_on: bool,
}

/// Where what a participant hears goes.
#[derive(Debug)]
pub(crate) struct Outgoing {
    to: Out,
    /// To a track: once it has heard anything.
    route: Option<RouteId>,
    is_open: bool,
    /// By plain RTP: what the leg's own route is from. Another room may have had it go on from there.
    from: Option<IngestId>,
    hears: Option<MixId>,
}

impl Outgoing {
    pub(crate) fn new(to: Out) -> Self {
        Self {
            to,
            route: None,
            is_open: false,
            from: None,
            hears: None,
        }
    }
}

impl Outgoing {
    /// What is heard comes from this ingest, or not at all.
    fn go_on(&mut self, ingest: Option<IngestId>, way: &mut Way<'_>) {
        let track = match &self.to {
            Out::Track(track) => *track,
            Out::Leg(leg) => {
                match (self.from, ingest.unwrap_or(leg.rest())) {
                    (Some(before), ingest) => way.feeds.redirect_from(leg.route(), before, ingest),
                    (None, ingest) => way.feeds.redirect(leg.route(), ingest),
                }
                self.from = Some(ingest.unwrap_or(leg.rest()));
                return;
            }
        };
        match (ingest, self.route) {
            (Some(ingest), Some(route)) => {
                if !std::mem::replace(&mut self.is_open, true) {
                    way.media.set_route(route, gate(true));
                }
                way.feeds.redirect(route, ingest);
            }
            (Some(ingest), None) => {
                self.is_open = true;
                self.route = Some(way.media.route(ingest, track, gate(true)));
            }
            (None, Some(route)) => {
                if std::mem::replace(&mut self.is_open, false) {
                    way.media.set_route(route, gate(false));
                }
            }
            (None, None) => {}
        }
    }
}

impl Out {
    fn worker(&self) -> usize {
        match self {
            Out::Track(track) => track.peer.worker(),
            Out::Leg(leg) => leg.worker(),
        }
    }

    fn is(&self, other: &Out) -> bool {
        match (self, other) {
            (Out::Track(one), Out::Track(other)) => one == other,
            (Out::Leg(one), Out::Leg(other)) => Arc::ptr_eq(one, other),
            (Out::Track(_), Out::Leg(_)) | (Out::Leg(_), Out::Track(_)) => false,
        }
    }
}

impl Outputs {
    pub(crate) fn new(clocks: Clocks, events: Outbox) -> Self {
        Self {
            clocks,
            events,
            announcements: Announcements::default(),
            mixes: HashMap::new(),
            outgoing: HashMap::new(),
            subscriptions: HashMap::new(),
            recording: None,
            inhabited: false,
            stopped: Vec::new(),
            packet: Vec::with_capacity(MAX_PACKET),
            ended: Vec::new(),
        }
    }

    /// What takes the frame of a room.
    pub(crate) fn with<'a, 'w>(&'a mut self, way: &'a mut Way<'w>) -> Taking<'a, 'w> {
        Taking { outputs: self, way }
    }

    /// A participant hears by this way from now on; if it is the one that it has, that goes on.
    pub(crate) fn set(&mut self, participant: ParticipantId, out: Outgoing, way: &mut Way<'_>) {
        let known = self.outgoing.get(&participant);
        if known.is_some_and(|known| known.to.is(&out.to)) {
            self.hears(participant, None, way);
            return;
        }
        self.forget(participant, way);
        self.outgoing.insert(participant, out);
    }

    /// A participant hears nothing any more.
    pub(crate) fn forget(&mut self, participant: ParticipantId, way: &mut Way<'_>) {
        let Some(out) = self.outgoing.remove(&participant) else {
            return;
        };
        self.count_listener(&out, out.hears, false);
        if let Some(route) = out.route {
            way.media.remove_route(route);
        }
        if let Out::Leg(leg) = &out.to
            && let Some(from) = out.from
        {
            way.feeds.redirect_from(leg.route(), from, leg.rest());
        }
    }

    /// Somebody who is no participant has a mix.
    pub(crate) fn subscribe(&mut self, id: u64, mix: MixId, ingest: IngestId, always_on: bool) {
        let subscription = Subscription {
            mix,
            ingest,
            always_on,
        };
        self.subscriptions.insert(id, subscription);
        // If it is not open yet, it is told to be in the next frame.
        if let Some(mix) = self.mixes.get_mut(&mix) {
            mix.subscribed.push((id, Stream::new(ingest)));
        }
    }

    /// Nobody has it any more; gives what it was.
    pub(crate) fn unsubscribe(&mut self, id: u64) -> Option<(MixId, bool)> {
        let subscription = self.subscriptions.remove(&id)?;
        if let Some(mix) = self.mixes.get_mut(&subscription.mix) {
            mix.subscribed.retain(|(other, _)| *other != id);
        }
        Some((subscription.mix, subscription.always_on))
    }

    /// Nothing is to be told, now or soon.
    pub(crate) fn is_quiet(&self) -> bool {
        self.events.is_empty() && self.stopped.is_empty()
    }

    /// Records from now on.
    pub(crate) fn record(
        &mut self,
        id: RecordingId,
        file: MixFile,
        room: &mut Room,
    ) -> Result<(), AudioError> {
        if self.recording.is_some() {
            return Err(AudioError::Recorded);
        }
        if self.stopped.len() >= UNWRITTEN {
            return Err(AudioError::Unwritten);
        }
        self.recording = Some(Recording::begin(id, file, room)?);
        Ok(())
    }

    /// Another may begin at once, though this one is still written.
    pub(crate) fn stop_recording(&mut self, room: &mut Room) {
        if let Some(mut recording) = self.recording.take() {
            recording.stop(room);
            self.stopped.push(recording);
        }
    }

    /// The frame is over.
    pub(crate) fn end_frame(&mut self, room: &mut Room, way: &mut Way<'_>) {
        self.events.flush();
        for ingest in self.ended.drain(..) {
            way.feeds.remove(ingest);
        }
        if let Some(recording) = &mut self.recording
            && self.inhabited
        {
            recording.end_frame();
        }
        self.watch_recordings(room);
    }

    /// There was no time for so many frames.
    pub(crate) fn skip(&mut self, frames: u64) {
        if let Some(recording) = &mut self.recording
            && self.inhabited
        {
            recording.miss(u32::try_from(frames).unwrap_or(u32::MAX));
        }
    }

    /// Tells of recordings that have ended.
    fn watch_recordings(&mut self, room: &mut Room) {
        // One that cannot be written ends by itself.
        if self.recording.as_ref().is_some_and(Recording::has_ended) {
            self.stop_recording(room);
        }
        for ended in self.stopped.extract_if(.., |it| it.has_ended()) {
            self.events.tell(ended.told());
        }
    }

    /// The room ends. Unless that is by a fault, of which whoever holds it learns by the end of events, it is still told what becomes of
    /// recordings.
    pub(crate) fn end(&mut self, room: &mut Room, way: &mut Way<'_>, by_fault: bool) {
        for participant in self.outgoing.keys().copied().collect::<Vec<_>>() {
            self.forget(participant, way);
        }
        for (_, mix) in self.mixes.drain() {
            for stream in mix.streams {
                way.feeds.remove(stream.ingest);
            }
        }
        self.stop_recording(room);
        for recording in self.stopped.drain(..).filter(|_| !by_fault) {
            recording.bequeath(self.events.sender());
        }
    }

    /// One listener more, or less, of what is heard by a way out.
    fn count_listener(&mut self, out: &Outgoing, mix: Option<MixId>, more: bool) {
        let worker = out.to.worker();
        let mix = mix.and_then(|mix| self.mixes.get_mut(&mix));
        let streams = mix.map(|mix| mix.streams.iter_mut());
        let stream = streams.and_then(|mut it| it.find(|s| s.ingest.worker() == worker));
        if let Some(stream) = stream {
            stream.listeners = match more {
                true => stream.listeners + 1,
                false => stream.listeners.saturating_sub(1),
            };
        }
    }

    /// The ingest of a mix on a worker, which is made if there is none.
    fn stream(&mut self, mix: MixId, worker: usize, way: &Way<'_>) -> Option<IngestId> {
        let clocks = self.clocks;
        let mix = self.mixes.get_mut(&mix)?;
        let known = mix.streams.iter().find(|s| s.ingest.worker() == worker);
        if let Some(known) = known {
            return Some(known.ingest);
        }
        let options = mix_ingest(mix.encoding.codec, clocks, Some(worker));
        let ingest = way.media.add_ingest(options).id;
        mix.streams.push(Stream::new(ingest));
        Some(ingest)
    }

    fn hears(&mut self, participant: ParticipantId, mix: Option<MixId>, way: &mut Way<'_>) {
        let Some(mut out) = self.outgoing.remove(&participant) else {
            return;
        };
        let ingest = mix.and_then(|mix| self.stream(mix, out.to.worker(), way));
        let before = std::mem::replace(&mut out.hears, mix);
        self.count_listener(&out, before, false);
        self.count_listener(&out, mix, true);
        out.go_on(ingest, way);
        self.outgoing.insert(participant, out);
    }
}

impl Stream {
    fn new(ingest: IngestId) -> Self {
        Self {
            ingest,
            // Below 2^15, so that no receiver of SRTP misses the first roll-over.
            sequence: rand::random::<u16>() >> 1,
            listeners: 0,
        }
    }
}

fn gate(enabled: bool) -> RouteOptions {
    RouteOptions {
        enabled,
        ..RouteOptions::default()
    }
}

/// Takes what a frame of a room brings.
pub(crate) struct Taking<'a, 'w> {
    outputs: &'a mut Outputs,
    way: &'a mut Way<'w>,
}

impl Output for Taking<'_, '_> {
    fn opened(&mut self, id: MixId, encoding: Encoding) {
        let mut mix = Mix {
            encoding,
            ssrc: Ssrc(rand::random()),
            streams: SmallVec::new(),
            subscribed: SmallVec::new(),
        };
        let subscriptions = self.outputs.subscriptions.iter();
        let its = subscriptions.filter(|(_, subscription)| subscription.mix == id);
        let streams = its.map(|(number, it)| (*number, Stream::new(it.ingest)));
        mix.subscribed.extend(streams);
        self.outputs.mixes.insert(id, mix);
    }

    fn closed(&mut self, id: MixId) {
        let Some(mix) = self.outputs.mixes.remove(&id) else {
            return;
        };
        // Who heard it is told what it hears next in this frame, and its route has to be there until then.
        let ended = mix.streams.iter().map(|stream| stream.ingest);
        self.outputs.ended.extend(ended);
    }

    fn hears(&mut self, participant: ParticipantId, mix: Option<MixId>) {
        self.outputs.hears(participant, mix, self.way);
    }

    fn packet(&mut self, id: MixId, timestamp: u32, marker: bool, payload: &[u8]) {
        let Outputs {
            mixes,
            packet,
            recording,
            inhabited,
            ..
        } = &mut *self.outputs;
        if let Some(recording) = recording
            && *inhabited
        {
            recording.packet(id, payload);
        }
        let Some(mix) = mixes.get_mut(&id) else {
            return;
        };
        let fields = Fields {
            marker,
            padding: false,
            pt: payload_type(mix.encoding.codec),
            sequence: 0,
            timestamp,
            ssrc: mix.ssrc,
        };
        packet.clear();
        packet.resize(FIXED_HEADER_LEN, 0);
        if write_header(packet, &fields, []).is_err() {
            return;
        }
        packet.extend_from_slice(payload);
        let heard = mix.streams.iter_mut().filter(|it| it.listeners > 0);
        let subscribed = mix.subscribed.iter_mut().map(|(_, stream)| stream);
        for stream in heard.chain(subscribed) {
            header::set_sequence(packet, stream.sequence);
            stream.sequence = stream.sequence.wrapping_add(1);
            self.way.feeds.send(stream.ingest, packet);
        }
    }

    fn talking(&mut self, participant: ParticipantId, talking: bool) {
        self.outputs.events.tell(AudioEvent::Talking {
            participant,
            talking,
        });
    }

    fn sound(&mut self, group: Option<usize>, sound: &[f32]) {
        if let Some(recording) = &mut self.outputs.recording {
            recording.sound(group, sound);
        }
    }

    fn announcement(&mut self, announcement: AnnouncementId, state: AnnouncementState) {
        if let Some(event) = self.outputs.announcements.changed(announcement, state) {
            self.outputs.events.tell(event);
        }
    }
}

/// The payload type that a mix has on its way to workers: sinks have their own.
const fn payload_type(codec: AudioCodec) -> Pt {
    match codec {
        AudioCodec::Opus => Pt(111),
        AudioCodec::Pcma => Pt(8),
        AudioCodec::Pcmu => Pt(0),
        AudioCodec::G722 => Pt(9),
    }
}
