//! A stream of a mountpoint: its format for viewers, and its source.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use portunus_core::media::ingest::Refusal;
use portunus_core::media::{IngestStatus, SourceRef};
use portunus_core::{ExtensionMap, Mid};
use tokio::time::Instant;

use super::lock;
use super::recordings::StreamRecording;
use crate::spec::{MediaKind, MediaSpec, StreamCodec};

/// Longer than the time between two looks at who uses a mountpoint.
const FRESH: Duration = Duration::from_secs(120);

/// The silence after which packets count as missing.
const FED: Duration = Duration::from_secs(2);

/// A stream of a mountpoint.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The specification.
    pub(crate) spec: MediaSpec,
    /// The ports in use.
    pub(crate) ports: Option<Ports>,
    live: Mutex<Live>,
    pub(super) recording: Mutex<Option<StreamRecording>>,
}

/// The destination of RTP packets for the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ports {
    /// The bound address or multicast group. `None` means all addresses.
    pub(crate) host: Option<String>,
    pub(crate) rtp: u16,
    /// Of simulcast encodings 1 and 2.
    pub(crate) more: Vec<u16>,
    pub(crate) rtcp: Option<u16>,
}

/// The parts of a stream that change with its source.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// `None` while it is unknown.
    pub(crate) codec: Option<StreamCodec>,
    pub(crate) pt: u8,
    pub(crate) fmtp: Option<String>,
    /// The number of audio channels, if it is not the codec's usual one.
    pub(crate) channels: Option<u8>,
    pub(crate) simulcast: bool,
    pub(crate) svc: bool,
    /// The source of viewers' routes, if there is one.
    pub(crate) source: Option<SourceRef>,
    /// The ids of header extensions in its packets.
    pub(crate) extensions: ExtensionMap,
    pub(crate) age: Age,
}

impl Live {
    /// Returns whether viewers can receive a part of its layers.
    pub(crate) fn has_layers(&self) -> bool {
        self.simulcast || self.svc
    }
}

/// The time since the last packet.
#[derive(Debug, Clone)]
pub(crate) enum Age {
    /// There is no socket or connection.
    None,
    /// The age in the media plane. Before the first packet it counts from the start.
    Ingest(Arc<IngestStatus>),
    /// No packet has come since the publisher started.
    Awaited(Instant),
    /// It comes steadily.
    Now,
    /// None has come since.
    Since(Instant),
}

impl Age {
    /// Returns whole milliseconds.
    pub(crate) fn millis(&self) -> Option<u64> {
        match self {
            Age::None => None,
            Age::Ingest(status) => u64::try_from(status.age().as_millis()).ok(),
            Age::Now => Some(0),
            Age::Awaited(since) | Age::Since(since) => {
                u64::try_from(since.elapsed().as_millis()).ok()
            }
        }
    }

    /// Returns whether a packet came within the last [`FRESH`].
    pub(super) fn is_fresh(&self) -> bool {
        match self {
            Age::None => false,
            Age::Ingest(status) => status.packets() > 0 && status.age() < FRESH,
            Age::Now => true,
            Age::Awaited(since) | Age::Since(since) => since.elapsed() < FRESH,
        }
    }

    /// Returns whether packets come now.
    pub(crate) fn is_fed(&self) -> bool {
        match self {
            Age::None | Age::Awaited(_) | Age::Since(_) => false,
            Age::Ingest(status) => status.packets() > 0 && status.age() < FED,
            Age::Now => true,
        }
    }

    /// Returns whether there is a source without packets so far.
    pub(crate) fn is_waiting(&self) -> bool {
        match self {
            Age::Ingest(status) => !status.has_come(),
            Age::Awaited(_) => true,
            Age::None | Age::Now | Age::Since(_) => false,
        }
    }

    /// Returns the fault of the packets, if there was one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Age::Ingest(status) => status.refusal(),
            Age::None | Age::Awaited(_) | Age::Now | Age::Since(_) => None,
        }
    }
}

impl Stream {
    /// Returns a stream without a source.
    pub(crate) fn new(spec: MediaSpec, ports: Option<Ports>) -> Self {
        let live = Live {
            codec: spec.codec,
            pt: spec
                .pt
                .or_else(|| spec.codec.map(StreamCodec::default_pt))
                .unwrap_or(0),
            fmtp: spec.fmtp.clone(),
            channels: None,
            simulcast: spec.simulcast,
            svc: spec.svc,
            source: None,
            extensions: ExtensionMap::default(),
            age: Age::None,
        };
        Stream {
            spec,
            ports,
            live: Mutex::new(live),
            recording: Mutex::default(),
        }
    }

    /// Sets the source.
    pub(crate) fn fed(self, source: SourceRef, status: Arc<IngestStatus>) -> Self {
        {
            let mut live = self.live();
            live.source = Some(source);
            live.age = Age::Ingest(status);
        }
        self
    }

    pub(crate) fn mid(&self) -> Mid {
        self.spec.mid
    }

    pub(crate) fn kind(&self) -> MediaKind {
        self.spec.kind
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        lock(&self.live)
    }

    /// Returns whether it can be offered, because its codec is known.
    pub(crate) fn is_offerable(&self) -> bool {
        self.kind() == MediaKind::Data || self.live().codec.is_some()
    }
}
