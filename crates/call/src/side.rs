//! One medium of a call: its leg, and the routes between that and the client.

use portunus_core::media::{RouteId, RouteOptions, SourceRef};
use portunus_core::sdp::Kind;
use portunus_core::sdp::negotiated::Codec;
use portunus_core::sdp::plain::{LocalPorts, PlainCodec, PlainMedia, SdesKey, Suite};
use portunus_core::{ExtensionMap, Handle, Mid};
use portunus_leg::{
    KeyframeAsking, Leg, LegGates, LegPayload, LegRemote, LegRtcp, LegSrtp, Profile, SrtpKey,
};

/// One medium of a call.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) kind: Kind,
    pub(crate) leg: Leg,
    /// The client's m-line that it is joined to.
    mid: Option<Mid>,
    /// From the far end to the client.
    to_client: Option<RouteId>,
    remote: Option<LegRemote>,
    gates: LegGates,
}

impl Side {
    pub(crate) fn new(kind: Kind, leg: Leg) -> Self {
        Side {
            kind,
            leg,
            mid: None,
            to_client: None,
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

    /// What comes from the far end.
    pub(crate) fn source(&self) -> SourceRef {
        self.leg.source()
    }

    /// What is agreed on, and which ways are open. `agreed` none: nothing is sent or taken any more; the ports stay.
    pub(crate) fn apply(
        &mut self,
        agreed: Option<&PlainMedia>,
        handle: &Handle,
        latching: bool,
        open: LegGates,
    ) {
        let Some(agreed) = agreed else {
            return self.rest(handle);
        };
        let remote = remote(agreed, latching);
        if self.remote.as_ref() != Some(&remote) {
            self.leg.set_remote(remote.clone());
            self.remote = Some(remote);
        }
        // What the far end sends is taken, whatever it has said: media may be ahead of descriptions.
        self.set_gates(LegGates {
            send: open.send && agreed.far_direction.receives(),
            receive: open.receive,
        });
        if self.mid == Some(agreed.mid) && self.to_client.is_some() {
            return;
        }
        self.part(handle);
        let track = handle.track(agreed.mid);
        self.leg.route_from(track.map(SourceRef::from));
        let options = RouteOptions::default();
        self.to_client = handle.route_from(self.leg.source(), agreed.mid, options);
        self.mid = Some(agreed.mid);
    }

    /// Nothing is sent or taken.
    pub(crate) fn rest(&mut self, handle: &Handle) {
        self.set_gates(LegGates {
            send: false,
            receive: false,
        });
        self.part(handle);
    }

    /// Ends what goes on with the client.
    pub(crate) fn part(&mut self, handle: &Handle) {
        if self.mid.take().is_some() {
            self.leg.route_from(None);
        }
        if let Some(route) = self.to_client.take() {
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

/// The far end as legs are told of it.
fn remote(agreed: &PlainMedia, latching: bool) -> LegRemote {
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

/// The codec that a side is recorded in: the first of those agreed on.
pub(crate) fn first_codec(agreed: &PlainMedia) -> Option<&PlainCodec> {
    let media = |codec: &&PlainCodec| codec.codec != Codec::ComfortNoise;
    agreed.codecs.iter().find(media)
}
