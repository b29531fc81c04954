//! Publishers of other servers here, and our publishers on other servers.
//!
//! All streams of a publisher go to one UDP port. The SSRC identifies the stream. Data channel
//! messages follow an RTP header.

use std::net::{Ipv4Addr, SocketAddr};

use portunus_media::ingest::{DataIngest, Heard, IngestSrtp, Listening, RtpIngest};
use portunus_media::{
    Encodings, ForwardRtcp, Framing, Ingest, IngestBind, IngestError, IngestFeed, IngestId,
    IngestMedia, IngestOptions, IngestSocket, MediaPlane, SharedSocket, TalkDetection,
};
use portunus_rtp::{ExtensionKind, ExtensionMap, Mid, Ssrc};
use portunus_sdp::{Codec, Kind};
use tokio::sync::mpsc;

use super::{ForwardRequest, Forwarder, Origin, Publication, Publications, Stream};
use crate::{PersonId, Refusal};

/// The limit of streams of a publisher.
pub const MAX_STREAMS: usize = 1_000;

/// The limit of simulcast encodings of a stream.
const ENCODINGS: u8 = 3;

/// The bound of the queue of [`Heard`].
const SOUNDS: usize = 64;

/// Returns the SSRC of a stream's lowest encoding.
const fn first_ssrc(index: usize) -> Ssrc {
    Ssrc((index as u32).wrapping_mul(10).wrapping_add(1_000))
}

/// The media of a publisher without a PeerConnection: of another server, or of a program.
#[derive(Debug, Clone)]
pub struct Remote {
    media: MediaPlane,
    /// The sockets that all streams come by. `None` if the ingests are made elsewhere.
    sockets: Option<Sockets>,
    streams: Vec<(Mid, IngestId)>,
    heard: mpsc::Sender<Heard>,
}

/// The sockets for another server's media, with its key.
#[derive(Debug, Clone)]
struct Sockets {
    rtp: SharedSocket,
    rtcp: SharedSocket,
    srtp: Option<IngestSrtp>,
}

/// The ports for another server's media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The port for RTP; 0 means any free one.
    pub port: u16,
    /// The port for RTCP; 0 means any free one.
    pub rtcp_port: u16,
    /// The name or an address of the network interface. `None` means all.
    pub interface: Option<String>,
    /// The multicast group. `None` for unicast.
    pub multicast: Option<Ipv4Addr>,
}

impl Remote {
    /// Opens the ports. The receiver gets the levels of the publisher's audio.
    pub fn open(
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
        let sockets = Sockets {
            rtp: bind(place.port, place.multicast).map_err(refused)?,
            // Reports concern one sender, so they never use the multicast group.
            rtcp: bind(place.rtcp_port, None).map_err(refused)?,
            srtp,
        };
        let remote = Remote {
            sockets: Some(sockets),
            media,
            streams: Vec::new(),
            heard,
        };
        Ok((remote, hears))
    }

    /// Returns the media of a publisher whose streams are these ingests. They end with the
    /// publication. The receiver gets the levels of the publisher's audio.
    pub fn of_ingests(
        media: MediaPlane,
        streams: Vec<(Mid, IngestId)>,
    ) -> (Self, mpsc::Receiver<Heard>) {
        let (heard, hears) = mpsc::channel(SOUNDS);
        let remote = Remote {
            media,
            sockets: None,
            streams,
            heard,
        };
        (remote, hears)
    }

    /// Returns the local address for RTP, or `None` if the ingests are made elsewhere.
    pub fn local(&self) -> Option<SocketAddr> {
        self.sockets.as_ref().map(|sockets| sockets.rtp.local())
    }

    /// Returns the local port for RTCP, or `None` if the ingests are made elsewhere.
    pub fn rtcp_port(&self) -> Option<u16> {
        self.sockets.as_ref().map(|sockets| sockets.rtcp.port())
    }

    /// Returns the ingest of a stream.
    pub(crate) fn source(&self, mid: Mid) -> Option<IngestId> {
        let known = self.streams.iter().find(|(known, _)| *known == mid);
        known.map(|(_, ingest)| *ingest)
    }

    /// Monitors a stream: for talking, and for the share of speech.
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

    /// Starts to ingest a stream, encrypted end to end if `e2ee`. Does nothing if it is ingested.
    pub fn take_in(&mut self, stream: &Stream, e2ee: bool) {
        if stream.disabled || self.source(stream.mid).is_some() {
            return;
        }
        let Some(sockets) = &self.sockets else {
            return;
        };
        let media = match stream.format.codec {
            Some(codec) => IngestMedia::Rtp(RtpIngest {
                extensions: extensions(stream),
                opaque: e2ee,
                svc: stream.format.svc,
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
            rtp: sockets.rtp.clone(),
            rtcp: Some(sockets.rtcp.clone()),
            ssrc: first_ssrc(stream.index),
            encodings: if stream.format.simulcast {
                ENCODINGS
            } else {
                1
            },
        };
        let Ingest { id, .. } = self.media.add_ingest(IngestOptions {
            media,
            srtp: sockets.srtp.clone(),
            // Ingests with one socket have to be on one worker.
            worker: self.streams.first().map(|(_, ingest)| ingest.worker()),
            ..IngestOptions::rtp(Codec::Opus, 48_000, feed)
        });
        self.streams.push((stream.mid, id));
    }

    /// Ends all ingests and closes the ports.
    pub(crate) fn close(&self) {
        for (_, ingest) in &self.streams {
            self.media.remove_ingest(*ingest);
        }
    }
}

fn extensions(stream: &Stream) -> ExtensionMap {
    let ids = stream.format.extensions;
    let mut extensions = ExtensionMap::default();
    let mut set = |kind, id: Option<u8>| id.map(|id| extensions.set(kind, id));
    set(ExtensionKind::AudioLevel, ids.audio_level);
    set(ExtensionKind::VideoOrientation, ids.video_orientation);
    set(ExtensionKind::PlayoutDelay, ids.playout_delay);
    let dependencies = ids.dependency_descriptor;
    set(ExtensionKind::DependencyDescriptor, dependencies);
    extensions
}

/// The publication of a local publisher on another server.
#[derive(Debug, Clone)]
pub struct RemotePublication {
    /// Its id, which the client chose.
    pub id: String,
    /// The address of the other server.
    pub to: SocketAddr,
    /// The socket for RTCP.
    pub rtcp: Option<ForwardRtcp>,
    /// The key of SRTP. `None` means RTP.
    pub srtp: Option<IngestSrtp>,
}

impl Publications {
    /// Returns the m-line of an ingest of a remote publisher.
    pub(crate) fn mid_of(&self, id: &PersonId, ingest: IngestId) -> Option<Mid> {
        match &self.by_feed.get(id)?.origin {
            Origin::Remote(remote) => remote.mid_of(ingest),
            Origin::Relayed(relayed) => Self::mid_of_relayed(relayed, ingest),
            Origin::Client(_) | Origin::Dummy => None,
        }
    }

    /// Updates a remote publisher. Returns whether participants see a change.
    pub(crate) fn update_remote(
        &mut self,
        id: &PersonId,
        e2ee: Option<bool>,
        updates: Vec<Stream>,
    ) -> bool {
        let Some(publication) = self.by_feed.get_mut(id) else {
            return false;
        };
        publication.e2ee = e2ee.unwrap_or(publication.e2ee);
        let mut news = false;
        for update in updates {
            news |= publication.update(update);
        }
        news
    }

    /// Publishes a local publisher on another server.
    pub(crate) fn publish_remotely(&mut self, room: &str, id: &PersonId, to: RemotePublication) {
        if let Some(publication) = self.by_feed.get_mut(id) {
            publication.remotes.push(to.clone());
            self.forward_remotely(room, id, &to);
        }
    }

    /// Ends a publication on another server. Returns false if there is no such publication.
    pub(crate) fn unpublish_remotely(&mut self, id: &PersonId, remote_id: &str) -> bool {
        let Some(publication) = self.by_feed.get_mut(id) else {
            return false;
        };
        let before = publication.remotes.len();
        let remotes = &mut publication.remotes;
        remotes.retain(|known| known.id != remote_id);
        let ends = remotes.len() < before;
        if ends {
            let is_of = |forwarder: &Forwarder| forwarder.remote_id.as_deref() == Some(remote_id);
            self.end_forwarders(id, is_of);
        }
        ends
    }

    /// Sends new streams of a publisher to the servers that it is published on.
    pub(crate) fn extend_remotes(&mut self, room: &str, id: &PersonId) {
        let publication = self.by_feed.get(id);
        let remotes = publication.map(|known| known.remotes.clone());
        for to in remotes.unwrap_or_default() {
            self.forward_remotely(room, id, &to);
        }
    }

    /// Starts to forward the streams that another server does not get yet.
    fn forward_remotely(&mut self, room: &str, id: &PersonId, to: &RemotePublication) {
        let is_of = |forwarder: &Forwarder| forwarder.remote_id.as_deref() == Some(&to.id);
        let publication = self.by_feed.get(id);
        let streams = publication.into_iter().flat_map(|known| &known.streams);
        let missing = streams.filter(|s| !s.disabled && !s.forwarders.iter().any(is_of));
        let missing: Vec<_> = missing
            .map(|stream| {
                (
                    stream.mid,
                    first_ssrc(stream.index),
                    stream.format.simulcast,
                )
            })
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
                };
                let forwarder = self.forward(id, mid, request, Some(to.id.clone()));
                if let Err(refusal) = forwarder {
                    tracing::warn!(%room, %id, "not published remotely: {refusal}");
                }
            }
        }
    }
}

impl Publication {
    /// Changes a stream, or appends it. Returns whether participants see a change.
    fn update(&mut self, stream: Stream) -> bool {
        let index = stream.index;
        let news = match self.streams.get_mut(index) {
            Some(known) => known.update(stream),
            None => {
                self.streams.push(stream);
                true
            }
        };
        if let (Some(stream), Origin::Remote(remote)) = (self.streams.get(index), &mut self.origin)
        {
            remote.take_in(stream, self.e2ee);
        }
        news
    }
}

impl Stream {
    /// Takes an update of another server. Returns whether participants see a change.
    fn update(&mut self, said: Stream) -> bool {
        let before = (self.description.clone(), self.disabled);
        if said.description.is_some() {
            self.description = said.description;
        }
        // A stream that was disabled from the start has no codec yet.
        if self.format.codec.is_none() && self.kind == said.kind {
            self.format = said.format;
        }
        let no_codec = self.kind != Kind::Data && self.format.codec.is_none();
        self.disabled = said.disabled || no_codec;
        before != (self.description.clone(), self.disabled)
    }
}
