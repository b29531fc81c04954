//! The ingests of a worker: which there are, and how they come and go.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Token};
use portunus_rtp::{ExtensionKind, ExtensionMap, Ssrc};
use slab::Slab;
use smallvec::SmallVec;

use super::Worker;
use super::ingest_feedback::Telling;
use super::peers::IngestEars;
use crate::command::NewIngest;
use crate::graph::{ENCODINGS, Inspector, MessageKind, Messages, SourceFormat, SourceKey};
use crate::ingest::{
    Continuity, IngestFeed, IngestId, IngestMedia, IngestStatus, Listening, PacketReceiver,
    ParameterSets, Protection, Refusals, Remote, SharedSocket, Skew, Upstream,
};
use crate::sys::enable_gro;
use crate::{KeyframeCache, SourceRef};

/// The poll's tokens from here on are those of ingest sockets.
const FIRST_TOKEN: usize = 16;

/// All ingests of a worker.
#[derive(Default)]
pub(super) struct Ingests {
    pub(super) slots: Slab<Ingest>,
    pub(super) by_id: HashMap<IngestId, usize>,
    pub(super) ports: Slab<Port>,
    /// Ports that may have something.
    pub(super) ready: VecDeque<usize>,
    /// Slots of the ingests that are fed by the control plane.
    pub(super) fed: Vec<usize>,
    pub(super) telling: Telling,
}

/// A socket of an ingest.
pub(super) struct Port {
    pub(super) socket: SharedSocket,
    pub(super) members: SmallVec<[Member; 1]>,
    pub(super) role: Role,
    pub(super) is_ready: bool,
}

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Rtp,
    Rtcp,
}

/// An ingest that a socket is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// Its slot.
    pub(super) ingest: usize,
    takes: Takes,
}

/// Which packets of a socket are for an ingest.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// All: they are of this encoding.
    All(u8),
    /// Those with so many SSRCs from this one on, the lowest encoding first.
    Ssrcs(Ssrc, u8),
}

impl Member {
    /// The ingest and encoding of a packet, if it is for it.
    pub(super) fn encoding(&self, datagram: &[u8]) -> Option<(usize, u8)> {
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
pub(super) struct Ingest {
    pub(super) source: SourceKey,
    pub(super) media: IngestMedia,
    pub(super) status: Arc<IngestStatus>,
    /// What it did not take lately.
    pub(super) refusals: Refusals,
    pub(super) enabled: bool,
    pub(super) extensions: ExtensionMap,
    pub(super) encodings: [Encoding; ENCODINGS],
    pub(super) upstream: Upstream,
    /// There may be something new to tell.
    pub(super) upstream_changed: bool,
    /// Listens to what it brings, if anybody wants to know who talks.
    pub(super) ears: Option<Box<IngestEars>>,
    pub(super) feed: Option<PacketReceiver>,
    pub(super) ports: SmallVec<[usize; 4]>,
    /// The port that reports go out by.
    pub(super) rtcp: Option<usize>,
}

/// One stream of an ingest.
pub(super) struct Encoding {
    pub(super) protection: Option<Protection>,
    pub(super) continuity: Continuity,
    pub(super) inspector: Inspector,
    /// Changes where a sender begins anew.
    pub(super) stretch: u8,
    pub(super) skew: Option<Skew>,
    /// The picture that parameter sets were sent before last.
    pub(super) introduced: Option<u32>,
}

impl Ingests {
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

    pub(super) fn get_mut(&mut self, id: IngestId) -> Option<&mut Ingest> {
        let slot = self.by_id.get(&id)?;
        self.slots.get_mut(*slot)
    }
}

impl Worker {
    /// Listens to an ingest, or no more.
    pub(super) fn listen_to_ingest(&mut self, id: IngestId, listening: Option<Listening>) {
        let Some(ingest) = self.ingests.get_mut(id) else {
            return;
        };
        let Some(listening) = listening else {
            ingest.ears = None;
            return;
        };
        let ears = || Box::new(IngestEars::new(id, listening.tell.clone()));
        ingest.ears.get_or_insert_with(ears).listen(listening);
    }

    pub(super) fn add_ingest(&mut self, new: NewIngest) {
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
                };
                (format.clock_rate, format)
            }
        };
        let is = SourceRef::Ingest(id);
        let source = self.graph.source_of(is, &mut self.peers);
        self.graph.take_format(is, format);
        let skew = matches!(&options.media, IngestMedia::Rtp(rtp) if rtp.skew);
        let stream = || Encoding {
            protection: options.srtp.clone().map(Protection::new),
            continuity: Continuity::new(clock_rate, options.collision),
            inspector: Inspector::default(),
            stretch: 0,
            skew: skew.then(|| Skew::new(clock_rate, format.is_video)),
            introduced: None,
        };
        let slot = self.ingests.slots.insert(Ingest {
            source,
            media: options.media.clone(),
            status,
            refusals: Refusals::default(),
            enabled: true,
            extensions,
            encodings: [stream(), stream(), stream()],
            upstream: Upstream::new(Ssrc(rand::random())),
            upstream_changed: false,
            ears: None,
            feed: None,
            ports: SmallVec::new(),
            rtcp: None,
        });
        self.ingests.by_id.insert(id, slot);
        match options.feed {
            IngestFeed::Sockets { rtp, rtcp } => {
                for (encoding, socket) in rtp.into_iter().take(ENCODINGS).enumerate() {
                    let takes = Takes::All(encoding as u8);
                    self.open_port(slot, socket.into(), Role::Rtp, takes);
                }
                if let Some(socket) = rtcp {
                    self.open_port(slot, socket.into(), Role::Rtcp, Takes::All(0));
                }
            }
            IngestFeed::Shared {
                rtp, rtcp, ssrc, ..
            } => {
                let takes = Takes::Ssrcs(ssrc, encodings);
                self.open_port(slot, rtp, Role::Rtp, takes);
                if let Some(rtcp) = rtcp {
                    self.open_port(slot, rtcp, Role::Rtcp, takes);
                }
            }
            IngestFeed::Packets(feed) => {
                if let Some(inbox) = self.others.own_inbox() {
                    feed.attach(Arc::clone(inbox));
                }
                self.ingests.fed.push(slot);
                if let Some(ingest) = self.ingests.slots.get_mut(slot) {
                    if feed.can_tell() {
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
            // Every message displaces the one before.
            let last = KeyframeCache {
                max_age: Duration::ZERO,
                max_bytes: 0,
            };
            let others = &self.others;
            self.graph
                .keep_keyframe(is, Some(last), &mut self.peers, others);
        }
    }

    fn open_port(&mut self, slot: usize, socket: SharedSocket, role: Role, takes: Takes) {
        let member = Member {
            ingest: slot,
            takes,
        };
        let mut known = self.ingests.ports.iter_mut();
        if let Some((index, port)) = known.find(|(_, port)| port.socket.is(&socket)) {
            port.members.push(member);
            self.has_port(slot, index, role);
            return;
        }
        enable_gro(&socket);
        let fd = socket.as_fd().as_raw_fd();
        let entry = self.ingests.ports.vacant_entry();
        let index = entry.key();
        let token = Token(FIRST_TOKEN + index);
        let registry = self.poller.registry();
        if let Err(error) = registry.register(&mut SourceFd(&fd), token, Interest::READABLE) {
            tracing::error!(worker = self.others.index(), %error, "cannot listen to an ingest's socket");
            return;
        }
        entry.insert(Port {
            socket,
            members: SmallVec::from_elem(member, 1),
            role,
            is_ready: false,
        });
        self.has_port(slot, index, role);
        self.ingests.mark_ready(index);
    }

    fn has_port(&mut self, slot: usize, port: usize, role: Role) {
        if let Some(ingest) = self.ingests.slots.get_mut(slot) {
            ingest.ports.push(port);
            if role == Role::Rtcp {
                ingest.rtcp = Some(port);
            }
        }
    }

    pub(super) fn set_ingest_enabled(&mut self, id: IngestId, enabled: bool) {
        let Some(ingest) = self.ingests.get_mut(id) else {
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
        // Once more when it is enabled: other workers may have had some on their way.
        self.graph.drop_kept(source, &self.others);
        if enabled {
            self.graph.want_keyframes(source);
        }
    }

    pub(super) fn set_ingest_parameter_sets(&mut self, id: IngestId, sets: Option<ParameterSets>) {
        if let Some(ingest) = self.ingests.get_mut(id)
            && let IngestMedia::Rtp(media) = &mut ingest.media
        {
            media.h264_parameter_sets = sets;
        }
    }

    pub(super) fn remove_ingest(&mut self, id: IngestId, now: Instant) {
        let Some(slot) = self.ingests.by_id.remove(&id) else {
            return;
        };
        let Some(ingest) = self.ingests.slots.try_remove(slot) else {
            return;
        };
        for index in ingest.ports {
            if let Some(port) = self.ingests.ports.get_mut(index) {
                port.members.retain(|member| member.ingest != slot);
                if !port.members.is_empty() {
                    continue;
                }
            }
            if let Some(port) = self.ingests.ports.try_remove(index) {
                let fd = port.socket.as_fd().as_raw_fd();
                // Closing it ends the registration too.
                let _ = self.poller.registry().deregister(&mut SourceFd(&fd));
            }
            self.ingests.ready.retain(|ready| *ready != index);
        }
        self.ingests.fed.retain(|fed| *fed != slot);
        self.end_source(SourceRef::Ingest(id), now);
        self.ingest_count.fetch_sub(1, Ordering::Relaxed);
    }
}
