//! The start of mountpoints, up to the point where media can come.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_core::configuration::PortRange;
use portunus_core::events::PluginEvents;
use portunus_core::media::ingest::{
    DataIngest, IngestBind, IngestEnd, IngestFeed, IngestId, IngestMedia, IngestOptions,
    IngestSocket, IngestSrtp, ParameterSets, SrtpSuite,
};
use portunus_core::media::{KeyframeCache, MediaPlane};
use portunus_player::Player;
use portunus_resources::Id;
use tokio::sync::oneshot;

use super::rtsp_source::Pulling;
use super::{Mountpoint, Ports, Stream, Watched, file_source, lock, rtsp_source};
use crate::bounds::Bounds;
use crate::refusal::Refusal;
use crate::spec::{
    DataType, Details, KeyframeSpec, MediaKind, MediaSpec, MountpointSpec, RtpSpec, SourceSpec,
    SrtpSpec,
};

/// The label of the data channel that Janus's clients expect.
const DATA_CHANNEL: &str = "JanusDataChannel";

/// The ingests and tasks that feed a mountpoint. They end with it.
#[derive(Debug)]
pub(super) struct Feeding {
    /// `None` after the end.
    ingests: Mutex<Option<Vec<IngestId>>>,
    /// Of a file that plays for all.
    _player: Option<Player>,
    /// The RTSP session to pull, until the pull starts.
    pulling: Mutex<Option<Pulling>>,
    /// Dropped to end what is pulled.
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl Default for Feeding {
    fn default() -> Self {
        Feeding::new(Vec::new(), None)
    }
}

impl Feeding {
    pub(super) fn new(ingests: Vec<IngestId>, player: Option<Player>) -> Self {
        Feeding {
            ingests: Mutex::new(Some(ingests)),
            _player: player,
            pulling: Mutex::default(),
            stop: Mutex::default(),
        }
    }

    /// Adds an ingest. Returns false after the end.
    pub(super) fn add(&self, ingest: IngestId) -> bool {
        let mut ingests = lock(&self.ingests);
        if let Some(ingests) = &mut *ingests {
            ingests.push(ingest);
        }
        ingests.is_some()
    }

    /// Removes an ingest.
    pub(super) fn remove(&self, ingest: IngestId) {
        if let Some(ingests) = &mut *lock(&self.ingests) {
            ingests.retain(|known| *known != ingest);
        }
    }

    pub(super) fn pull_later(&self, pulling: Pulling) {
        *lock(&self.pulling) = Some(pulling);
    }

    /// Takes the RTSP session to pull. The receiver completes when the pull has to end.
    pub(super) fn begin_pulling(&self) -> Option<(Pulling, oneshot::Receiver<()>)> {
        let pulling = lock(&self.pulling).take()?;
        let (stop, stopped) = oneshot::channel();
        *lock(&self.stop) = Some(stop);
        Some((pulling, stopped))
    }

    pub(super) fn enable(&self, media: &MediaPlane, enabled: bool) {
        for ingest in lock(&self.ingests).iter().flatten() {
            media.set_ingest_enabled(*ingest, enabled);
        }
    }

    /// Ends all ingests. Each returned value completes when the sockets are closed.
    pub(super) fn close(&self, media: &MediaPlane) -> Vec<IngestEnd> {
        drop(lock(&self.stop).take());
        let ingests = lock(&self.ingests).take().into_iter().flatten();
        ingests.map(|ingest| media.remove_ingest(ingest)).collect()
    }
}

/// The parts of the server that a mountpoint needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenContext<'a> {
    /// The ports of sockets that do not name theirs.
    pub(crate) ports: PortRange,
    pub(crate) media: &'a MediaPlane,
    pub(crate) events: &'a PluginEvents,
}

/// Makes the mountpoint `id` of a specification.
pub(crate) async fn open(
    context: OpenContext<'_>,
    mut spec: MountpointSpec,
    id: Id,
    bounds: Bounds,
) -> Result<Mountpoint, Refusal> {
    let mut duration = None;
    let (streams, feeding) = match &mut spec.source {
        SourceSpec::Rtp(rtp) => open_rtp(rtp, context.ports, context.media)?,
        SourceSpec::Whip(whip) => {
            let streams = whip.media.iter().cloned();
            let streams = streams.map(|media| Stream::new(media, None)).collect();
            (streams, Feeding::default())
        }
        SourceSpec::Relayed(relayed) => {
            let streams = relayed.media.iter().cloned();
            let streams = streams.map(|media| Stream::new(media, None)).collect();
            (streams, Feeding::default())
        }
        SourceSpec::Live(file) => file_source::open_live(file, context.media, &bounds).await?,
        SourceSpec::OnDemand(file) => {
            let (streams, lasts) = file_source::open_on_demand(file, &bounds).await?;
            duration = lasts;
            (streams, Feeding::default())
        }
        SourceSpec::Rtsp(rtsp) => rtsp_source::open_rtsp(rtsp, context.ports, &bounds).await?,
    };
    let name = spec
        .name
        .take()
        .unwrap_or_else(|| default_name(&id, &spec.source));
    let details = std::mem::take(&mut spec.details).of(&name);
    Ok(Mountpoint {
        id,
        name,
        spec,
        streams,
        details: Mutex::new(details),
        editing: Arc::default(),
        enabled: AtomicBool::new(true),
        watched: Mutex::new(Watched::default()),
        described: AtomicBool::new(false),
        publisher: Mutex::default(),
        feeding,
        relay: Mutex::default(),
        duration,
        bounds,
        media: context.media.clone(),
        events: context.events.clone(),
    })
}

fn default_name(id: &Id, source: &SourceSpec) -> String {
    match (source, id) {
        (SourceSpec::Rtsp(_), Id::Text(id))
            if !id.starts_with(|first: char| first.is_ascii_digit()) =>
        {
            id.clone()
        }
        _ => format!("mp-{id}"),
    }
}

impl Mountpoint {
    /// Returns the specification of the same mountpoint with `details`.
    pub(crate) fn to_spec(&self, details: &Details) -> MountpointSpec {
        MountpointSpec {
            name: Some(self.name.clone()),
            id: Some(self.id.clone()),
            details: details.clone(),
            source: self.spec.source.clone(),
        }
    }
}

/// Returns the keyframe cache of a video source.
pub(super) fn keyframe_cache(spec: KeyframeSpec) -> Option<KeyframeCache> {
    let max_age = Duration::from_millis(spec.ms.into());
    let max_bytes = usize::try_from(spec.bytes).unwrap_or(usize::MAX);
    spec.is_on().then_some(KeyframeCache { max_age, max_bytes })
}

/// Opens the sockets and starts the ingests. An error leaves no socket open.
fn open_rtp(
    rtp: &mut RtpSpec,
    range: PortRange,
    media: &MediaPlane,
) -> Result<(Vec<Stream>, Feeding), Refusal> {
    let mut bound = Vec::with_capacity(rtp.media.len());
    for stream in &mut rtp.media {
        bound.push(Sockets::bind(stream, range)?);
    }
    let mut streams = Vec::with_capacity(bound.len());
    let mut ingests = Vec::new();
    let options = bound.into_iter().zip(&rtp.media).map(|(sockets, stream)| {
        let ports = sockets.ports.clone();
        sockets
            .options(stream, rtp)
            .map(|options| (stream, ports, options))
    });
    // All errors are found before the first ingest starts.
    let options: Vec<_> = options.collect::<Result<_, _>>()?;
    for (stream, ports, options) in options {
        let ingest = media.add_ingest(options);
        ingests.push(ingest.id);
        if stream.kind == MediaKind::Video && !stream.simulcast && !rtp.e2ee {
            media.keep_keyframe(ingest.id, keyframe_cache(rtp.keyframes));
        }
        let stream = Stream::new(stream.clone(), Some(ports));
        streams.push(stream.fed(ingest.id.into(), ingest.status));
    }
    Ok((streams, Feeding::new(ingests, None)))
}

/// The sockets of a stream.
struct Sockets {
    rtp: Vec<IngestSocket>,
    rtcp: Option<IngestSocket>,
    ports: Ports,
}

impl Sockets {
    /// Binds them, and writes down in `stream` which ports they got.
    fn bind(stream: &mut MediaSpec, range: PortRange) -> Result<Self, Refusal> {
        let bind = |port: u16, group: bool| {
            let bind = IngestBind {
                port,
                range: range.first()..=range.last(),
                interface: stream.iface.clone(),
                multicast: stream.mcast.filter(|_| group),
            };
            IngestSocket::bind(bind).map_err(|error| Refusal::Ports {
                mid: stream.mid.as_str().to_owned(),
                error: error.to_string(),
            })
        };
        let mut rtp = vec![bind(stream.port, true)?];
        for port in &stream.more_ports {
            rtp.push(bind(*port, true)?);
        }
        let rtcp = stream.rtcpport.map(|port| bind(port, false)).transpose()?;
        let mut ports = rtp.iter().map(IngestSocket::port);
        stream.port = ports.next().unwrap_or(stream.port);
        stream.more_ports = ports.collect();
        stream.rtcpport = rtcp.as_ref().map(IngestSocket::port);
        let group = stream.mcast.map(|group| group.to_string());
        let host = group.or_else(|| {
            let address = rtp.first()?.local().ip();
            (!address.is_unspecified()).then(|| address.to_string())
        });
        let ports = Ports {
            host,
            rtp: stream.port,
            more: stream.more_ports.clone(),
            rtcp: stream.rtcpport,
        };
        Ok(Sockets { rtp, rtcp, ports })
    }

    fn options(self, stream: &MediaSpec, rtp: &RtpSpec) -> Result<IngestOptions, Refusal> {
        let feed = IngestFeed::Sockets {
            rtp: self.rtp,
            rtcp: self.rtcp,
        };
        let mut options = match stream.codec {
            Some(codec) => IngestOptions::rtp(codec.codec(), codec.clock_rate(), feed),
            None => IngestOptions::data(data_ingest(stream), feed),
        };
        if let IngestMedia::Rtp(media) = &mut options.media {
            media.abs_capture_time = rtp.abs_capture_time;
            media.opaque = rtp.e2ee;
            media.skew = stream.skew;
            media.svc = stream.svc;
            let sets = stream.h264sps.as_deref();
            media.h264_parameter_sets = sets
                .map(|sets| {
                    ParameterSets::from_sprop(sets)
                        .map_err(|error| Refusal::CannotCreate(format!("h264sps: {error}")))
                })
                .transpose()?;
        }
        options.srtp = rtp.srtp.as_ref().map(ingest_srtp);
        options.collision = Duration::from_millis(rtp.collision_ms.into());
        Ok(options)
    }
}

/// Returns the messages of a data stream.
pub(super) fn data_ingest(stream: &MediaSpec) -> DataIngest {
    DataIngest {
        label: DATA_CHANNEL,
        text: stream.datatype == DataType::Text,
        keep_last: stream.buffermsg,
        framed: false,
    }
}

fn ingest_srtp(srtp: &SrtpSpec) -> IngestSrtp {
    IngestSrtp {
        suite: match srtp.suite {
            32 => SrtpSuite::AesCm128HmacSha1_32,
            _ => SrtpSuite::AesCm128HmacSha1_80,
        },
        key_and_salt: srtp.key,
    }
}
