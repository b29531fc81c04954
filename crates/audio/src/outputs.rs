//! The outputs of a room: mixes go to ingests of workers, routes from these to participants, and
//! events to the room's handle.

use std::collections::HashMap;

use portunus_dsp::{
    AnnouncementId, AnnouncementState, AudioCodec, Encoding, MixId, Output, ParticipantId, Room,
};
use portunus_media::{IngestId, RouteId, RouteOptions};
use portunus_rtp::header::FIXED_HEADER_LEN;
use portunus_rtp::{Fields, Pt, Ssrc, header, write_header};
use smallvec::SmallVec;

use crate::announcement::Announcements;
use crate::clocks::Clocks;
use crate::leg::mix_ingest;
use crate::media_access::MediaAccess;
use crate::outbox::Outbox;
use crate::recording::{MixFile, Recording};
use crate::{AudioError, AudioEvent, Out, RecordingId};

/// The limit of stopped recordings that are still being written: each has a thread.
const UNWRITTEN: usize = 8;
/// The longest packet of a mix.
const MAX_PACKET: usize = 1_500;

/// The outputs of a room. Invariant: a participant that hears a mix counts as a listener of that
/// mix's stream on the worker of its output.
#[derive(Debug)]
pub(crate) struct Outputs {
    clocks: Clocks,
    pub(crate) events: Outbox,
    pub(crate) announcements: Announcements,
    mixes: HashMap<MixId, Mix>,
    outgoing: HashMap<ParticipantId, Outgoing>,
    subscriptions: HashMap<u64, Subscription>,
    recording: Option<Recording>,
    /// Whether somebody is in the room, so that it is recorded.
    pub(crate) inhabited: bool,
    /// Stopped recordings that are still being written.
    stopped: Vec<Recording>,
    packet: Vec<u8>,
    /// The mixes that ended in this frame.
    ended: Vec<IngestId>,
}

/// A mix with its streams.
#[derive(Debug)]
struct Mix {
    encoding: Encoding,
    ssrc: Ssrc,
    /// One stream on each worker with listeners.
    streams: SmallVec<[Stream; 2]>,
    /// The streams for subscribers, which are no participants.
    subscribed: SmallVec<[(u64, Stream); 1]>,
    /// The streams of the participants with sources of their own.
    own: Vec<(ParticipantId, OwnStream)>,
}

/// The ingest of a mix on a worker.
#[derive(Debug)]
struct Stream {
    ingest: IngestId,
    sequence: u16,
    listeners: usize,
}

/// The stream of a participant with a source of its own. It goes on from mix to mix.
#[derive(Debug)]
struct OwnStream {
    stream: Stream,
    ssrc: Ssrc,
}

/// The mix of a subscriber, which is no participant.
#[derive(Debug)]
struct Subscription {
    mix: MixId,
    ingest: IngestId,
    always_on: bool,
}

/// The output of a participant.
#[derive(Debug)]
pub(crate) struct Outgoing {
    to: Out,
    /// The route to a track, once the participant has heard anything.
    route: Option<RouteId>,
    is_open: bool,
    /// The ingest that the leg's own route comes from. Another room may have redirected it.
    from: Option<IngestId>,
    hears: Option<MixId>,
    /// The stream to a source while no mix has it.
    own: Option<OwnStream>,
}

impl Outgoing {
    pub(crate) fn new(to: Out) -> Self {
        let own = match &to {
            Out::Source(outlet) => Some(OwnStream {
                stream: Stream::new(outlet.ingest()),
                ssrc: Ssrc(rand::random()),
            }),
            Out::Track(_) | Out::Leg(_) => None,
        };
        Self {
            to,
            own,
            route: None,
            is_open: false,
            from: None,
            hears: None,
        }
    }
}

impl Outgoing {
    /// Routes from this ingest, or from none.
    fn go_on(&mut self, ingest: Option<IngestId>, access: &mut MediaAccess<'_>) {
        let track = match &self.to {
            Out::Track(track) => *track,
            Out::Source(_) => return,
            Out::Leg(leg) => {
                match (self.from, ingest.unwrap_or(leg.rest())) {
                    (Some(before), ingest) => {
                        access.feeds.redirect_from(leg.route(), before, ingest)
                    }
                    (None, ingest) => access.feeds.redirect(leg.route(), ingest),
                }
                self.from = Some(ingest.unwrap_or(leg.rest()));
                return;
            }
        };
        match (ingest, self.route) {
            (Some(ingest), Some(route)) => {
                if !std::mem::replace(&mut self.is_open, true) {
                    access.media.set_route(route, gate(true));
                }
                access.feeds.redirect(route, ingest);
            }
            (Some(ingest), None) => {
                self.is_open = true;
                self.route = Some(access.media.route(ingest, track, gate(true)));
            }
            (None, Some(route)) => {
                if std::mem::replace(&mut self.is_open, false) {
                    access.media.set_route(route, gate(false));
                }
            }
            (None, None) => {}
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

    /// Returns the receiver of a room's frame.
    pub(crate) fn with<'a, 'w>(&'a mut self, access: &'a mut MediaAccess<'w>) -> Taking<'a, 'w> {
        Taking {
            outputs: self,
            access,
        }
    }

    /// Sets the output of a participant. If it is the present one, the stream goes on.
    pub(crate) fn set(
        &mut self,
        participant: ParticipantId,
        out: Outgoing,
        access: &mut MediaAccess<'_>,
    ) {
        let known = self.outgoing.get(&participant);
        if known.is_some_and(|known| known.to.is(&out.to)) {
            self.hears(participant, None, access);
            return;
        }
        self.forget(participant, access);
        self.outgoing.insert(participant, out);
    }

    /// Removes the output of a participant.
    pub(crate) fn forget(&mut self, participant: ParticipantId, access: &mut MediaAccess<'_>) {
        let Some(out) = self.outgoing.remove(&participant) else {
            return;
        };
        match &out.to {
            // The stream ends with it.
            Out::Source(_) => {
                self.take_own(participant, out.hears);
            }
            Out::Track(_) | Out::Leg(_) => self.count_listener(&out, out.hears, false),
        }
        if let Some(route) = out.route {
            access.media.remove_route(route);
        }
        if let Out::Leg(leg) = &out.to
            && let Some(from) = out.from
        {
            access.feeds.redirect_from(leg.route(), from, leg.rest());
        }
    }

    /// Adds a subscriber to a mix.
    pub(crate) fn subscribe(&mut self, id: u64, mix: MixId, ingest: IngestId, always_on: bool) {
        let subscription = Subscription {
            mix,
            ingest,
            always_on,
        };
        self.subscriptions.insert(id, subscription);
        // If it is not open yet, the next frame opens it.
        if let Some(mix) = self.mixes.get_mut(&mix) {
            mix.subscribed.push((id, Stream::new(ingest)));
        }
    }

    /// Removes a subscriber. Returns its mix, and whether it was always on.
    pub(crate) fn unsubscribe(&mut self, id: u64) -> Option<(MixId, bool)> {
        let subscription = self.subscriptions.remove(&id)?;
        if let Some(mix) = self.mixes.get_mut(&subscription.mix) {
            mix.subscribed.retain(|(other, _)| *other != id);
        }
        Some((subscription.mix, subscription.always_on))
    }

    /// Whether no event waits, and none will come by itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.events.is_empty() && self.stopped.is_empty()
    }

    /// Starts a recording.
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

    /// Stops the recording. Another may start at once, though this one is still being written.
    pub(crate) fn stop_recording(&mut self, room: &mut Room) {
        if let Some(mut recording) = self.recording.take() {
            recording.stop(room);
            self.stopped.push(recording);
        }
    }

    /// Ends a frame.
    pub(crate) fn end_frame(&mut self, room: &mut Room, access: &mut MediaAccess<'_>) {
        self.events.flush();
        for ingest in self.ended.drain(..) {
            access.feeds.remove(ingest);
        }
        if let Some(recording) = &mut self.recording
            && self.inhabited
        {
            recording.end_frame();
        }
        self.watch_recordings(room);
    }

    /// Skips frames.
    pub(crate) fn skip(&mut self, frames: u64) {
        if let Some(recording) = &mut self.recording
            && self.inhabited
        {
            recording.miss(u32::try_from(frames).unwrap_or(u32::MAX));
        }
    }

    /// Queues the events of recordings that have ended.
    fn watch_recordings(&mut self, room: &mut Room) {
        // A recording that cannot be written ends by itself.
        if self.recording.as_ref().is_some_and(Recording::has_ended) {
            self.stop_recording(room);
        }
        for ended in self.stopped.extract_if(.., |it| it.has_ended()) {
            self.events.push(ended.end_event());
        }
    }

    /// Ends the outputs. Unless the room ends by a fault, the results of its recordings are still
    /// reported. After a fault, the handle learns of it by the end of the events.
    pub(crate) fn end(&mut self, room: &mut Room, access: &mut MediaAccess<'_>, by_fault: bool) {
        for participant in self.outgoing.keys().copied().collect::<Vec<_>>() {
            self.forget(participant, access);
        }
        for (_, mix) in self.mixes.drain() {
            for stream in mix.streams {
                access.feeds.remove(stream.ingest);
            }
        }
        self.stop_recording(room);
        for recording in self.stopped.drain(..).filter(|_| !by_fault) {
            recording.bequeath(self.events.sender());
        }
    }

    /// Counts a listener of a mix in or out.
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

    /// Returns the ingest of a mix on a worker, and makes it if needed.
    fn stream(&mut self, mix: MixId, worker: usize, access: &MediaAccess<'_>) -> Option<IngestId> {
        let clocks = self.clocks;
        let mix = self.mixes.get_mut(&mix)?;
        let known = mix.streams.iter().find(|s| s.ingest.worker() == worker);
        if let Some(known) = known {
            return Some(known.ingest);
        }
        let options = mix_ingest(mix.encoding.codec, clocks, Some(worker));
        let ingest = access.media.add_ingest(options).id;
        mix.streams.push(Stream::new(ingest));
        Some(ingest)
    }

    /// Takes the stream of a participant with a source of its own from the mix that it hears.
    fn take_own(&mut self, participant: ParticipantId, from: Option<MixId>) -> Option<OwnStream> {
        let own = &mut self.mixes.get_mut(&from?)?.own;
        let index = own.iter().position(|(of, _)| *of == participant)?;
        Some(own.swap_remove(index).1)
    }

    fn hears(
        &mut self,
        participant: ParticipantId,
        mix: Option<MixId>,
        access: &mut MediaAccess<'_>,
    ) {
        let Some(mut out) = self.outgoing.remove(&participant) else {
            return;
        };
        if let Out::Source(_) = &out.to {
            let own = out.own.take();
            let own = own.or_else(|| self.take_own(participant, out.hears));
            out.hears = mix;
            match (mix.and_then(|mix| self.mixes.get_mut(&mix)), own) {
                (Some(mix), Some(own)) => mix.own.push((participant, own)),
                (_, own) => out.own = own,
            }
            self.outgoing.insert(participant, out);
            return;
        }
        let ingest = mix.and_then(|mix| self.stream(mix, out.to.worker(), access));
        let before = std::mem::replace(&mut out.hears, mix);
        self.count_listener(&out, before, false);
        self.count_listener(&out, mix, true);
        out.go_on(ingest, access);
        self.outgoing.insert(participant, out);
    }
}

impl Stream {
    fn new(ingest: IngestId) -> Self {
        Self {
            ingest,
            // Below 2^15, so that no SRTP receiver misses the first roll-over.
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

/// The receiver of a room's frame.
pub(crate) struct Taking<'a, 'w> {
    outputs: &'a mut Outputs,
    access: &'a mut MediaAccess<'w>,
}

impl Output for Taking<'_, '_> {
    fn opened(&mut self, id: MixId, encoding: Encoding) {
        let mut mix = Mix {
            encoding,
            ssrc: Ssrc(rand::random()),
            streams: SmallVec::new(),
            subscribed: SmallVec::new(),
            own: Vec::new(),
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
        for (participant, own) in mix.own {
            if let Some(out) = self.outputs.outgoing.get_mut(&participant) {
                out.own = Some(own);
            }
        }
        // Its listeners get another mix in this frame, and their routes must exist until then.
        let ended = mix.streams.iter().map(|stream| stream.ingest);
        self.outputs.ended.extend(ended);
    }

    fn hears(&mut self, participant: ParticipantId, mix: Option<MixId>) {
        self.outputs.hears(participant, mix, self.access);
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
            self.access.feeds.send(stream.ingest, packet);
        }
        for (_, OwnStream { stream, ssrc }) in &mut mix.own {
            header::set_sequence(packet, stream.sequence);
            header::set_ssrc(packet, *ssrc);
            stream.sequence = stream.sequence.wrapping_add(1);
            self.access.feeds.send(stream.ingest, packet);
        }
    }

    fn talking(&mut self, participant: ParticipantId, talking: bool) {
        self.outputs.events.push(AudioEvent::Talking {
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
            self.outputs.events.push(event);
        }
    }
}

/// The payload type of a mix on its way to workers. Sinks have their own.
const fn payload_type(codec: AudioCodec) -> Pt {
    match codec {
        AudioCodec::Opus => Pt(111),
        AudioCodec::Pcma => Pt(8),
        AudioCodec::Pcmu => Pt(0),
        AudioCodec::G722 => Pt(9),
    }
}
