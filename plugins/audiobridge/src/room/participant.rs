//! Someone who has joined a room.

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

use crate::codec::sdp_codec;
use crate::line::Line;
use crate::options::RoomOptions;
use crate::settings::Settings;

/// Someone who has joined a room.
#[derive(Debug)]
pub(crate) struct Participant {
    pub(super) id: Id,
    /// What the mixer knows it by.
    pub(super) number: ParticipantId,
    pub(super) who: Who,
    /// It has shown the room's secret: it is heard in a room that is muted, too.
    pub(super) admin: bool,
    pub(super) settings: Settings,
    pub(super) link: Link,
    /// Media can flow.
    pub(super) setup: bool,
    pub(super) talking: bool,
    pub(super) recorded: Recorded,
}

/// Who a participant is.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// A client of this plugin.
    Client(Handle),
    /// Somebody on a telephone, whom another plugin has brought in; it is told what becomes of the caller.
    Caller(mpsc::Sender<CallerNews>),
}

impl Who {
    /// The handle of a client.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Who::Client(handle) => Some(handle),
            Who::Caller(_) => None,
        }
    }

    /// Tells a client something. Callers hear the room, and nothing else of it.
    fn push(&self, event: impl Into<Value>) {
        if let Who::Client(handle) = self {
            handle.push(None, event, None);
        }
    }

    /// It is out of the room, and loses its media.
    pub(super) fn close(&self, why: &'static str) {
        match self {
            Who::Client(handle) => handle.close_pc(),
            // A queue that is full belongs to a caller who is told that it is out already.
            Who::Caller(tell) => drop(tell.try_send(CallerNews::Out(why))),
        }
    }

    /// It was muted, or is heard again; a client sees that in what all are told.
    pub(super) fn muted(&self, muted: bool) {
        if let Who::Caller(tell) = self {
            // A caller who does not listen finds out when it speaks.
            let _ = tell.try_send(CallerNews::Muted(muted));
        }
    }
}

/// How media flows to and from a participant.
#[derive(Debug)]
pub(crate) enum Link {
    /// Not at all yet.
    None,
    /// By its PeerConnection.
    Peer(PeerLink),
    /// By plain RTP.
    Rtp(RtpLink),
    /// By a telephone.
    Phone(Arc<RtpLeg>),
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
    /// What is sent both ways, and where to.
    pub(crate) options: RtpLegOptions,
    /// In-band FEC is sent.
    pub(crate) fec: bool,
    /// Its packets say how loud they are.
    pub(crate) levels: bool,
    /// The address that it was told.
    pub(crate) local_ip: String,
    /// Where is sent to is still to be said.
    pub(crate) offered: bool,
}

/// Whether somebody is recorded, and into what.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) wanted: Option<RecordWish>,
    pub(super) running: Option<JointRecording>,
}

/// A recording that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecordWish {
    /// What the file's name begins with; none: what nobody else has.
    pub(crate) base: Option<String>,
    /// What the file is like; none: as the room has it.
    pub(crate) format: Option<Format>,
    /// Whoever asks may know what the disk is like.
    pub(crate) told_why: bool,
}

impl Participant {
    /// Whether it is the client of this handle.
    pub(crate) fn is(&self, handle: HandleId) -> bool {
        self.who.handle().is_some_and(|own| own.id() == handle)
    }

    /// Tells the client something.
    pub(super) fn push(&self, event: impl Into<Value>) {
        self.who.push(event);
    }

    /// Tells the client what others are told as well.
    pub(super) fn tell(&self, notice: &Notice) {
        if let Some(client) = self.who.handle() {
            client.tell_notice(notice);
        }
    }

    /// As others see it; `full` says whether it talks, too, as those are told who have just come.
    pub(super) fn shown(&self, room: &RoomOptions, full: bool) -> Object {
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

    /// Whether its packets say how loud they are, and the room wants to know.
    pub(super) fn has_levels(&self, room: &RoomOptions) -> bool {
        let said = match &self.link {
            Link::None | Link::Phone(_) => false,
            Link::Peer(peer) => peer.line.levels,
            Link::Rtp(rtp) => rtp.levels,
        };
        said && room.audiolevel_ext
    }

    /// The same for the mixer.
    pub(super) fn mixed(&self, room: &RoomOptions) -> ParticipantOptions {
        let fec = match &self.link {
            Link::None | Link::Phone(_) => false,
            Link::Peer(peer) => peer.line.fec,
            Link::Rtp(rtp) => rtp.fec,
        };
        let levels = self.has_levels(room);
        self.settings.mixed(room, self.admin, (levels, fec))
    }

    /// Where what it sends comes from, and where what it hears goes.
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
                // Until it is known where it is there is nowhere to send to.
                let out = rtp.options.remote.map(|_| Out::Leg(Arc::clone(&rtp.leg)));
                (Some(source), out)
            }
            Link::Phone(leg) => (Some(leg.source()), Some(Out::Leg(Arc::clone(leg)))),
        }
    }

    /// Whether what it sends is let in, in a room that is muted or is not.
    pub(super) fn is_heard(&self, room_muted: bool) -> bool {
        let settings = &self.settings;
        self.setup && !settings.muted && !settings.suspended && (!room_muted || self.admin)
    }

    /// What is in a recording of it.
    pub(super) fn content(&self) -> RecordedMedia {
        let red = matches!(&self.link, Link::Peer(peer) if peer.line.red);
        RecordedMedia::codec(sdp_codec(self.settings.codec)).with_red(red)
    }
}
