//! A participant of a room.

use std::sync::Arc;

use portunus_audio::{Out, RtpLeg, RtpLegOptions};
use portunus_core::media::{SourceRef, TrackRef};
use portunus_core::record::{Format, JointRecording, RecordedMedia};
use portunus_core::{Handle, HandleId, Notice, Object};
use portunus_dsp::{ParticipantId, ParticipantOptions};
use portunus_resources::Id;
use portunus_telephony::CallerNews;
use serde_json::Value;
use tokio::sync::mpsc;

use super::far::FarLink;
use crate::cluster::FarClient;
use crate::codec::sdp_codec;
use crate::line::Line;
use crate::options::RoomOptions;
use crate::settings::Settings;

/// A participant of a room.
#[derive(Debug)]
pub(crate) struct Participant {
    pub(super) id: Id,
    /// Its number in the mixer.
    pub(super) number: ParticipantId,
    pub(super) who: Who,
    /// Whether it has shown the room's secret, so that it is heard even if the room is muted.
    pub(super) admin: bool,
    pub(super) settings: Settings,
    pub(super) link: Link,
    /// Whether media can flow.
    pub(super) setup: bool,
    pub(super) talking: bool,
    pub(super) recorded: Recorded,
}

/// The identity of a participant.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// A client of this plugin.
    Client(Handle),
    /// A caller of another plugin, which gets the news about its stay.
    Caller(mpsc::Sender<CallerNews>),
    /// A client of another node of the cluster.
    Far(FarClient),
}

impl Who {
    /// Returns the handle of a client of this node.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Who::Client(handle) => Some(handle),
            Who::Caller(_) | Who::Far(_) => None,
        }
    }

    /// Returns the client, if it is one of another node.
    pub(super) fn far(&self) -> Option<&FarClient> {
        match self {
            Who::Far(client) => Some(client),
            Who::Client(_) | Who::Caller(_) => None,
        }
    }

    /// Sends an event to a client. Callers get no events.
    fn push(&self, event: impl Into<Value>) {
        match self {
            Who::Client(handle) => handle.push(None, event, None),
            Who::Far(client) => client.push(event.into()),
            Who::Caller(_) => {}
        }
    }

    /// Closes its media, because it has left the room.
    pub(super) fn close(&self, why: &'static str) {
        match self {
            Who::Client(handle) => handle.close_pc(),
            // A full queue means that the caller knows it already.
            Who::Caller(tell) => drop(tell.try_send(CallerNews::Out(why))),
            Who::Far(client) => client.close(),
        }
    }

    /// Tells a caller that it is muted or unmuted. Clients learn it by an event.
    pub(super) fn muted(&self, muted: bool) {
        if let Who::Caller(tell) = self {
            // A caller with a full queue finds out when it speaks.
            let _ = tell.try_send(CallerNews::Muted(muted));
        }
    }
}

/// The path of media to and from a participant.
#[derive(Debug)]
pub(crate) enum Link {
    /// No media yet.
    None,
    /// A PeerConnection.
    Peer(PeerLink),
    /// Plain RTP.
    Rtp(RtpLink),
    /// A telephone.
    Phone(Arc<RtpLeg>),
    /// The relays to and from another node.
    Far(Box<FarLink>),
}

/// An m-line of the participant's PeerConnection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerLink {
    pub(crate) track: TrackRef,
    pub(crate) line: Line,
}

/// A leg of plain RTP.
#[derive(Debug)]
pub(crate) struct RtpLink {
    pub(crate) leg: Arc<RtpLeg>,
    /// Codec, ports and remote address.
    pub(crate) options: RtpLegOptions,
    /// Whether in-band FEC is sent.
    pub(crate) fec: bool,
    /// Whether its packets carry audio levels.
    pub(crate) levels: bool,
    /// The server's address, as told to the participant.
    pub(crate) local_ip: String,
    /// Whether the remote address follows in a later request.
    pub(crate) awaits_remote: bool,
}

/// The recording of a participant.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) wanted: Option<RecordWish>,
    pub(super) running: Option<JointRecording>,
}

/// A wanted recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecordWish {
    /// The start of the file's name. `None`: a unique name.
    pub(crate) base: Option<String>,
    /// The file's format. `None`: the format of the room.
    pub(crate) format: Option<Format>,
    /// Whether the client may know the reason of a failure, which can tell about the disk.
    pub(crate) may_know_reason: bool,
}

impl Participant {
    /// Whether it is the client of this handle.
    pub(crate) fn is(&self, handle: HandleId) -> bool {
        self.who.handle().is_some_and(|own| own.id() == handle)
    }

    /// Sends an event to the client.
    pub(super) fn push(&self, event: impl Into<Value>) {
        self.who.push(event);
    }

    /// Sends a notice for several clients to the client, if it is one of this node.
    pub(super) fn send(&self, notice: &Notice) {
        if let Some(client) = self.who.handle() {
            client.send_notice(notice);
        }
    }

    /// Describes it to others. `full` adds whether it talks, for a client that has just joined.
    pub(super) fn to_json(&self, room: &RoomOptions, full: bool) -> Object {
        let settings = &self.settings;
        let talking = (full && self.has_levels(room)).then_some(self.talking);
        Object::new()
            .with("id", self.id.to_json())
            .with_some("display", settings.display.as_deref())
            .with("setup", self.setup)
            .with("muted", settings.muted)
            .with_some("talking", talking)
            .with_some(
                "spatial_position",
                room.spatial.then_some(settings.position),
            )
            .with_some("suspended", settings.suspended.then_some(true))
    }

    /// Whether its packets carry audio levels, and the room uses them.
    pub(super) fn has_levels(&self, room: &RoomOptions) -> bool {
        let said = match &self.link {
            Link::None | Link::Phone(_) => false,
            Link::Peer(peer) => peer.line.levels,
            Link::Rtp(rtp) => rtp.levels,
            Link::Far(far) => far.has_levels(),
        };
        said && room.audiolevel_ext
    }

    /// Returns its options for the mixer.
    pub(super) fn mixed(&self, room: &RoomOptions) -> ParticipantOptions {
        let fec = match &self.link {
            Link::None | Link::Phone(_) => false,
            Link::Peer(peer) => peer.line.fec,
            Link::Rtp(rtp) => rtp.fec,
            Link::Far(far) => far.fec(),
        };
        let levels = self.has_levels(room);
        self.settings.mixed(room, self.admin, levels, fec)
    }

    /// Returns its source and its output in the mixer.
    pub(super) fn ends(&self) -> (Option<SourceRef>, Option<Out>) {
        match &self.link {
            Link::None => (None, None),
            Link::Peer(PeerLink { track, line }) => {
                let usable = line.codec == Some(self.settings.codec);
                let source = (usable && line.receives).then_some(SourceRef::Track(*track));
                let out = (usable && line.sends).then_some(Out::Track(*track));
                (source, out)
            }
            Link::Rtp(rtp) => {
                let source = rtp.leg.source();
                // Without a remote address there is no output.
                let out = rtp.options.remote.map(|_| Out::Leg(Arc::clone(&rtp.leg)));
                (Some(source), out)
            }
            Link::Phone(leg) => (Some(leg.source()), Some(Out::Leg(Arc::clone(leg)))),
            Link::Far(far) => (far.source(), far.out()),
        }
    }

    /// Whether it is heard in the mix.
    pub(super) fn is_heard(&self, room_muted: bool) -> bool {
        let settings = &self.settings;
        self.setup && !settings.muted && !settings.suspended && (!room_muted || self.admin)
    }

    /// The source to record, or `None` if it has no link.
    pub(super) fn source(&self) -> Option<SourceRef> {
        match &self.link {
            Link::None => None,
            Link::Peer(peer) => {
                let track = self.who.handle()?.track(peer.line.mid)?;
                Some(track.into())
            }
            Link::Rtp(rtp) => Some(rtp.leg.source()),
            Link::Phone(leg) => Some(leg.source()),
            Link::Far(far) => far.source(),
        }
    }

    /// The content of its recording.
    pub(super) fn content(&self) -> RecordedMedia {
        let line = match &self.link {
            Link::Peer(peer) => Some(&peer.line),
            Link::None | Link::Rtp(_) | Link::Phone(_) | Link::Far(_) => None,
        };
        let is_far_red = matches!(&self.link, Link::Far(far) if far.red());
        RecordedMedia::codec(sdp_codec(self.settings.codec))
            .with_red(is_far_red || line.is_some_and(|line| line.red))
            .with_mid(line.map(|line| line.mid.as_str().to_owned()))
    }
}
