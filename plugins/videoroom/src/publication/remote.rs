//! Publishers of other servers, and publishers of ours on other servers: how their media goes between the two.
//!
//! All of a publisher goes to one UDP port. A stream is told by its SSRC, and messages stand behind an RTP header.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Weak;

use portunus_core::media::ingest::{DataIngest, Heard, IngestSrtp, Listening, RtpIngest, Sound};
use portunus_core::media::{
    Encodings, ForwardRtcp, Framing, Ingest, IngestBind, IngestError, IngestFeed, IngestId,
    IngestMedia, IngestOptions, IngestSocket, MediaPlane, SharedSocket, TalkDetection,
};
use portunus_core::{ExtensionKind, ExtensionMap, Mid, Ssrc};
use tokio::sync::mpsc;

use crate::id::Id;
use crate::publication::{ForwardRequest, Forwarder, Stream};
use crate::refusal::Refusal;
use crate::room::{Room, RoomState};

/// Simulcast encodings that a stream may have.
const ENCODINGS: u8 = 3;

/// What may wait to be taken of what was heard.
const SOUNDS: usize = 64;

/// The SSRC of a stream's lowest encoding.
const fn first_ssrc(index: usize) -> Ssrc {
    Ssrc((index as u32).wrapping_mul(10).wrapping_add(1_000))
}

/// What another server sends of a publisher.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    media: MediaPlane,
    rtp: SharedSocket,
    rtcp: SharedSocket,
    srtp: Option<IngestSrtp>,
    streams: Vec<(Mid, IngestId)>,
    heard: mpsc::Sender<Heard>,
}

/// Where another server's media is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) port: u16,
    pub(crate) rtcp_port: u16,
    pub(crate) interface: Option<String>,
    pub(crate) multicast: Option<Ipv4Addr>,
}

impl Remote {
    /// Opens the ports; what is heard comes by the receiver.
    pub(crate) fn open(
        media: MediaPlane,
        place: &Place,
        srtp: Option<IngestSrtp>,
    ) -> Result<(Self, mpsc::Receiver<Heard>), Refusal> {
        let bind = |port, multicast| -> Result<SharedSocket, IngestError> {
            let bind = IngestBind {
                interface: place.interface.clone(),
                multicast,
                ..IngestBind::new(port)
            };
            Ok(IngestSocket::bind(bind)?.into())
        };
        let refused = |error: IngestError| Refusal::Socket(error.to_string());
        let (heard, hears) = mpsc::channel(SOUNDS);
        let remote = Remote {
            rtp: bind(place.port, place.multicast).map_err(refused)?,
            // Reports come and go to one sender, by a port of our own.
            rtcp: bind(place.rtcp_port, None).map_err(refused)?,
            media,
            srtp,
            streams: Vec::new(),
            heard,
        };
        Ok((remote, hears))
    }

    /// Where RTP is waited for.
    pub(crate) fn local(&self) -> SocketAddr {
        self.rtp.local()
    }

    /// The port for RTCP.
    pub(crate) fn rtcp_port(&self) -> u16 {
        self.rtcp.port()
    }

    /// The source of a stream.
    pub(crate) fn source(&self, mid: Mid) -> Option<IngestId> {
        let known = self.streams.iter().find(|(known, _)| *known == mid);
        known.map(|(_, ingest)| *ingest)
    }

    /// Listens to a stream: when somebody talks, and how much is spoken.
    pub(crate) fn listen(&self, mid: Mid, talking: Option<TalkDetection>, speech: bool) {
        if let Some(ingest) = self.source(mid) {
            let listening = (talking.is_some() || speech).then(|| Listening {
                talking,
                speech,
                tell: self.heard.clone(),
            });
            self.media.listen(ingest, listening);
        }
    }

    fn mid_of(&self, ingest: IngestId) -> Option<Mid> {
        let known = self.streams.iter().find(|(_, known)| *known == ingest);
        known.map(|(mid, _)| *mid)
    }

    /// Asks the publisher for a keyframe.
    pub(crate) fn request_keyframe_on(&self, mid: Mid) {
        if let Some(ingest) = self.source(mid) {
            self.media.request_source_keyframe(ingest);
        }
    }

    /// Takes a stream in from now on, if it is not already; one that is encrypted end to end, if `e2ee`.
    pub(crate) fn take_in(&mut self, stream: &Stream, e2ee: bool) {
        if stream.disabled || self.source(stream.mid).is_some() {
            return;
        }
        let media = match stream.codec {
            Some(codec) => IngestMedia::Rtp(RtpIngest {
                extensions: extensions(stream),
                opaque: e2ee,
                svc: stream.svc,
                ..RtpIngest::new(codec.codec(), codec.clock_rate())
            }),
            None => IngestMedia::Data(DataIngest {
                label: "",
                text: false,
                keep_last: false,
                framed: true,
            }),
        };
        let feed = IngestFeed::Shared {
            rtp: self.rtp.clone(),
            rtcp: Some(self.rtcp.clone()),
            ssrc: first_ssrc(stream.index),
            encodings: if stream.simulcast { ENCODINGS } else { 1 },
        };
        let Ingest { id, .. } = self.media.add_ingest(IngestOptions {
            media,
            srtp: self.srtp.clone(),
            // They share sockets.
            worker: self.streams.first().map(|(_, ingest)| ingest.worker()),
            ..IngestOptions::rtp(portunus_core::sdp::Codec::Opus, 48_000, feed)
        });
        self.streams.push((stream.mid, id));
    }

    /// Takes nothing in any more, and closes the ports.
    pub(crate) fn close(&self) {
        for (_, ingest) in &self.streams {
            self.media.remove_ingest(*ingest);
        }
    }
}

/// Takes what is heard of a remote publisher until it is gone.
pub(crate) async fn hear(room: Weak<Room>, id: Id, mut hears: mpsc::Receiver<Heard>) {
    while let Some(Heard { ingest, sound }) = hears.recv().await {
        let Some(room) = room.upgrade() else { return };
        let mut state = room.lock();
        let person = state.people.get(&id);
        let remote = person.and_then(|person| person.origin.remote());
        let Some(mid) = remote.and_then(|remote| remote.mid_of(ingest)) else {
            continue;
        };
        match sound {
            Sound::Talking { talking, average } => {
                state.heard(&id, mid, talking, f64::from(average) / 100.0);
            }
            Sound::Speech(activity) => state.speech(&id, mid, activity),
        }
    }
}

fn extensions(stream: &Stream) -> ExtensionMap {
    let ids = stream.extensions;
    let known = [
        (ExtensionKind::AudioLevel, ids.audio_level),
        (ExtensionKind::VideoOrientation, ids.video_orientation),
        (ExtensionKind::PlayoutDelay, ids.playout_delay),
        (
            ExtensionKind::DependencyDescriptor,
            ids.dependency_descriptor,
        ),
    ];
    let mut extensions = ExtensionMap::default();
    for (kind, id) in known {
        if let Some(id) = id {
            extensions.set(kind, id);
        }
    }
    extensions
}

/// A publisher of ours on another server.
#[derive(Debug, Clone)]
pub(crate) struct Remotization {
    /// Its name.
    pub(crate) id: String,
    pub(crate) to: SocketAddr,
    pub(crate) rtcp: Option<ForwardRtcp>,
    pub(crate) srtp: Option<IngestSrtp>,
}

impl RoomState {
    /// Sends streams that a publisher has by now to the servers that it is published on.
    pub(crate) fn extend_remotizations(&mut self, id: &Id) {
        let media = self.people.get(id).and_then(|person| person.media.as_ref());
        let remotizations = media.map(|media| media.remotizations.clone());
        for remotization in remotizations.unwrap_or_default() {
            self.forward_remotely(id, &remotization);
        }
    }

    /// Sends to another server what it is not sent yet.
    pub(crate) fn forward_remotely(&mut self, id: &Id, to: &Remotization) {
        let media = self.people.get(id).and_then(|person| person.media.as_ref());
        let is_of = |forwarder: &Forwarder| forwarder.remote_id.as_deref() == Some(&to.id);
        let streams = media.into_iter().flat_map(|media| &media.streams);
        let missing = streams.filter(|s| !s.disabled && !s.forwarders.iter().any(is_of));
        let missing: Vec<_> = missing
            .map(|stream| (stream.mid, first_ssrc(stream.index), stream.simulcast))
            .collect();
        for (mid, first, simulcast) in missing {
            let encodings = if simulcast { ENCODINGS } else { 1 };
            for encoding in 0..encodings {
                let ssrc = Ssrc(first.0.wrapping_add(u32::from(encoding)));
                let request = ForwardRequest {
                    to: to.to,
                    rtcp: to.rtcp.clone(),
                    pt: None,
                    ssrc: Some(ssrc),
                    encodings: Encodings::Only(encoding),
                    srtp: to.srtp.clone(),
                    messages: Framing::Rtp(ssrc),
                    remote_id: Some(to.id.clone()),
                };
                if let Err(refusal) = self.forward(id, mid, request) {
                    tracing::warn!(room = %self.id, %id, "not published remotely: {refusal}");
                }
            }
        }
    }
}
