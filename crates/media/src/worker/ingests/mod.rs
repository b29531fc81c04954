//! The ingests of a worker: added, changed and removed.

mod feedback;
mod intake;
mod rtcp;

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Registry, Token};
use portunus_graph::{
    Demand, ENCODINGS, Inspector, MessageKind, Messages, SourceFormat, SourceKey,
};
use portunus_rtp::{ExtensionKind, ExtensionMap, Ssrc};
use slab::Slab;
use smallvec::SmallVec;

use super::graph::Graph;
use super::other_workers::OtherWorkers;
use super::peers::{IngestLevels, Peers};
use crate::command::NewIngest;
use crate::ingest::{
    Continuity, IngestFeed, IngestId, IngestMedia, IngestStatus, Listening, PacketReceiver,
    ParameterSets, Protection, Refusals, Remote, SharedSocket, Skew, Upstream,
};
use crate::leg::LegPayload;
use crate::node_link::{IngestDemand, NodeLinkId};
use crate::sys::enable_gro;
use crate::{KeyframeCache, SourceRef};

use feedback::{FeedbackDue, NodeFeedback};
pub(super) use intake::{Intake, OwnHead};

/// The first of the poll's tokens for sockets of ingests.
const FIRST_TOKEN: usize = 16;

/// All ingests of a worker. Invariants:
///
/// - An ingest keeps its slot, and can be found by its id.
/// - The poll watches a socket as long as ingests are its members. An ingest knows its sockets.
/// - A readable socket is queued once.
pub(super) struct Ingests {
    /// The index of the worker.
    worker: u16,
    slots: Slab<Ingest>,
    by_id: HashMap<IngestId, usize>,
    ports: Slab<Port>,
    /// Sockets that may be readable.
    ready: VecDeque<usize>,
    /// The slots of ingests that the control plane feeds.
    fed: Vec<usize>,
    feedback_due: FeedbackDue,
    /// Ingests of legs of which keyframes are needed.
    asked: Vec<IngestId>,
    /// Feedback for other nodes.
    for_nodes: Vec<NodeFeedback>,
    /// The number of present and coming ingests, by which workers are chosen.
    count: Arc<AtomicUsize>,
}

/// A socket of an ingest.
struct Port {
    socket: SharedSocket,
    members: SmallVec<[Member; 1]>,
    role: Role,
    is_ready: bool,
}

/// The use of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Rtp,
    Rtcp,
}

/// An ingest that uses a socket.
#[derive(Debug, Clone, Copy)]
struct Member {
    /// Its slot.
    ingest: usize,
    takes: Takes,
}

/// The packets of a socket that an ingest takes.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// All, as packets of this encoding.
    All(u8),
    /// Those with this number of consecutive SSRCs, the lowest encoding first.
    Ssrcs(Ssrc, u8),
}

impl Member {
    /// Returns the encoding of a packet, if the member takes it.
    fn encoding(&self, datagram: &[u8]) -> Option<(usize, u8)> {
        let encoding = match self.takes {
            Takes::All(encoding) => encoding,
            Takes::Ssrcs(first, count) => {
                let ssrc = datagram.get(8..)?.first_chunk::<4>()?;
                let above = u32::from_be_bytes(*ssrc).wrapping_sub(first.0);
                u8::try_from(above).ok().filter(|above| *above < count)?
            }
        };
        Some((self.ingest, encoding))
    }
}

/// An ingest.
struct Ingest {
    id: IngestId,
    source: SourceKey,
    media: IngestMedia,
    status: Arc<IngestStatus>,
    /// Recent refusals.
    refusals: Refusals,
    enabled: bool,
    extensions: ExtensionMap,
    encodings: [Encoding; ENCODINGS],
    upstream: Upstream,
    /// There may be new feedback.
    upstream_changed: bool,
    /// Measures audio levels, if wanted.
    levels: Option<Box<IngestLevels>>,
    feed: Option<PacketReceiver>,
    /// Reports what viewers can see, if another node sends it.
    demand: Option<IngestDemand>,
    ports: SmallVec<[usize; 4]>,
    /// The socket for reports.
    rtcp: Option<usize>,
}

/// One stream of an ingest.
struct Encoding {
    protection: Option<Protection>,
    continuity: Continuity,
    inspector: Inspector,
    /// Changes when the sender restarts.
    stretch: u8,
    skew: Option<Skew>,
    /// The timestamp of the picture for which parameter sets were last sent.
    introduced: Option<u32>,
}

impl Ingests {
    /// Returns the ingests of a worker.
    pub(super) fn new(worker: u16, count: Arc<AtomicUsize>) -> Self {
        Self {
            worker,
            slots: Slab::new(),
            by_id: HashMap::new(),
            ports: Slab::new(),
            ready: VecDeque::new(),
            fed: Vec::new(),
            feedback_due: FeedbackDue::default(),
            asked: Vec::new(),
            for_nodes: Vec::new(),
            count,
        }
    }

    /// Notes which sockets the poll found readable.
    pub(super) fn note_ready(&mut self, events: &Events) {
        for event in events {
            if let Some(port) = event.token().0.checked_sub(FIRST_TOKEN) {
                self.mark_ready(port);
            }
        }
    }

    fn mark_ready(&mut self, index: usize) {
        if let Some(port) = self.ports.get_mut(index)
            && !std::mem::replace(&mut port.is_ready, true)
        {
            self.ready.push_back(index);
        }
    }

    fn get_mut(&mut self, id: IngestId) -> Option<&mut Ingest> {
        let slot = self.by_id.get(&id)?;
        self.slots.get_mut(*slot)
    }

    /// Sets whether an ingest is measured, and for whom.
    pub(super) fn listen(&mut self, id: IngestId, listening: Option<Listening>) {
        let Some(ingest) = self.get_mut(id) else {
            return;
        };
        let Some(listening) = listening else {
            ingest.levels = None;
            return;
        };
        let levels = || Box::new(IngestLevels::new(id, listening.tell.clone()));
        ingest.levels.get_or_insert_with(levels).listen(listening);
    }

    /// Adds an ingest and its source.
    pub(super) fn add(
        &mut self,
        new: NewIngest,
        (graph, peers): (&mut Graph, &mut Peers),
        others: &OtherWorkers,
        registry: &Registry,
    ) {
        let NewIngest {
            id,
            options,
            status,
        } = new;
        let mut extensions = ExtensionMap::default();
        let encodings = options.feed.encodings();
        let (clock_rate, format) = match &options.media {
            IngestMedia::Rtp(rtp) => {
                extensions = rtp.extensions;
                if let Some(number) = rtp.abs_capture_time.filter(|id| (1..=14).contains(id)) {
                    extensions.set(ExtensionKind::AbsCaptureTime, number);
                }
                let format = SourceFormat {
                    is_video: rtp.is_video(),
                    clock_rate: rtp.clock_rate.max(1),
                    encodings,
                    messages: None,
                    keep: None,
                    on_demand: matches!(options.feed, IngestFeed::Node(_)),
                };
                (format.clock_rate, format)
            }
            IngestMedia::Data(data) => {
                let messages = Messages {
                    label: data.label,
                    kind: match (data.framed, data.text) {
                        (true, _) => MessageKind::Marked,
                        (false, true) => MessageKind::Text,
                        (false, false) => MessageKind::Bytes,
                    },
                };
                let format = SourceFormat {
                    is_video: false,
                    clock_rate: 1_000,
                    encodings: 1,
                    messages: Some(messages),
                    keep: None,
                    on_demand: false,
                };
                (format.clock_rate, format)
            }
        };
        let is = SourceRef::Ingest(id);
        let source = graph.source_of(is, peers);
        graph.take_format(is, format);
        let skew = matches!(&options.media, IngestMedia::Rtp(rtp) if rtp.skew);
        let continuity = || match &options.feed {
            IngestFeed::Node(_) => Continuity::new(clock_rate, options.collision).relayed(),
            _ => Continuity::new(clock_rate, options.collision),
        };
        let stream = || Encoding {
            protection: options.srtp.clone().map(Protection::new),
            continuity: continuity(),
            inspector: Inspector::default(),
            stretch: 0,
            skew: skew.then(|| Skew::new(clock_rate, format.is_video)),
            introduced: None,
        };
        let slot = self.slots.insert(Ingest {
            id,
            source,
            media: options.media.clone(),
            status,
            refusals: Refusals::default(),
            enabled: true,
            extensions,
            encodings: [stream(), stream(), stream()],
            upstream: Upstream::new(Ssrc(rand::random())),
            upstream_changed: false,
            levels: None,
            feed: None,
            demand: None,
            ports: SmallVec::new(),
            rtcp: None,
        });
        self.by_id.insert(id, slot);
        match options.feed {
            IngestFeed::Sockets { rtp, rtcp } => {
                for (encoding, socket) in rtp.into_iter().take(ENCODINGS).enumerate() {
                    let takes = Takes::All(encoding as u8);
                    self.open_port(slot, socket.into(), (Role::Rtp, takes), registry);
                }
                if let Some(socket) = rtcp {
                    self.open_port(slot, socket.into(), (Role::Rtcp, Takes::All(0)), registry);
                }
            }
            IngestFeed::Shared {
                rtp, rtcp, ssrc, ..
            } => {
                let takes = Takes::Ssrcs(ssrc, encodings);
                self.open_port(slot, rtp, (Role::Rtp, takes), registry);
                if let Some(rtcp) = rtcp {
                    self.open_port(slot, rtcp, (Role::Rtcp, takes), registry);
                }
            }
            IngestFeed::Thread => {}
            IngestFeed::Node(feed) => {
                if let Some(ingest) = self.slots.get_mut(slot) {
                    ingest.demand = Some(IngestDemand::new(id, feed.reports));
                }
            }
            IngestFeed::Packets(feed) => {
                if let Some(inbox) = others.own_inbox() {
                    feed.attach(Arc::clone(inbox.wakeup()));
                }
                self.fed.push(slot);
                if let Some(ingest) = self.slots.get_mut(slot) {
                    if feed.takes_feedback() {
                        ingest.upstream.latch(Remote::Feed);
                        ingest.status.latch();
                    }
                    ingest.feed = Some(feed);
                }
            }
        }
        if let IngestMedia::Data(data) = options.media
            && data.keep_last
        {
            // Each message replaces the one before.
            let last = KeyframeCache {
                max_age: Duration::ZERO,
                max_bytes: 0,
            };
            graph.keep_keyframe(is, Some(last), peers, others);
        }
    }

    fn open_port(
        &mut self,
        slot: usize,
        socket: SharedSocket,
        (role, takes): (Role, Takes),
        registry: &Registry,
    ) {
        let member = Member {
            ingest: slot,
            takes,
        };
        let mut known = self.ports.iter_mut();
        if let Some((index, port)) = known.find(|(_, port)| port.socket.is(&socket)) {
            port.members.push(member);
            self.has_port(slot, index, role);
            return;
        }
        enable_gro(&socket);
        let fd = socket.as_fd().as_raw_fd();
        let entry = self.ports.vacant_entry();
        let index = entry.key();
        let token = Token(FIRST_TOKEN + index);
        if let Err(error) = registry.register(&mut SourceFd(&fd), token, Interest::READABLE) {
            tracing::error!(worker = self.worker, %error, "cannot listen to an ingest's socket");
            return;
        }
        entry.insert(Port {
            socket,
            members: SmallVec::from_elem(member, 1),
            role,
            is_ready: false,
        });
        self.has_port(slot, index, role);
        self.mark_ready(index);
    }

    fn has_port(&mut self, slot: usize, port: usize, role: Role) {
        if let Some(ingest) = self.slots.get_mut(slot) {
            ingest.ports.push(port);
            if role == Role::Rtcp {
                ingest.rtcp = Some(port);
            }
        }
    }

    /// Opens or closes the gate of an ingest.
    pub(super) fn set_enabled(
        &mut self,
        id: IngestId,
        enabled: bool,
        graph: &mut Graph,
        others: &OtherWorkers,
    ) {
        let Some(ingest) = self.get_mut(id) else {
            return;
        };
        if std::mem::replace(&mut ingest.enabled, enabled) == enabled {
            return;
        }
        let source = ingest.source;
        if enabled {
            for encoding in &mut ingest.encodings {
                encoding.continuity.resume();
            }
        }
        // Once more when it is enabled, as packets to other workers may have been on their way.
        graph.drop_kept(source, others);
        if enabled {
            graph.want_keyframes(source);
        }
    }

    /// Returns the slot of an ingest.
    pub(super) fn slot(&self, id: IngestId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Takes a stream of another node as an encoding of an ingest. Its feedback goes to `far` with
    /// our SSRC `own`. Returns its slot and its clock rate, or `None` if there is no such ingest.
    pub(super) fn join_link(
        &mut self,
        id: IngestId,
        encoding: u8,
        ssrc: Ssrc,
        far: (NodeLinkId, u16),
        own: Ssrc,
    ) -> Option<(usize, u32)> {
        let slot = self.slot(id)?;
        let ingest = self.slots.get_mut(slot)?;
        let IngestMedia::Rtp(media) = &ingest.media else {
            return None;
        };
        let clock_rate = media.clock_rate;
        ingest.upstream.join_link(far, own);
        ingest.upstream.set_ssrc(encoding, ssrc);
        ingest.status.latch();
        self.changed();
        Some((slot, clock_rate))
    }

    /// Reports what the viewers of an ingest can see, if another node sends it.
    pub(super) fn report_demand(&self, id: IngestId, demand: Demand) {
        let ingest = self.slot(id).and_then(|slot| self.slots.get(slot));
        if let Some(of) = ingest.and_then(|ingest| ingest.demand.as_ref()) {
            of.report(demand);
        }
    }

    /// Sets the payload types of an ingest of a leg, the main one first.
    pub(super) fn set_payloads(
        &mut self,
        id: IngestId,
        payloads: &[LegPayload],
        extensions: ExtensionMap,
        (graph, others): (&mut Graph, &OtherWorkers),
    ) {
        let Some(ingest) = self.get_mut(id) else {
            return;
        };
        ingest.extensions = extensions;
        ingest.upstream.latch(Remote::Leg);
        let IngestMedia::Rtp(media) = &mut ingest.media else {
            return;
        };
        media.others = payloads.iter().map(|it| (it.pt, it.codec)).collect();
        let Some(first) = payloads.first() else {
            return;
        };
        (media.codec, media.pt, media.clock_rate) = (first.codec, Some(first.pt), first.clock_rate);
        let clock_rate = first.clock_rate.max(1);
        for stream in &mut ingest.encodings {
            stream.continuity.set_clock_rate(clock_rate);
        }
        if let Some(source) = graph.source(ingest.source) {
            let format = SourceFormat {
                clock_rate,
                ..source.format
            };
            graph.set_format(ingest.source, format, others);
        }
    }

    /// Sets the parameter sets to send before pictures.
    pub(super) fn set_parameter_sets(&mut self, id: IngestId, sets: Option<ParameterSets>) {
        if let Some(ingest) = self.get_mut(id)
            && let IngestMedia::Rtp(media) = &mut ingest.media
        {
            media.h264_parameter_sets = sets;
        }
    }

    /// Removes an ingest. Returns whether it existed. Its source has to be removed, too.
    pub(super) fn remove(&mut self, id: IngestId, registry: &Registry) -> bool {
        let slot = self.by_id.remove(&id);
        let removed = slot.and_then(|slot| Some((slot, self.slots.try_remove(slot)?)));
        let Some((slot, ingest)) = removed else {
            return false;
        };
        for index in ingest.ports {
            if let Some(port) = self.ports.get_mut(index) {
                port.members.retain(|member| member.ingest != slot);
                if !port.members.is_empty() {
                    continue;
                }
            }
            if let Some(port) = self.ports.try_remove(index) {
                let fd = port.socket.as_fd().as_raw_fd();
                // Closing it ends the registration, too.
                let _ = registry.deregister(&mut SourceFd(&fd));
            }
            self.ready.retain(|ready| *ready != index);
        }
        self.fed.retain(|fed| *fed != slot);
        self.count.fetch_sub(1, Ordering::Relaxed);
        true
    }
}
