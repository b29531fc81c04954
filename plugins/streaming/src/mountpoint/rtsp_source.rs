//! Mountpoints that pull their media from an RTSP server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use portunus_core::Mid;
use portunus_core::configuration::PortRange;
use portunus_core::media::IngestStatus;
use portunus_core::media::ingest::{
    FeedError, IngestFeed, IngestId, IngestMedia, IngestOptions, PacketFeed, ParameterSets,
    interface_address, packet_feed,
};
use portunus_core::sdp::{CodecName, Kind};
use portunus_rtsp::{
    Config, Login, Medium, MediumKind, RtspError, Session, Sink, Transport, Usable, pull, shown_url,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{info, warn};

use super::opening::Feeding;
use super::{Age, Mountpoint, Stream};
use crate::bounds::Bounds;
use crate::refusal::Refusal;
use crate::spec::{
    MediaKind, MediaSpec, PayloadFormat, RtspSpec, RtspTransport, SourceSpec, StreamCodec,
    assign_payload_types,
};

/// The pause in refused packets after which the next one is logged again.
const PAUSE: Duration = Duration::from_secs(10);
/// The bound of the queue of RTCP for the server.
const RTCP: usize = 4;

/// The RTSP session that a new mountpoint pulls.
#[derive(Debug)]
pub(super) struct Pulling {
    config: Config,
    session: Option<Session>,
}

/// Connects to the server. If `spec` permits it, a failure is not an error: the pull retries.
pub(super) async fn open_rtsp(
    spec: &RtspSpec,
    ports: PortRange,
    bounds: &Bounds,
) -> Result<(Vec<Stream>, Feeding), Refusal> {
    let config = config(spec, ports, bounds)?;
    let session = match Session::open(&config).await {
        Ok(session) => Some(session),
        Err(error) if spec.failcheck || is_forbidden(&error) => {
            return Err(Refusal::CannotCreate(format!("the RTSP server: {error}")));
        }
        Err(error) => {
            warn!(url = shown_url(&spec.url), %error, "the RTSP server is tried again");
            None
        }
    };
    let media = session.as_ref().map(Session::media).unwrap_or_default();
    // Other media may still be of use. The log names the media without a known codec.
    let unknown = || media.iter().filter(|it| codec_of(it, spec).is_none());
    if spec.failcheck && !media.is_empty() && unknown().count() == media.len() {
        let codecs: Vec<String> = unknown().map(rtpmap).collect();
        let reason = format!("viewers cannot be offered {}", codecs.join(" or "));
        return Err(Refusal::CannotCreate(reason));
    }
    // While the server is unknown, all streams wait for their codecs.
    let has = |kind| session.is_none() || media.iter().any(|medium| medium.kind == kind);
    let mut streams = Vec::new();
    for (wanted, of_medium, kind, mid, label) in [
        (
            spec.audio,
            MediumKind::Audio,
            MediaKind::Audio,
            "a",
            "RTSP audio",
        ),
        (
            spec.video,
            MediumKind::Video,
            MediaKind::Video,
            "v",
            "RTSP video",
        ),
    ] {
        if wanted && !has(of_medium) {
            let (url, kind) = (shown_url(&spec.url), kind.name());
            warn!(
                url,
                kind, "the RTSP server has none of this kind, or does not give it"
            );
            continue;
        }
        if let Some(mid) = Mid::new(mid).filter(|_| wanted) {
            let offer = offer(spec, of_medium);
            let mut stream = MediaSpec::new(kind, mid);
            stream.label = label.to_owned();
            stream.pt = offer.pt;
            stream.codec = offer.codec;
            stream.fmtp.clone_from(&offer.fmtp);
            streams.push(stream);
        }
    }
    if session.is_none() {
        // Viewers may come before the server.
        assign_payload_types(&mut streams).map_err(|problem| problem.refusal)?;
    }
    let streams = streams.into_iter().map(|stream| Stream::new(stream, None));
    let streams = streams.collect();
    let feeding = Feeding::default();
    feeding.pull_later(Pulling { config, session });
    Ok((streams, feeding))
}

/// Returns whether the configuration forbids the connection, so that retries are in vain.
fn is_forbidden(error: &RtspError) -> bool {
    matches!(
        error,
        RtspError::Forbidden(_) | RtspError::ForbiddenSource(_)
    )
}

fn config(spec: &RtspSpec, ports: PortRange, bounds: &Bounds) -> Result<Config, Refusal> {
    let local = spec.iface.as_deref().filter(|name| !name.is_empty());
    let local = local.map(interface_address).transpose();
    Ok(Config {
        login: spec.login().map(|(user, password)| Login {
            user: user.to_owned(),
            password: password.to_owned(),
        }),
        audio: spec.audio,
        video: spec.video,
        usable: Some({
            let spec = spec.clone();
            Usable::by(move |medium| codec_of(medium, &spec).is_some())
        }),
        transport: match spec.transport {
            RtspTransport::Auto => Transport::UdpThenTcp,
            RtspTransport::Udp => Transport::Udp,
            RtspTransport::Tcp => Transport::Tcp,
        },
        local: local.map_err(|error| Refusal::CannotCreate(error.to_string()))?,
        ports: ports.first()..=ports.last(),
        connect_timeout: Duration::from_secs(spec.connect_timeout),
        request_timeout: Duration::from_secs(spec.timeout),
        keep_alive: (spec.session_timeout > 0).then(|| Duration::from_secs(spec.session_timeout)),
        reconnect_delay: Duration::from_secs(spec.reconnect_delay),
        path_only: spec.quirk,
        allowed: bounds.addresses(),
        ..Config::new(&spec.url)
    })
}

fn offer(spec: &RtspSpec, kind: MediumKind) -> &crate::spec::FileOffer {
    match kind {
        MediumKind::Audio => &spec.offer.audio,
        MediumKind::Video => &spec.offer.video,
    }
}

/// Returns the codec of a medium for viewers, or `None` if it is unknown, or has another clock or
/// number of channels: viewers would play it at a wrong speed.
fn codec_of(medium: &Medium, spec: &RtspSpec) -> Option<StreamCodec> {
    let kind = match medium.kind {
        MediumKind::Audio => Kind::Audio,
        MediumKind::Video => Kind::Video,
    };
    let told = || {
        let name = format!("{}/{}", medium.encoding, medium.clock_rate);
        let codec = StreamCodec::from_name(&name, kind)?;
        // Opus always states 2 channels (RFC 7587 section 7), but not every camera does.
        let is_opus = codec == StreamCodec::Plain(CodecName::Opus);
        let channels = medium.channels.filter(|_| !is_opus);
        let fits = channels.is_none_or(|channels| channels == codec.channels());
        (fits && codec.clock_rate() == medium.clock_rate).then_some(codec)
    };
    offer(spec, medium.kind).codec.or_else(told)
}

/// Returns the codec of a medium as in SDP: `L16/48000/2`.
fn rtpmap(medium: &Medium) -> String {
    let Medium {
        encoding,
        clock_rate,
        ..
    } = medium;
    match medium.channels {
        Some(channels) => format!("{encoding}/{clock_rate}/{channels}"),
        None => format!("{encoding}/{clock_rate}"),
    }
}

impl Mountpoint {
    /// Begins to pull, if this is what the mountpoint lives on. It ends with the mountpoint.
    pub(crate) fn begin_pulling(self: &Arc<Self>) {
        let Some((pulling, stopped)) = self.feeding.begin_pulling() else {
            return;
        };
        let Pulling { config, session } = pulling;
        let mut pulled = Pulled {
            mountpoint: Arc::downgrade(self),
            feeds: Vec::new(),
            known: Vec::new(),
            connected: false,
            lost: false,
            refused: None,
        };
        // The media of an open session can be offered at once.
        if let Some(session) = &session {
            pulled.take(session.media());
        }
        tokio::spawn(async move {
            let stopped = async {
                // The sender is dropped to end the pull.
                let _: Result<(), oneshot::error::RecvError> = stopped.await;
            };
            pull(config, session, &mut pulled, stopped).await;
        });
    }
}

/// Takes what comes from the server for a mountpoint.
struct Pulled {
    mountpoint: Weak<Mountpoint>,
    /// The feeds of the media. `None` for a medium that viewers cannot be offered.
    feeds: Vec<Option<(MediumKind, PacketFeed)>>,
    /// The streams that have had packets.
    known: Vec<Known>,
    connected: bool,
    /// The connection was lost at least once.
    lost: bool,
    /// When a packet was not taken last.
    refused: Option<Instant>,
}

struct Known {
    kind: MediumKind,
    ingest: IngestId,
    codec: StreamCodec,
    feed: PacketFeed,
    /// The RTCP for the server.
    rtcp: mpsc::Receiver<Vec<u8>>,
    status: Arc<IngestStatus>,
}

impl Pulled {
    /// Makes sources for new media, and for media with another codec.
    fn take(&mut self, media: &[Medium]) {
        let Some(mountpoint) = self.mountpoint.upgrade() else {
            return;
        };
        self.feeds.clear();
        for medium in media {
            let feed = self.feed(medium, &mountpoint);
            self.feeds.push(feed.map(|feed| (medium.kind, feed)));
        }
        mountpoint.described.store(true, Ordering::Release);
        mountpoint.connect_viewers();
    }

    fn feed(&mut self, medium: &Medium, mountpoint: &Mountpoint) -> Option<PacketFeed> {
        let SourceSpec::Rtsp(spec) = &mountpoint.spec.source else {
            return None;
        };
        let kind = match medium.kind {
            MediumKind::Audio => MediaKind::Audio,
            MediumKind::Video => MediaKind::Video,
        };
        let mut streams = mountpoint.streams.iter().enumerate();
        let (index, stream) = streams.find(|(_, it)| it.kind() == kind)?;
        let Some(codec) = codec_of(medium, spec) else {
            warn!(id = %mountpoint.id, codec = rtpmap(medium), "viewers cannot be offered this");
            return None;
        };
        let other = |known: &mut Known| known.kind == medium.kind && known.codec != codec;
        for known in self.known.extract_if(.., other) {
            let (was, is) = (known.codec.name(), codec.name());
            info!(id = %mountpoint.id, was, is, "the RTSP server sends another codec now");
            mountpoint.forget_sources(|stream, _| stream != index);
            mountpoint.feeding.remove(known.ingest);
            mountpoint.media.remove_ingest(known.ingest);
        }
        let mut known = self.known.iter_mut();
        if let Some(known) = known.find(|known| known.kind == medium.kind) {
            // It was for the session before.
            while known.rtcp.try_recv().is_ok() {}
            // The camera may have changed its settings.
            let sets = sprop(medium);
            mountpoint
                .media
                .set_ingest_parameter_sets(known.ingest, sets);
            let mut live = stream.live();
            if stream.spec.fmtp.is_none() {
                live.fmtp.clone_from(&medium.fmtp);
            }
            live.age = Age::Ingest(known.status.clone());
            return Some(known.feed.clone());
        }
        let (feed, receiver) = packet_feed(1);
        let (rtcp, told) = mpsc::channel(RTCP);
        let from = IngestFeed::Packets(receiver.with_feedback(rtcp));
        let mut options = IngestOptions::rtp(codec.codec(), codec.clock_rate(), from);
        if let IngestMedia::Rtp(media) = &mut options.media {
            // Servers need not repeat in the stream what their description has.
            media.h264_parameter_sets = sprop(medium);
        }
        let ingest = mountpoint.media.add_ingest(options);
        if !mountpoint.feeding.add(ingest.id) {
            mountpoint.media.remove_ingest(ingest.id);
            return None;
        }
        mountpoint
            .media
            .set_ingest_enabled(ingest.id, mountpoint.is_enabled());
        if kind == MediaKind::Video {
            let cache = mountpoint.keyframes(false);
            mountpoint.media.keep_keyframe(ingest.id, cache);
        }
        let fmtp = stream.spec.fmtp.as_ref().or(medium.fmtp.as_ref());
        let format = PayloadFormat::new(codec, fmtp.map(String::as_str));
        let pt = mountpoint.payload_type(index, &format, medium.pt);
        let mut live = stream.live();
        live.codec = Some(codec);
        live.pt = pt;
        live.fmtp = fmtp.cloned();
        live.source = Some(ingest.id.into());
        live.age = Age::Ingest(ingest.status.clone());
        self.known.push(Known {
            kind: medium.kind,
            ingest: ingest.id,
            codec,
            feed: feed.clone(),
            rtcp: told,
            status: ingest.status,
        });
        Some(feed)
    }

    /// Says once that packets are not taken. The ingest counts them.
    #[cold]
    fn refuse(&mut self, error: FeedError) {
        if error == FeedError::Gone {
            return;
        }
        let now = Instant::now();
        let last = self.refused.replace(now);
        let begins = last.is_none_or(|last| now.duration_since(last) >= PAUSE);
        if let Some(mountpoint) = self.mountpoint.upgrade()
            && begins
        {
            warn!(id = %mountpoint.id, %error, "packets of the RTSP server are refused");
        }
    }

    /// Tells the observers of the server, and the viewers if configured.
    fn publish(&self, event: &str) {
        let Some(mountpoint) = self.mountpoint.upgrade() else {
            return;
        };
        mountpoint.events.notify(|| mountpoint.event(event).into());
        if let SourceSpec::Rtsp(spec) = &mountpoint.spec.source
            && spec.notify_changes
        {
            mountpoint.notify_viewers(mountpoint.event(event));
        }
    }
}

impl Sink for Pulled {
    fn connected(&mut self, media: &[Medium]) {
        self.take(media);
        self.connected = true;
        if std::mem::take(&mut self.lost) {
            info!("the RTSP server is back");
            self.publish("rtsp-reconnected");
        }
    }

    fn lost(&mut self, error: &RtspError) {
        let Some(mountpoint) = self.mountpoint.upgrade() else {
            return;
        };
        if !self.lost {
            warn!(id = %mountpoint.id, %error, "the RTSP server is lost");
        }
        self.lost = true;
        if std::mem::take(&mut self.connected) {
            for stream in &mountpoint.streams {
                stream.live().age = Age::None;
            }
            self.publish("rtsp-disconnected");
        }
    }

    fn packet(&mut self, medium: usize, packet: &[u8]) {
        if let Some(Some((_, feed))) = self.feeds.get(medium)
            && let Err(error) = feed.send(0, packet)
        {
            self.refuse(error);
        }
    }

    fn report(&mut self, medium: usize, ntp: u64, timestamp: u32) {
        if let Some(Some((_, feed))) = self.feeds.get(medium) {
            let _ = feed.sender_report(0, ntp, timestamp);
        }
    }

    fn poll_rtcp(&mut self, context: &mut Context<'_>) -> Poll<(usize, Vec<u8>)> {
        for (medium, feed) in self.feeds.iter().enumerate() {
            let kind = feed.as_ref().map(|(kind, _)| *kind);
            let known = self.known.iter_mut().find(|it| Some(it.kind) == kind);
            if let Some(known) = known
                && let Poll::Ready(Some(packet)) = known.rtcp.poll_recv(context)
            {
                return Poll::Ready((medium, packet));
            }
        }
        Poll::Pending
    }
}

/// Returns the H.264 parameter sets of a description.
fn sprop(medium: &Medium) -> Option<ParameterSets> {
    let fmtp = medium.fmtp.as_deref()?;
    let sets = fmtp
        .split(';')
        .find_map(|part| part.trim().strip_prefix("sprop-parameter-sets="))?;
    ParameterSets::from_sprop(sets).ok()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use portunus_core::media::MediaPlane;
    use portunus_core::record::Recorder;
    use portunus_resources::{Ids, Maker};
    use serde_json::json;

    use super::*;
    use crate::mountpoint::open;
    use crate::spec::{MountpointSpec, Origin};
    use crate::{Streaming, StreamingConfig};

    fn video(sprop: &str) -> Medium {
        Medium {
            kind: MediumKind::Video,
            encoding: "H264".to_owned(),
            clock_rate: 90_000,
            channels: None,
            pt: 96,
            fmtp: Some(format!("packetization-mode=1;sprop-parameter-sets={sprop}")),
            control: "v".to_owned(),
        }
    }

    #[tokio::test]
    async fn parameter_sets_are_those_of_the_last_description() {
        let (media, ..) = MediaPlane::detached();
        let config = StreamingConfig::default();
        let plugin = Streaming::start(config, media.clone(), Recorder::default()).await;
        let shared = plugin.unwrap().shared.clone();
        let body = json!({
            "type": "rtsp", "url": "rtsp://127.0.0.1:1/", "video": true, "rtsp_failcheck": false,
        });
        let body = body.as_object().unwrap();
        let Ok(spec) = MountpointSpec::read(body, Ids::Numbers, Origin::Request) else {
            unreachable!("a mountpoint");
        };
        let reservation = shared.mountpoints.reserve(None, Maker::Operator).unwrap();
        let id = reservation.id().clone();
        let mountpoint = open(shared.open_context(), spec, id, Bounds::Anywhere)
            .await
            .unwrap();
        let mountpoint = Arc::new(mountpoint);
        let mut pulled = Pulled {
            mountpoint: Arc::downgrade(&mountpoint),
            feeds: Vec::new(),
            known: Vec::new(),
            connected: false,
            lost: false,
            refused: None,
        };
        for sprop in ["Z0LAHg==,aM48gA==", "Z0LgHw==,aM48gA=="] {
            pulled.connected(&[video(sprop)]);
            let ingests = media.requested().ingests;
            assert_eq!(ingests.len(), 1);
            let sets = ParameterSets::from_sprop(sprop).unwrap();
            assert_eq!(ingests[0].parameter_sets, Some(sets));
            let fmtp = mountpoint.streams[0].live().fmtp.clone().unwrap();
            assert!(fmtp.ends_with(sprop), "{fmtp}");
        }
    }
}
