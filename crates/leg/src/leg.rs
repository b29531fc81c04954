//! A leg: one medium with a far end, with its own pair of ports.

use std::sync::Arc;

use portunus_media::ingest::IngestEnd;
use portunus_media::leg::{AddedLeg, LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};
use portunus_media::{MediaPlane, RouteId, RouteOptions, SourceRef};
use portunus_rtp::Ssrc;

use crate::ports::bind_pair;
use crate::{LegError, LegOptions, Medium};

/// One medium with a far end without ICE and DTLS: RTP or SRTP over UDP, both directions on the
/// same port. Dropping it ends it.
///
/// It is opened before the far end is known, so that its ports can stand in an offer.
/// [`Leg::set_remote`] sets the far end, at the answer and at each change. The media stays one
/// stream: SSRC, sequence numbers and timestamps of [`Leg::source`] continue whatever the far end
/// does, and those to the far end continue whatever is routed into the leg.
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
    /// Opens a leg. Nothing is sent or accepted before [`Leg::set_remote`]; the gates are open.
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

    /// Returns its id in [`crate::LegNews`].
    pub fn id(&self) -> LegId {
        self.added.id
    }

    /// Returns its medium.
    pub fn medium(&self) -> Medium {
        self.medium
    }

    /// Returns the UDP port of RTP, which is even.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the UDP port of RTCP: the next one.
    pub fn rtcp_port(&self) -> u16 {
        self.rtcp_port
    }

    /// Returns the source of the far end's media, to be routed, recorded and forwarded like any
    /// other.
    pub fn source(&self) -> SourceRef {
        self.added.source()
    }

    /// Returns its media worker.
    pub fn worker(&self) -> usize {
        self.added.id.worker()
    }

    /// Returns the SSRC that it sends.
    pub fn ssrc(&self) -> Ssrc {
        self.added.status.ssrc()
    }

    /// Returns the route to the far end, for threads that feed ingests of its worker to redirect
    /// ([`portunus_media::ThreadFeed`]). Nothing else may be routed into it meanwhile.
    pub fn route(&self) -> RouteId {
        self.added.id.route()
    }

    /// Sets the far end's address, and the result of the negotiation.
    pub fn set_remote(&self, remote: LegRemote) {
        self.media.set_leg_remote(self.id(), remote);
    }

    /// Opens and closes its directions: for hold, `a=sendonly` and the like.
    pub fn set_gates(&self, gates: LegGates) {
        self.media.set_leg_gates(self.id(), gates);
    }

    /// Sends a source's media to the far end from now on, or nothing with `None`. Of simulcast it
    /// sends the lowest encoding, as telephones expect.
    pub fn route_from(&self, source: Option<SourceRef>) {
        let options = RouteOptions {
            substream: 0,
            ..RouteOptions::default()
        };
        self.route_layers_from(source, options);
    }

    /// As [`Leg::route_from`], with a choice of layers.
    pub fn route_layers_from(&self, source: Option<SourceRef>, options: RouteOptions) {
        self.media.route_to_leg(self.id(), source, options);
    }

    /// Passes on the keys pressed at a source (RFC 4733), while a stream made of it is routed into
    /// the leg, such as a transcoded one. `None` ends it.
    pub fn keys_from(&self, source: Option<SourceRef>) {
        self.media.keys_to_leg(self.id(), source);
    }

    /// Requests a keyframe of the far end by RTCP, at most once a second.
    pub fn request_keyframe(&self) {
        self.media.request_source_keyframe(self.source());
    }

    /// Sends telephone keys to the far end or to the near side.
    pub fn send_tones(&self, tones: LegTones) {
        self.media.send_tones(self.id(), tones);
    }

    /// Returns its status.
    pub fn status(&self) -> &Arc<LegStatus> {
        &self.added.status
    }

    /// Ends it. The result completes when its ports are free.
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
