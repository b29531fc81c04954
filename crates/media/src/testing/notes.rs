//! Records the commands to a detached media plane.

use std::sync::{Arc, Mutex, PoisonError};

use portunus_graph::{PeerId, RouteId, SourceRef, TrackRef};

use super::detached::{Requested, RequestedIngest, RequestedLeg, RequestedOutlet, RequestedRoute};
use crate::LineStats;
use crate::command::{
    Command, IngestCommand, LegCommand, LegSetup, NewIngest, NodeLinkCommand, OutletCommand,
    PeerCommand, RouteCommand, SourceCommand,
};
use crate::ingest::IngestMedia;
use crate::leg::LegGates;

/// What a detached media plane records, shared by its clones.
pub(crate) type Notes = Arc<Mutex<Requested>>;

/// Records a command.
pub(crate) fn note(notes: &Notes, command: Command) {
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    match command {
        Command::Peer(peer, command) => note_peer(&mut notes, peer, command),
        Command::Route(route, command) => note_route(&mut notes, route, command),
        Command::Outlet(OutletCommand::Add(outlet)) => {
            notes.outlets.push(RequestedOutlet::new(*outlet));
        }
        Command::Outlet(OutletCommand::RequestKeyframe(outlet)) => {
            notes.outlet_keyframes.push(outlet);
        }
        Command::Source(source, command) => note_source(&mut notes, source, command),
        Command::Ingest(command) => note_ingest(&mut notes, command),
        Command::Leg(command) => note_leg(&mut notes, command),
        Command::NodeLink(NodeLinkCommand::Receive(stream)) => notes.relayed.push(stream),
        Command::NodeLink(NodeLinkCommand::Forget(link, ssrc)) => {
            notes
                .relayed
                .retain(|it| (it.link, it.ssrc) != (link, ssrc));
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
            // The caller may be gone.
            let _ = reply.send(peers.into_iter().filter_map(of).collect());
        }
        _ => {}
    }
}

fn note_peer(notes: &mut Requested, peer: PeerId, command: PeerCommand) {
    match command {
        PeerCommand::Close => {
            let of = |end: TrackRef| end.peer == peer;
            let of_peer =
                |route: &RequestedRoute| route.from.track().is_some_and(of) || of(route.to);
            notes.routes.retain(|route| !of_peer(route));
            let from_peer = |outlet: &RequestedOutlet| outlet.from.track().is_some_and(of);
            notes.outlets.retain(|outlet| !from_peer(outlet));
        }
        PeerCommand::SetBitrate(bitrate) => notes.bitrates.push((peer, bitrate)),
        PeerCommand::DetectTalking { mid, detection } => {
            let track = TrackRef { peer, mid };
            match detection {
                Some(detection) => notes.talk.insert(track, detection),
                None => notes.talk.remove(&track),
            };
        }
        PeerCommand::MeasureSpeech { mid, wanted } => {
            let track = TrackRef { peer, mid };
            match wanted {
                true => notes.speech.insert(track),
                false => notes.speech.remove(&track),
            };
        }
        PeerCommand::OpenData { label, .. } => notes.opened.push((peer, label)),
        PeerCommand::SendData { message, .. } => notes.data.push((peer, message)),
        PeerCommand::AddCandidate(candidate) => notes.candidates.push((peer, candidate)),
        PeerCommand::SetOpaque => {
            notes.opaque.insert(peer);
        }
        PeerCommand::Stats(reply) => {
            notes.stats_asked += 1;
            if let Some(stats) = notes.stats.get(&peer) {
                // The caller may be gone.
                let _ = reply.send(stats.clone());
            } else if notes.silent.contains(&peer) {
                notes.unanswered.push(Arc::new(reply));
            }
        }
        _ => {}
    }
}

fn note_route(notes: &mut Requested, id: RouteId, command: RouteCommand) {
    match command {
        RouteCommand::Add { from, to, options } => notes.routes.push(RequestedRoute {
            id,
            from,
            to,
            options,
        }),
        RouteCommand::Set(options) => {
            for known in notes.outlets.iter_mut().filter(|known| known.id == id) {
                known.options = options.clone();
            }
            for known in notes.routes.iter_mut().filter(|known| known.id == id) {
                known.options = options.clone();
            }
        }
        RouteCommand::Remove => {
            notes.routes.retain(|known| known.id != id);
            notes.outlets.retain(|known| known.id != id);
        }
    }
}

fn note_source(notes: &mut Requested, source: SourceRef, command: SourceCommand) {
    match command {
        SourceCommand::KeepKeyframe(keep) => {
            notes.kept.retain(|(of, _)| *of != source);
            notes.kept.extend(keep.map(|keep| (source, keep)));
        }
        SourceCommand::SetKeyframeInterval(interval) => {
            notes.intervals.retain(|(of, _)| *of != source);
            let interval = interval.map(|interval| (source, interval));
            notes.intervals.extend(interval);
        }
        SourceCommand::RequestKeyframes => notes.keyframes.push(source),
        _ => {}
    }
}

fn note_ingest(notes: &mut Requested, command: IngestCommand) {
    match command {
        IngestCommand::Add(ingest) => {
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
        IngestCommand::SetEnabled { ingest, enabled } => {
            for known in notes.ingests.iter_mut().filter(|known| known.id == ingest) {
                known.enabled = enabled;
            }
        }
        IngestCommand::SetParameterSets { ingest, sets } => {
            let known = notes.ingests.iter_mut().find(|known| known.id == ingest);
            if let Some(known) = known {
                known.parameter_sets = sets;
            }
        }
        IngestCommand::Listen { ingest, listening } => {
            match listening {
                Some(listening) => notes.listening.insert(ingest, listening),
                None => notes.listening.remove(&ingest),
            };
        }
        IngestCommand::Remove { ingest, .. } => {
            notes.ingests.retain(|known| known.id != ingest);
            notes.listening.remove(&ingest);
            end_source(notes, SourceRef::Ingest(ingest));
        }
        IngestCommand::AddThreadFeed(_) => {}
    }
}

fn note_leg(notes: &mut Requested, command: LegCommand) {
    match command {
        LegCommand::Add(leg) => {
            let LegSetup { id, new, status } = *leg;
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
        LegCommand::SetRemote { leg, remote } => {
            notes.change_leg(leg, |leg| leg.remote = Some(*remote));
        }
        LegCommand::SetGates { leg, gates } => notes.change_leg(leg, |leg| leg.gates = gates),
        LegCommand::Route { leg, from, options } => {
            notes.change_leg(leg, |leg| leg.from = from.map(|from| (from, *options)));
        }
        LegCommand::PassKeys { leg, from } => notes.change_leg(leg, |leg| leg.keys_from = from),
        LegCommand::SendTones { leg, tones } => {
            notes.change_leg(leg, |leg| leg.tones.push(*tones));
        }
        LegCommand::Remove { leg, .. } => {
            notes.legs.retain(|known| known.id != leg);
            end_source(notes, SourceRef::Ingest(leg.ingest()));
        }
    }
}

fn end_source(notes: &mut Requested, from: SourceRef) {
    notes.routes.retain(|route| route.from != from);
    notes.outlets.retain(|outlet| outlet.from != from);
}
