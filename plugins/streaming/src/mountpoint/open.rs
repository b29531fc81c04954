//! Opens mountpoints: what it takes until their media can come.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_core::configuration::PortRange;
use portunus_core::media::ingest::{
    DataIngest, IngestBind, IngestEnd, IngestFeed, IngestId, IngestMedia, IngestOptions,
    IngestSocket, IngestSrtp, ParameterSets, SrtpSuite,
};
use portunus_core::media::{KeyframeCache, MediaPlane};
use portunus_player::Player;
use portunus_resources::Id;
use tokio::sync::oneshot;

use super::pulled::Pulling;
use super::{Mountpoint, Ports, Stream, Watched, lock, played, pulled};
use crate::bounds::Bounds;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::spec::{
    DataType, Details, KeyframeSpec, MediaKind, MediaSpec, MountpointSpec, RtpSpec, SourceSpec,
    SrtpSpec,
};

/// The label of the data channel that Janus's clients expect.
const DATA_CHANNEL: &str = "JanusDataChannel";

/// What feeds a mountpoint, and ends with it.
#[derive(Debug)]
pub(super) struct Feeding {
    /// None once it has ended.
    ingests: Mutex<Option<Vec<IngestId>>>,
    /// Of a file that plays for all.
    _player: Option<Player>,
    /// What is to be pulled, until that has begun.
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

    /// One more; false if it is over.
    pub(super) fn add(&self, ingest: IngestId) -> bool {
        let mut ingests = lock(&self.ingests);
        if let Some(ingests) = &mut *ingests {
            ingests.push(ingest);
        }
        ingests.is_some()
    }

    /// One less.
    pub(super) fn remove(&self, ingest: IngestId) {
        if let Some(ingests) = &mut *lock(&self.ingests) {
            ingests.retain(|known| *known != ingest);
        }
    }

    pub(super) fn pull_later(&self, pulling: Pulling) {
        *lock(&self.pulling) = Some(pulling);
    }

    /// What is to be pulled, and what comes true when that is to end.
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

    /// What is returned comes true when the sockets are closed.
    pub(super) fn close(&self, media: &MediaPlane) -> Vec<IngestEnd> {
        drop(lock(&self.stop).take());
        let ingests = lock(&self.ingests).take().into_iter().flatten();
        ingests.map(|ingest| media.remove_ingest(ingest)).collect()
    }
}

/// Makes the mountpoint `id` as `spec` says.
pub(crate) async fn open(
    shared: &Shared,
    mut spec: MountpointSpec,
    id: Id,
    bounds: Bounds,
) -> Result<Mountpoint, Refusal> {
    let mut duration = None;
    let (streams, feeding) = match &mut spec.source {
        SourceSpec::Rtp(rtp) => open_rtp(rtp, shared.ports, &shared.media)?,
        SourceSpec::Whip(whip) => {
            let streams = whip.media.iter().cloned();
            let streams = streams.map(|media| Stream::new(media, None)).collect();
            (streams, Feeding::default())
        }
        SourceSpec::Live(file) => played::open_live(file, &shared.media, &bounds).await?,
        SourceSpec::OnDemand(file) => {
            let (streams, lasts) = played::open_on_demand(file, &bounds).await?;
            duration = lasts;
            (streams, Feeding::default())
        }
        SourceSpec::Rtsp(rtsp) => pulled::open_rtsp(rtsp, shared, &bounds).await?,
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
        duration,
        bounds,
        media: shared.media.clone(),
        events: shared.events.clone(),
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
    /// What makes the same mountpoint again, with `details`.
    pub(crate) fn to_spec(&self, details: &Details) -> MountpointSpec {
        MountpointSpec {
            name: Some(self.name.clone()),
            id: Some(self.id.clone()),
            details: details.clone(),
            source: self.spec.source.clone(),
        }
    }
}

/// What to keep of a video source for new viewers.
pub(super) fn keyframe_cache(spec: KeyframeSpec) -> Option<KeyframeCache> {
    let max_age = Duration::from_millis(spec.ms.into());
    let max_bytes = usize::try_from(spec.bytes).unwrap_or(usize::MAX);
    spec.is_on().then_some(KeyframeCache { max_age, max_bytes })
}

/// Binds all sockets first: an error leaves nothing behind.
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
    // What can still be wrong is found before the first one starts.
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
            None => {
                let data = DataIngest {
                    label: DATA_CHANNEL,
                    text: stream.datatype == DataType::Text,
                    keep_last: stream.buffermsg,
                    framed: false,
                };
                IngestOptions::data(data, feed)
            }
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

fn ingest_srtp(srtp: &SrtpSpec) -> IngestSrtp {
    IngestSrtp {
        suite: match srtp.suite {
            32 => SrtpSuite::AesCm128HmacSha1_32,
            _ => SrtpSuite::AesCm128HmacSha1_80,
        },
        key_and_salt: srtp.key,
    }
}
