//! A media plane without workers that records commands, for tests of its users.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use std::time::Instant;

use portunus_graph::{Inspector, Packet, Sent};
use portunus_rtp::{Header, SeqNo};
use portunus_sdp::Kind;
use portunus_sdp::negotiated::{Codec, Fingerprint, FingerprintHash};
use tokio::sync::{mpsc, oneshot};

use crate::ingest::{Listening, ParameterSets};
use crate::leg::{LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};
use crate::outlet::{Handed, NewOutlet, OutletEnd, Taken};
use crate::{
    DataMessage, DataPayload, Encodings, ForwardOptions, IngestId, IngestOptions, IngestStatus,
    KeyframeCache, KeyframeInterval, PeerEvent, PeerId, PeerStats, RelayOptions, RelayedStream,
    RouteId, RouteOptions, SourceRef, TalkDetection, Tapped, TappedMessage, TappedPacket,
    TappedReport, TrackRef,
};

/// What was requested of a detached media plane.
#[derive(Debug, Clone, Default)]
pub struct Requested {
    /// The present routes, with their options.
    pub routes: Vec<RequestedRoute>,
    /// The caps, in order.
    pub bitrates: Vec<(PeerId, Option<u64>)>,
    /// The m-lines with talk detection, and its settings.
    pub talk: HashMap<TrackRef, TalkDetection>,
    /// The m-lines with speech measurement.
    pub speech: HashSet<TrackRef>,
    /// The data channels that were opened, by their labels.
    pub opened: Vec<(PeerId, String)>,
    /// The messages that were sent.
    pub data: Vec<(PeerId, DataMessage)>,
    /// The candidates that were added.
    pub candidates: Vec<(PeerId, String)>,
    /// The present ingests. This holds their sockets open.
    pub ingests: Vec<RequestedIngest>,
    /// The present taps and forwarders. This holds taps open.
    pub outlets: Vec<RequestedOutlet>,
    /// The streams of other nodes that are expected.
    pub relayed: Vec<RelayedStream>,
    /// The present legs. This holds their sockets open.
    pub legs: Vec<RequestedLeg>,
    /// The ingests that are measured, and how.
    pub listening: HashMap<IngestId, Listening>,
    /// The sources of which keyframes are kept.
    pub kept: Vec<(SourceRef, KeyframeCache)>,
    /// The sources with intervals of keyframe requests.
    pub intervals: Vec<(SourceRef, KeyframeInterval)>,
    /// The peers whose media is encrypted end to end.
    pub opaque: HashSet<PeerId>,
    /// The sources of which keyframes were requested, in order.
    pub keyframes: Vec<SourceRef>,
    /// The taps and forwarders that requested keyframes, in order.
    pub outlet_keyframes: Vec<RouteId>,
    /// The statistics set by [`crate::MediaPlane::pretend_stats`].
    pub stats: HashMap<PeerId, PeerStats>,
    /// The peers of [`crate::MediaPlane::withhold_stats`].
    pub silent: HashSet<PeerId>,
    /// The number of requests for statistics.
    pub stats_asked: usize,
    /// Requests that are never answered wait as long as this is held.
    pub(super) unanswered: Vec<Arc<oneshot::Sender<PeerStats>>>,
}

impl Requested {
    pub(super) fn change_leg(&mut self, id: LegId, change: impl FnOnce(&mut RequestedLeg)) {
        if let Some(leg) = self.legs.iter_mut().find(|known| known.id == id) {
            change(leg);
        }
    }
}

/// An ingest.
#[derive(Debug, Clone)]
pub struct RequestedIngest {
    /// Its id.
    pub id: IngestId,
    /// The options.
    pub options: Arc<IngestOptions>,
    /// The status; [`IngestStatus::pretend_packet`] changes it.
    pub status: Arc<IngestStatus>,
    /// Whether packets are accepted.
    pub enabled: bool,
    /// The last H.264 parameter sets.
    pub parameter_sets: Option<ParameterSets>,
}

/// A tap or forwarder.
#[derive(Debug, Clone)]
pub struct RequestedOutlet {
    /// Its id.
    pub id: RouteId,
    /// The source.
    pub from: SourceRef,
    /// The last options.
    pub options: RouteOptions,
    /// The encodings that it takes.
    pub encodings: Encodings,
    end: Arc<Mutex<OutletEnd>>,
}

impl RequestedOutlet {
    pub(super) fn new(new: NewOutlet) -> Self {
        Self {
            id: new.id,
            from: new.from,
            options: new.options,
            encodings: new.encodings,
            end: Arc::new(Mutex::new(new.end)),
        }
    }

    /// Passes an RTP packet to the consumer of the tap, as if the source had sent it at `arrival`.
    /// Returns whether it was queued.
    pub fn pretend_packet(&self, packet: &[u8], codec: Codec, arrival: Instant) -> bool {
        let mut shared = Packet::empty(arrival);
        let Ok(header) = Header::parse(packet) else {
            return false;
        };
        shared.fill(packet);
        shared.header = header;
        shared.codec = codec;
        shared.seq = SeqNo(u64::from(header.sequence));
        let inspected = Inspector::default().inspect(codec, &header, packet, &shared.extensions);
        shared.describe(inspected);
        let taken = Taken {
            sent: Sent {
                out: shared.seq,
                seq: shared.seq,
                ..Sent::default()
            },
            ssrc: header.ssrc,
        };
        self.hand(Tapped::Packet(TappedPacket::new(Arc::new(shared), taken)))
    }

    /// Passes the first packet that a recording of this kind takes to the consumer of the tap:
    /// Opus, a keyframe of VP8, or a message. Returns whether it was queued.
    pub fn pretend_first(&self, kind: Kind) -> bool {
        let head = |pt| [0x80, pt, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        let now = Instant::now();
        match kind {
            Kind::Audio => {
                let packet = [&head(111)[..], &[0xfc, 1, 2]].concat();
                self.pretend_packet(&packet, Codec::Opus, now)
            }
            Kind::Video => {
                let keyframe = [0x10, 0, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 64, 0];
                let packet = [&head(96)[..], &keyframe].concat();
                self.pretend_packet(&packet, Codec::Vp8, now)
            }
            Kind::Data => self.pretend_message("", DataPayload::Text("words".to_owned())),
        }
    }

    /// Passes a report to the consumer of the tap. Returns whether it was queued.
    pub fn pretend_report(&self, report: TappedReport) -> bool {
        self.hand(Tapped::Report(report))
    }

    /// Passes a message of a data channel to the consumer of the tap. Returns false if there is
    /// none any more.
    pub fn pretend_message(&self, label: &str, payload: DataPayload) -> bool {
        let message = TappedMessage::new(Instant::now(), label.to_owned(), payload);
        self.hand(Tapped::Message(message))
    }

    fn hand(&self, tapped: Tapped) -> bool {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *end {
            OutletEnd::Tap(tap) => {
                let handed = match tapped {
                    Tapped::Packet(packet) => tap.hand_packet(packet),
                    Tapped::Message(message) => tap.hand_message(message),
                    report @ Tapped::Report(_) => tap.hand(report),
                };
                handed != Handed::Ended
            }
            OutletEnd::Collect(input) => match tapped {
                Tapped::Packet(packet) => input.hand(packet) != Handed::Ended,
                Tapped::Message(_) | Tapped::Report(_) => false,
            },
            OutletEnd::Forward(_) | OutletEnd::Link(_) => false,
        }
    }

    /// The options of a forwarder.
    pub fn forward(&self) -> Option<ForwardOptions> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        match &*end {
            OutletEnd::Tap(_) | OutletEnd::Collect(_) | OutletEnd::Link(_) => None,
            OutletEnd::Forward(forwarder) => Some(forwarder.options().clone()),
        }
    }

    /// How it is sent to another node, if it is.
    pub fn relay(&self) -> Option<RelayOptions> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        match &*end {
            OutletEnd::Tap(_) | OutletEnd::Collect(_) | OutletEnd::Forward(_) => None,
            OutletEnd::Link(linked) => Some(linked.options()),
        }
    }
}

/// A leg.
#[derive(Debug, Clone)]
pub struct RequestedLeg {
    /// Its id.
    pub id: LegId,
    /// The options. What is sent to `tell` is published.
    pub new: Arc<NewLeg>,
    /// The status.
    pub status: Arc<LegStatus>,
    /// The last far end.
    pub remote: Option<LegRemote>,
    /// The last gates.
    pub gates: LegGates,
    /// The source that is sent to the far end, and the options.
    pub from: Option<(SourceRef, RouteOptions)>,
    /// The source whose keys are passed on.
    pub keys_from: Option<SourceRef>,
    /// The telephone events, in order.
    pub tones: Vec<LegTones>,
}

/// A route.
#[derive(Debug, Clone)]
pub struct RequestedRoute {
    /// Its id.
    pub id: RouteId,
    /// The source.
    pub from: SourceRef,
    /// The sink.
    pub to: TrackRef,
    /// The last options.
    pub options: RouteOptions,
}

/// Replaces a started media plane: no workers, an empty certificate, and events made by tests.
pub(crate) struct Detached {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) address: IpAddr,
    pub(crate) sender: mpsc::Sender<PeerEvent>,
    pub(crate) events: mpsc::Receiver<PeerEvent>,
}

impl Detached {
    pub(crate) fn new() -> Self {
        let (sender, events) = mpsc::channel(64);
        Detached {
            fingerprint: Fingerprint {
                hash: FingerprintHash::Sha256,
                digest: vec![0; 32],
            },
            address: IpAddr::from([127, 0, 0, 1]),
            sender,
            events,
        }
    }
}
