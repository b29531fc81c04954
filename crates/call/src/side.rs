//! One medium of a call: its leg, and the routes between the leg and the client.

use portunus_audio::{AudioCodec, AudioError, TranscodedSide, Transcoder};
use portunus_core::media::{RouteId, RouteOptions, SourceRef, TrackRef};
use portunus_core::sdp::negotiated::Codec;
use portunus_core::sdp::plain::{LocalPorts, PlainCodec, PlainMedia, SdesKey, Suite, Transcoding};
use portunus_core::sdp::{CodecSpec, Kind};
use portunus_core::{ExtensionMap, Handle, Mid};
use portunus_leg::{
    KeyframeAsking, Leg, LegGates, LegPayload, LegRemote, LegRtcp, LegSrtp, Profile, SrtpKey,
};

use crate::CallSettings;

/// One medium of a call.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) kind: Kind,
    pub(crate) leg: Leg,
    joined: Option<Joined>,
    remote: Option<LegRemote>,
    gates: LegGates,
}

/// The routes between a leg and the client.
#[derive(Debug)]
struct Joined {
    /// The client's m-line.
    mid: Mid,
    /// The codecs of the client and of the far end, if they have none in common.
    codecs: Option<(AudioCodec, AudioCodec)>,
    /// The route from the far end to the client.
    to_client: Option<RouteId>,
    /// Dropping it ends the transcoding.
    _transcoder: Option<Transcoder>,
}

impl Side {
    pub(crate) fn new(kind: Kind, leg: Leg) -> Self {
        Side {
            kind,
            leg,
            joined: None,
            remote: None,
            gates: LegGates::OPEN,
        }
    }

    pub(crate) fn ports(&self) -> LocalPorts {
        LocalPorts {
            rtp: self.leg.port(),
            rtcp: self.leg.rtcp_port(),
        }
    }

    /// Returns the source of the far end's media.
    pub(crate) fn source(&self) -> SourceRef {
        self.leg.source()
    }

    /// Applies the negotiation and the open directions. Without `agreed` nothing is sent or taken
    /// any more; the ports stay.
    pub(crate) fn apply(
        &mut self,
        agreed: Option<&PlainMedia>,
        handle: &Handle,
        settings: &CallSettings,
        open: LegGates,
    ) {
        let Some(agreed) = agreed else {
            return self.rest(handle);
        };
        let remote = remote(agreed, settings.latching);
        if self.remote.as_ref() != Some(&remote) {
            self.leg.set_remote(remote.clone());
            self.remote = Some(remote);
        }
        // The far end's media is always accepted, since it may precede descriptions.
        self.set_gates(LegGates {
            send: open.send && agreed.far_direction.receives(),
            receive: open.receive,
        });
        let codecs = agreed.transcoding.as_ref().and_then(codecs);
        let is_joined = |joined: &Joined| {
            joined.mid == agreed.mid && joined.codecs == codecs && joined.to_client.is_some()
        };
        if self.joined.as_ref().is_some_and(is_joined) {
            return;
        }
        self.part(handle);
        let transcoder = codecs
            .zip(handle.track(agreed.mid))
            .and_then(|(codecs, track)| self.transcode(track, codecs, settings));
        let track = handle.track(agreed.mid).map(SourceRef::from);
        let (to_far, to_client) = match &transcoder {
            Some(transcoder) => {
                self.leg.keys_from(track);
                (Some(transcoder.to_far()), transcoder.to_near())
            }
            None => (track, self.leg.source()),
        };
        self.leg.route_from(to_far);
        let options = RouteOptions::default();
        self.joined = Some(Joined {
            mid: agreed.mid,
            codecs,
            to_client: handle.route_from(to_client, agreed.mid, options),
            _transcoder: transcoder,
        });
    }

    /// Transcodes both directions between the client's codec and the far end's.
    fn transcode(
        &self,
        track: TrackRef,
        (near, far): (AudioCodec, AudioCodec),
        settings: &CallSettings,
    ) -> Option<Transcoder> {
        let near = TranscodedSide {
            worker: Some(track.peer.worker()),
            ..TranscodedSide::new(track.into(), near)
        };
        let far = TranscodedSide {
            worker: Some(self.leg.worker()),
            ..TranscodedSide::new(self.leg.source(), far)
        };
        let made = settings.audio.as_ref()?.transcode(near, far);
        let failed = |error: &AudioError| tracing::warn!("a call is not transcoded: {error}");
        made.inspect_err(failed).ok()
    }

    /// Closes both directions.
    pub(crate) fn rest(&mut self, handle: &Handle) {
        self.set_gates(LegGates {
            send: false,
            receive: false,
        });
        self.part(handle);
    }

    /// Ends the routes to and from the client.
    pub(crate) fn part(&mut self, handle: &Handle) {
        let Some(joined) = self.joined.take() else {
            return;
        };
        self.leg.route_from(None);
        if joined.codecs.is_some() {
            self.leg.keys_from(None);
        }
        if let Some(route) = joined.to_client {
            handle.remove_route(route);
        }
    }

    fn set_gates(&mut self, gates: LegGates) {
        if self.gates != gates {
            self.leg.set_gates(gates);
            self.gates = gates;
        }
    }
}

/// Returns the codecs of the client and of the far end.
fn codecs(transcoding: &Transcoding) -> Option<(AudioCodec, AudioCodec)> {
    let audio = |codec| match codec {
        Codec::Opus => Some(AudioCodec::Opus),
        Codec::Pcmu => Some(AudioCodec::Pcmu),
        Codec::Pcma => Some(AudioCodec::Pcma),
        Codec::G722 => Some(AudioCodec::G722),
        _ => None,
    };
    let near = transcoding.browser.codec().and_then(audio)?;
    Some((near, audio(transcoding.far.codec)?))
}

/// Makes the far end's description for a leg.
pub(crate) fn remote(agreed: &PlainMedia, latching: bool) -> LegRemote {
    let far = agreed.transcoding.iter().map(|it| &it.far);
    let codecs: Vec<&PlainCodec> = agreed
        .codecs
        .iter()
        .chain(far)
        .chain(&agreed.events)
        .collect();
    let payload = |codec: &PlainCodec, pt| LegPayload {
        pt,
        codec: codec.codec,
        clock_rate: codec.spec.clock_rate,
    };
    // Some far ends send with the numbers of their answer instead of those of the offer (RFC 3264
    // section 6.1).
    let is_ours = |pt| {
        let is_unanswered = |spec: &CodecSpec| spec.pt == pt;
        codecs.iter().any(|codec| codec.recv == pt) || agreed.unanswered.iter().any(is_unanswered)
    };
    let theirs = codecs.iter().filter(|codec| !is_ours(codec.send));
    let unanswered = |spec: &CodecSpec| {
        Some(LegPayload {
            pt: spec.pt,
            codec: spec.codec()?,
            clock_rate: spec.clock_rate,
        })
    };
    let mut extensions = ExtensionMap::default();
    for extmap in &agreed.extensions {
        if let Some(kind) = extmap.kind() {
            extensions.set(kind, extmap.id);
        }
    }
    LegRemote {
        rtp: agreed.rtp,
        rtcp: match agreed.rtcp {
            _ if agreed.rtcp_mux => LegRtcp::Mux,
            Some(address) => LegRtcp::At(address),
            None => LegRtcp::Never,
        },
        incoming: codecs
            .iter()
            .map(|codec| payload(codec, codec.recv))
            .chain(agreed.unanswered.iter().filter_map(unanswered))
            .chain(theirs.map(|codec| payload(codec, codec.send)))
            .collect(),
        outgoing: codecs
            .iter()
            .map(|codec| payload(codec, codec.send))
            .collect(),
        extensions,
        srtp: srtp(agreed),
        keyframes: KeyframeAsking::Pli,
        latching,
    }
}

fn srtp(agreed: &PlainMedia) -> Option<LegSrtp> {
    let (remote, local) = agreed.remote_key.as_ref().zip(agreed.local_key.as_ref())?;
    let key = |key: &SdesKey| SrtpKey::new(profile(key.suite()), key.key_and_salt()).ok();
    Some(LegSrtp {
        incoming: key(remote)?,
        outgoing: key(local)?,
    })
}

const fn profile(suite: Suite) -> Profile {
    match suite {
        Suite::AesCm128HmacSha1_80 => Profile::Aes128CmSha1_80,
        Suite::AesCm128HmacSha1_32 => Profile::Aes128CmSha1_32,
        Suite::AeadAes128Gcm => Profile::AeadAes128Gcm,
        Suite::AeadAes256Gcm => Profile::AeadAes256Gcm,
    }
}

/// Returns the codec of a side's recordings: the first negotiated one.
pub(crate) fn first_codec(agreed: &PlainMedia) -> Option<&PlainCodec> {
    let media = |codec: &&PlainCodec| codec.codec != Codec::ComfortNoise;
    agreed.codecs.iter().find(media)
}
