//! A leg: one medium with a far end, by a pair of ports of its own.

use std::sync::Arc;

use portunus_media::ingest::IngestEnd;
use portunus_media::leg::{AddedLeg, LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};
use portunus_media::{MediaPlane, RouteId, RouteOptions, SourceRef};
use portunus_rtp::Ssrc;

use crate::ports::bind_pair;
use crate::{LegError, LegOptions, Medium};

/// One medium with a far end that knows no ICE and no DTLS: RTP or SRTP over UDP, both ways by the same port. It ends when it is
/// dropped.
///
/// It is opened before the far end is known, so that its ports can stand in an offer. [`Leg::set_remote`] says who is there, at
/// the answer and again whenever that changes; what comes and goes stays one stream. To whoever receives from
/// [`Leg::source`], SSRC, sequence numbers and timestamps go on, whatever the far end does to them; to the far end they go on, whatever
/// is routed into the leg.
///
/// All methods return at once, and take effect in their order.
#[derive(Debug)]
pub struct Leg {
    media: MediaPlane,
    added: AddedLeg,
    medium: Medium,
    port: u16,
    rtcp_port: u16,
    removed: bool,
}

impl Leg {
    /// Opens a leg. Nothing is taken or sent before [`Leg::set_remote`]; the gates are open.
    pub fn open(media: &MediaPlane, options: LegOptions) -> Result<Self, LegError> {
        let (rtp, rtcp) = bind_pair(&options.ports, options.interface.as_deref())?;
        for socket in [&rtp, &rtcp] {
            socket.set_dscp(options.dscp);
        }
        let (port, rtcp_port) = (rtp.port(), rtcp.port());
        let added = media.add_leg(NewLeg {
            rtp,
            rtcp,
            video: options.medium == Medium::Video,
            worker: options.worker,
            silence: options.silence,
            hears_source: options.hears_source,
            hears_unknown: options.hears_unknown,
            tell: options.tell,
        });
        Ok(Self {
            media: media.clone(),
            added,
            medium: options.medium,
            port,
            rtcp_port,
            removed: false,
        })
    }

    /// Its name in [`crate::LegNews`].
    pub fn id(&self) -> LegId {
        self.added.id
    }

    /// What it carries.
    pub fn medium(&self) -> Medium {
        self.medium
    }

    /// The UDP port of RTP, which is even.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The UDP port of RTCP: the next one.
    pub fn rtcp_port(&self) -> u16 {
        self.rtcp_port
    }

    /// What comes from the far end: to be routed to tracks of peers, recorded and forwarded as any source.
    pub fn source(&self) -> SourceRef {
        self.added.source()
    }

    /// The media worker that it lives on.
    pub fn worker(&self) -> usize {
        self.added.id.worker()
    }

    /// The SSRC of what it sends.
    pub fn ssrc(&self) -> Ssrc {
        self.added.status.ssrc()
    }

    /// The way from what is routed into it to the far end, for threads that feed ingests of its worker to redirect
    /// ([`portunus_media::ThreadFeed`]). Nothing is to be routed into it otherwise meanwhile.
    pub fn route(&self) -> RouteId {
        self.added.id.route()
    }

    /// Says where the far end is now, and what was agreed on with it.
    pub fn set_remote(&self, remote: LegRemote) {
        self.media.set_leg_remote(self.id(), remote);
    }

    /// Opens and closes its ways: for hold, `a=sendonly` and the like.
    pub fn set_gates(&self, gates: LegGates) {
        self.media.set_leg_gates(self.id(), gates);
    }

    /// Sends what a source brings to the far end from now on; none: nothing. Of a source with simulcast the lowest encoding is taken,
    /// as telephones expect.
    pub fn route_from(&self, source: Option<SourceRef>) {
        let options = RouteOptions {
            substream: 0,
            ..RouteOptions::default()
        };
        self.route_layers_from(source, options);
    }

    /// The same with a choice of layers.
    pub fn route_layers_from(&self, source: Option<SourceRef>, options: RouteOptions) {
        self.media.route_to_leg(self.id(), source, options);
    }

    /// Passes the keys on that are pressed at a source (RFC 4733), while something else is routed into the leg that was made of it, such as
    /// a transcoded stream; none: no more.
    pub fn keys_from(&self, source: Option<SourceRef>) {
        self.media.keys_to_leg(self.id(), source);
    }

    /// Asks the far end for a keyframe, by RTCP: at most one request a second leaves.
    pub fn request_keyframe(&self) {
        self.media.request_source_keyframe(self.source());
    }

    /// Presses keys of a telephone, for the far end or for the near side to hear.
    pub fn send_tones(&self, tones: LegTones) {
        self.media.send_tones(self.id(), tones);
    }

    /// How it does.
    pub fn status(&self) -> &Arc<LegStatus> {
        &self.added.status
    }

    /// Ends it. Whoever needs its ports waits for what is returned.
    pub fn close(mut self) -> IngestEnd {
        self.removed = true;
        self.media.remove_leg(self.id())
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        if !self.removed {
            // Nobody waits for the ports.
            let _ = self.media.remove_leg(self.id());
        }
    }
}
