//! A media plane without workers, which notes what it was asked for: for the tests of what stands on it.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use std::time::Instant;

use portunus_rtp::{Header, SeqNo};
use portunus_sdp::Kind;
use portunus_sdp::negotiated::{Codec, Fingerprint, FingerprintHash};
use tokio::sync::{mpsc, oneshot};

use crate::command::{Command, NewIngest};
use crate::graph::{Inspector, Packet, Sent};
use crate::ingest::{IngestMedia, Listening, ParameterSets};
use crate::leg::{LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};
use crate::outlet::{Handed, NewOutlet, OutletEnd, Taken};
use crate::{
    DataMessage, DataPayload, Encodings, ForwardOptions, IngestId, IngestOptions, IngestStatus,
    KeyframeCache, KeyframeInterval, LineStats, PeerEvent, PeerId, PeerStats, RouteId,
    RouteOptions, SourceRef, TalkDetection, Tapped, TappedMessage, TappedPacket, TappedReport,
    TrackRef,
};

/// What a detached media plane was asked for.
#[derive(Debug, Clone, Default)]
pub struct Requested {
    /// The routes that there are, with their present options.
    pub routes: Vec<RequestedRoute>,
    /// The caps, in the order in which they were set.
    pub bitrates: Vec<(PeerId, Option<u64>)>,
    /// The m-lines that are listened to, with the settings of each.
    pub talk: HashMap<TrackRef, TalkDetection>,
    /// The m-lines on which speech is measured.
    pub speech: HashSet<TrackRef>,
    /// The messages that were sent.
    pub data: Vec<(PeerId, DataMessage)>,
    /// The candidates that were added.
    pub candidates: Vec<(PeerId, String)>,
    /// The ingests that there are. Their sockets are held open by this.
    pub ingests: Vec<RequestedIngest>,
    /// The taps and forwarders that there are. Taps are held open by this.
    pub outlets: Vec<RequestedOutlet>,
    /// The legs that there are. Their sockets are held open by this.
    pub legs: Vec<RequestedLeg>,
    /// The ingests that are listened to, and how.
    pub listening: HashMap<IngestId, Listening>,
    /// The sources of which keyframes are kept.
    pub kept: Vec<(SourceRef, KeyframeCache)>,
    /// The sources that are asked for keyframes when none has come for a time.
    pub intervals: Vec<(SourceRef, KeyframeInterval)>,
    /// The peers whose media is encrypted end to end.
    pub opaque: HashSet<PeerId>,
    /// The sources that were asked for keyframes, in the order in which they were.
    pub keyframes: Vec<SourceRef>,
    /// The taps and forwarders that asked for keyframes, in the order in which they did.
    pub outlet_keyframes: Vec<RouteId>,
    /// The figures of peers, as [`crate::MediaPlane::pretend_stats`] set them.
    pub stats: HashMap<PeerId, PeerStats>,
    /// The peers whose figures are never given, as [`crate::MediaPlane::withhold_stats`] set them.
    pub silent: HashSet<PeerId>,
    /// How often somebody has asked for figures.
    pub stats_asked: usize,
    /// Those who ask for figures that are never given wait for as long as this is held.
    unanswered: Vec<Arc<oneshot::Sender<PeerStats>>>,
}

impl Requested {
    fn change_leg(&mut self, id: LegId, change: impl FnOnce(&mut RequestedLeg)) {
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
    /// As it was added.
    pub options: Arc<IngestOptions>,
    /// What the control plane sees; [`IngestStatus::pretend_packet`] changes it.
    pub status: Arc<IngestStatus>,
    /// Whether it takes packets in.
    pub enabled: bool,
    /// The parameter sets of H.264, as they were set last.
    pub parameter_sets: Option<ParameterSets>,
}

/// A tap or forwarder.
#[derive(Debug, Clone)]
pub struct RequestedOutlet {
    /// Its id.
    pub id: RouteId,
    /// The source.
    pub from: SourceRef,
    /// As they were set last.
    pub options: RouteOptions,
    /// Which encodings it takes.
    pub encodings: Encodings,
    end: Arc<Mutex<OutletEnd>>,
}

impl RequestedOutlet {
    fn new(new: NewOutlet) -> Self {
        Self {
            id: new.id,
            from: new.from,
            options: new.options,
            encodings: new.encodings,
            end: Arc::new(Mutex::new(new.end)),
        }
    }

    /// Hands an RTP packet to the consumer of the tap, as if the source had sent it at `arrival`; says whether it
    /// was queued.
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

    /// Hands the first of what a recording of this kind takes to the consumer of the tap: Opus, a keyframe of VP8, or a message.
    /// Says whether it was queued.
    pub fn pretend_first(&self, kind: Kind) -> bool {
        let head = |pt| [0x80, pt, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        let now = Instant::now();
        match kind {
            Kind::Audio => {
                let packet = [&head(111)[..], b"s"].concat();
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

    /// Hands a report to the consumer of the tap; says whether it was queued.
    pub fn pretend_report(&self, report: TappedReport) -> bool {
        self.hand(Tapped::Report(report))
    }

    /// Hands a message that came now by a channel of this label to the consumer of the tap; false if there is none any more.
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
            OutletEnd::Forward(_) => false,
        }
    }

    /// Where it forwards to, if it is a forwarder.
    pub fn forward(&self) -> Option<ForwardOptions> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        match &*end {
            OutletEnd::Tap(_) | OutletEnd::Collect(_) => None,
            OutletEnd::Forward(forwarder) => Some(forwarder.options().clone()),
        }
    }
}

/// A leg.
#[derive(Debug, Clone)]
pub struct RequestedLeg {
    /// Its id.
    pub id: LegId,
    /// As it was added; what is sent to its `tell` is told.
    pub new: Arc<NewLeg>,
    /// What the control plane sees.
    pub status: Arc<LegStatus>,
    /// The far end, as it was set last.
    pub remote: Option<LegRemote>,
    /// As they were set last.
    pub gates: LegGates,
    /// What it is sent, and what of it.
    pub from: Option<(SourceRef, RouteOptions)>,
    /// Whose keys are passed on.
    pub keys_from: Option<SourceRef>,
    /// What was pressed, in the order in which it was.
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
    /// As they were set last.
    pub options: RouteOptions,
}

/// Where a detached media plane keeps its notes; shared by its clones.
pub(crate) type Notes = Arc<Mutex<Requested>>;

pub(crate) fn note(notes: &Notes, command: Command) {
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    match command {
        Command::AddRoute {
            route,
            from,
            to,
            options,
        } => notes.routes.push(RequestedRoute {
            id: route,
            from,
            to,
            options,
        }),
        Command::AddOutlet(outlet) => notes.outlets.push(RequestedOutlet::new(*outlet)),
        Command::SetRoute { route, options } => {
            for known in notes.outlets.iter_mut().filter(|known| known.id == route) {
                known.options = options.clone();
            }
            for known in notes.routes.iter_mut().filter(|known| known.id == route) {
                known.options = options.clone();
            }
        }
        Command::RemoveRoute { route } => {
            notes.routes.retain(|known| known.id != route);
            notes.outlets.retain(|known| known.id != route);
        }
        Command::ClosePeer { peer } => {
            let of = |end: TrackRef| end.peer == peer;
            let of_peer =
                |route: &RequestedRoute| route.from.track().is_some_and(of) || of(route.to);
            notes.routes.retain(|route| !of_peer(route));
            let from_peer = |outlet: &RequestedOutlet| outlet.from.track().is_some_and(of);
            notes.outlets.retain(|outlet| !from_peer(outlet));
        }
        Command::SetBitrate { peer, bitrate } => notes.bitrates.push((peer, bitrate)),
        Command::DetectTalking { track, detection } => {
            match detection {
                Some(detection) => notes.talk.insert(track, detection),
                None => notes.talk.remove(&track),
            };
        }
        Command::MeasureSpeech { track, wanted } => {
            match wanted {
                true => notes.speech.insert(track),
                false => notes.speech.remove(&track),
            };
        }
        Command::SendData { peer, message, .. } => notes.data.push((peer, message)),
        Command::AddCandidate { peer, candidate } => {
            notes.candidates.push((peer, candidate));
        }
        Command::AddIngest(ingest) => {
            let NewIngest {
                id,
                options,
                status,
            } = *ingest;
            let parameter_sets = match &options.media {
                IngestMedia::Rtp(media) => media.h264_parameter_sets.clone(),
                IngestMedia::Data(_) => None,
            };
            notes.ingests.push(RequestedIngest {
                id,
                parameter_sets,
                options: Arc::new(options),
                status,
                enabled: true,
            });
        }
        Command::SetIngestEnabled { ingest, enabled } => {
            for known in notes.ingests.iter_mut().filter(|known| known.id == ingest) {
                known.enabled = enabled;
            }
        }
        Command::SetIngestParameterSets { ingest, sets } => {
            let known = notes.ingests.iter_mut().find(|known| known.id == ingest);
            if let Some(known) = known {
                known.parameter_sets = sets;
            }
        }
        Command::RemoveIngest { ingest, .. } => {
            notes.ingests.retain(|known| known.id != ingest);
            notes.listening.remove(&ingest);
            let from = SourceRef::Ingest(ingest);
            notes.routes.retain(|route| route.from != from);
            notes.outlets.retain(|outlet| outlet.from != from);
        }
        Command::Listen { ingest, listening } => {
            match listening {
                Some(listening) => notes.listening.insert(ingest, listening),
                None => notes.listening.remove(&ingest),
            };
        }
        Command::AddLeg(leg) => {
            let (id, new, status) = *leg;
            notes.legs.push(RequestedLeg {
                id,
                new: Arc::new(new),
                status,
                remote: None,
                gates: LegGates::OPEN,
                from: None,
                keys_from: None,
                tones: Vec::new(),
            });
        }
        Command::SetLegRemote { leg, remote } => {
            notes.change_leg(leg, |leg| leg.remote = Some(*remote));
        }
        Command::SetLegGates { leg, gates } => notes.change_leg(leg, |leg| leg.gates = gates),
        Command::RouteToLeg { leg, from, options } => {
            notes.change_leg(leg, |leg| leg.from = from.map(|from| (from, *options)));
        }
        Command::KeysToLeg { leg, from } => notes.change_leg(leg, |leg| leg.keys_from = from),
        Command::SendTones { leg, tones } => notes.change_leg(leg, |leg| leg.tones.push(*tones)),
        Command::RemoveLeg { leg, .. } => {
            notes.legs.retain(|known| known.id != leg);
            let from = SourceRef::Ingest(leg.ingest());
            notes.routes.retain(|route| route.from != from);
            notes.outlets.retain(|outlet| outlet.from != from);
        }
        Command::KeepKeyframe { source, keep } => {
            notes.kept.retain(|(of, _)| *of != source);
            notes.kept.extend(keep.map(|keep| (source, keep)));
        }
        Command::KeyframeInterval { source, interval } => {
            notes.intervals.retain(|(of, _)| *of != source);
            notes
                .intervals
                .extend(interval.map(|interval| (source, interval)));
        }
        Command::SetOpaque { peer } => {
            notes.opaque.insert(peer);
        }
        Command::Stats { peer, reply } => {
            notes.stats_asked += 1;
            if let Some(stats) = notes.stats.get(&peer) {
                // Whoever asked may have gone.
                let _ = reply.send(stats.clone());
            } else if notes.silent.contains(&peer) {
                notes.unanswered.push(Arc::new(reply));
            }
        }
        Command::LineStats { peers, reply } => {
            notes.stats_asked += peers.len();
            let of = |peer: PeerId| {
                let stats = notes.stats.get(&peer)?;
                let lines = LineStats {
                    media: stats.media.clone(),
                    remb: stats.remb,
                };
                Some((peer, lines))
            };
            // Whoever asked may have gone.
            let _ = reply.send(peers.into_iter().filter_map(of).collect());
        }
        Command::SourceKeyframes { source } => notes.keyframes.push(source),
        Command::OutletKeyframe { outlet } => notes.outlet_keyframes.push(outlet),
        _ => {}
    }
}

/// Stands in for what a started media plane has: no workers, an empty certificate, and events made by hand.
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
