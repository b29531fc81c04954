//! The mountpoints of all nodes of a cluster: those of this node for the others, and theirs here.
//!
//! A mountpoint of this node hides one of another node with its id. Of several other nodes with the
//! same id, the one with the lowest name counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use portunus_core::ExtensionKind;
use portunus_core::media::SourceRef;
use portunus_core::media::ingest::IngestId;
use portunus_core::sdp::CodecName;
use portunus_relay::{Offer, SourceDescription, Sources};
use portunus_resources::{Id, Maker, Resource as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bounds::Bounds;
use crate::definition::{DataDefinition, Definition, StreamDefinition};
use crate::mountpoint::{self, Mountpoint, Stream};
use crate::shared::Shared;
use crate::spec::{DataType, Details, MediaKind, MountpointSpec, SourceSpec, StreamCodec};
use crate::stream_message::StreamMessage;

/// The encodings of a published stream with simulcast.
const ENCODINGS: u8 = 3;

/// The most mountpoints of one other node.
const MAX_OF_NODE: usize = 10_000;

/// The mountpoints of the cluster, as the server and the plugin share them; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Mountpoints(Arc<Inner>);

#[derive(Default)]
struct Inner {
    shared: OnceLock<Weak<Shared>>,
    changed: Arc<Notify>,
    /// What other nodes have, by id and node.
    others: Mutex<BTreeMap<String, BTreeMap<String, Told>>>,
    /// The turn to change the mountpoints of other nodes here.
    turn: tokio::sync::Mutex<()>,
}

/// What a node has told of a mountpoint.
#[derive(Debug, Clone)]
struct Told {
    definition: Definition,
    sources: Arc<dyn Sources>,
}

/// A mountpoint of this node that the others may show.
#[derive(Debug, Clone)]
pub struct OwnMountpoint {
    /// Its id.
    pub id: String,
    /// What the others get to know of it, without offers.
    pub definition: Definition,
    /// The source of each audio or video stream, if there is one.
    pub sources: Vec<Option<OwnSource>>,
    /// The data streams.
    pub data: Vec<OwnData>,
}

/// A data stream of a mountpoint of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnData {
    /// Its mid.
    pub mid: String,
    /// Its source.
    pub source: SourceRef,
}

/// The source of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSource {
    /// The source.
    pub source: SourceRef,
    /// Its format.
    pub description: SourceDescription,
}

impl OwnMountpoint {
    /// Returns the definition with an offer for each source.
    pub fn offered(&self, offers: Vec<Option<Offer>>) -> Definition {
        let mut definition = self.definition.clone();
        for (stream, offer) in definition.streams.iter_mut().zip(offers) {
            stream.offer = offer;
        }
        definition
    }
}

impl Mountpoints {
    /// Sets where the mountpoints are kept. The first place stays.
    pub(crate) fn keep_in(&self, shared: &Arc<Shared>) {
        // A server has one streaming plugin.
        let _ = self.0.shared.set(Arc::downgrade(shared));
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.0.shared.get()?.upgrade()
    }

    fn others(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Told>>> {
        self.0.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what wakes up [`Mountpoints::changed`].
    pub(crate) fn changes(&self) -> Arc<Notify> {
        self.0.changed.clone()
    }

    /// Waits until the mountpoints of this node may have changed. Some changes are seen only by a
    /// look.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Returns the mountpoints of this node that others may show: all but those that play a file for
    /// each viewer.
    pub fn own(&self) -> Vec<OwnMountpoint> {
        let all = self.shared().map(|shared| shared.mountpoints.all());
        let all = all.unwrap_or_default().into_iter();
        let own = all.filter(|it| it.home().is_none() && !it.is_on_demand());
        own.map(|mountpoint| own_mountpoint(&mountpoint)).collect()
    }

    /// Takes what another node has told of a mountpoint of its own.
    pub async fn set(&self, node: &str, id: &str, told: (Definition, Arc<dyn Sources>)) {
        let (definition, sources) = told;
        {
            let mut others = self.others();
            let of_node = others.values().filter(|nodes| nodes.contains_key(node));
            let is_known = others.get(id).is_some_and(|nodes| nodes.contains_key(node));
            if !is_known && of_node.count() >= MAX_OF_NODE {
                tracing::warn!(node, "streaming: a node has too many mountpoints");
                return;
            }
            let told = Told {
                definition,
                sources,
            };
            let nodes = others.entry(id.to_owned()).or_default();
            nodes.insert(node.to_owned(), told);
        }
        self.settle(id).await;
    }

    /// Removes a mountpoint that another node has no longer. Its viewers are told that it has ended.
    pub async fn remove(&self, node: &str, id: &str) {
        {
            let mut others = self.others();
            let Some(nodes) = others.get_mut(id) else {
                return;
            };
            nodes.remove(node);
            if nodes.is_empty() {
                others.remove(id);
            }
        }
        self.settle(id).await;
    }

    /// Returns the mountpoints of other nodes whose messages viewers here get, each with its node.
    pub fn wanted_data(&self) -> BTreeMap<String, String> {
        let wanting = self.relayed().into_iter().filter(|it| it.takes_messages());
        let wanted = wanting.filter_map(|it| Some((it.id.to_string(), it.home()?.to_owned())));
        wanted.collect()
    }

    /// Passes a message of a mountpoint of another node to its viewers here.
    pub fn give(&self, node: &str, message: &StreamMessage) {
        let Some(shared) = self.shared() else { return };
        let Some(id) = shared.mountpoints.ids().parse(&message.mountpoint) else {
            return;
        };
        if let Ok(mountpoint) = shared.mountpoints.get(&id)
            && mountpoint.home() == Some(node)
        {
            mountpoint.give(message);
        }
    }

    /// Takes the sources of a node again, which can be reached anew. Those before have ended.
    pub fn linked(&self, node: &str) {
        for mountpoint in self.relayed() {
            if mountpoint.home() == Some(node) {
                mountpoint.take_again();
            }
        }
    }

    /// Forgets a source of another node that has ended.
    pub fn lose_source(&self, ingest: IngestId) {
        let mut relayed = self.relayed().into_iter();
        let _ = relayed.any(|mountpoint| mountpoint.lose_source(ingest));
    }

    /// Does what is due: releases sources that nobody watches, and shows mountpoints of other nodes
    /// whose ids have become free. Called about once a second.
    pub async fn tidy(&self) {
        let now = Instant::now();
        let relayed = self.relayed();
        for mountpoint in &relayed {
            mountpoint.release_unwatched(now);
        }
        let Some(shared) = self.shared() else { return };
        let hidden: Vec<String> = {
            let others = self.others();
            let ids = others.keys().filter(|id| {
                let id = shared.mountpoints.ids().parse(id);
                id.is_some_and(|id| !shared.mountpoints.exists(&id))
            });
            ids.cloned().collect()
        };
        for id in hidden {
            self.settle(&id).await;
        }
    }

    fn relayed(&self) -> Vec<Arc<Mountpoint>> {
        let all = self.shared().map(|shared| shared.mountpoints.all());
        let mut all = all.unwrap_or_default();
        all.retain(|mountpoint| mountpoint.home().is_some());
        all
    }

    /// Makes the mountpoint with this id the one that it has to be: one of this node, or the one of
    /// the other node with the lowest name.
    async fn settle(&self, id: &str) {
        let _turn = self.0.turn.lock().await;
        let Some(shared) = self.shared() else { return };
        let ids = shared.mountpoints.ids();
        let Some(key) = ids.parse(id).filter(|id| *id != Id::Number(0)) else {
            tracing::debug!(
                id,
                "streaming: the id of another node's mountpoint is none here"
            );
            return;
        };
        let told = {
            let others = self.others();
            let first = others.get(id).and_then(|nodes| nodes.first_key_value());
            first.map(|(node, told)| (node.clone(), told.clone()))
        };
        let known = match shared.mountpoints.exists(&key) {
            true => shared.mountpoints.get(&key).ok(),
            false => None,
        };
        let Some((node, told)) = told else {
            if let Some(known) = known.filter(|known| known.home().is_some()) {
                end(&shared, &known).await;
            }
            return;
        };
        let spec = match told.definition.to_spec(&node) {
            Ok(spec) => SourceSpec::Relayed(spec),
            Err(error) => return tracing::warn!(node, id, "streaming: {error}"),
        };
        match known {
            Some(known) if known.home().is_none() => return,
            Some(known) if known.spec.source == spec && known.name == told.definition.name => {
                return known.follow(&told.definition, told.sources);
            }
            Some(known) => end(&shared, &known).await,
            None => {}
        }
        let spec = MountpointSpec {
            name: Some(told.definition.name.clone()),
            id: Some(key.clone()),
            details: Details::default(),
            source: spec,
        };
        // Fails if one of this node is being made.
        let Ok(reservation) = shared
            .mountpoints
            .reserve(Some(key.clone()), Maker::Operator)
        else {
            return;
        };
        let bounds = Bounds::Anywhere;
        let opened = mountpoint::open(shared.open_context(), spec, key, bounds).await;
        match opened {
            Ok(mountpoint) => {
                let mountpoint = Arc::new(mountpoint);
                mountpoint.follow(&told.definition, told.sources);
                reservation.keep(mountpoint.clone());
                mountpoint.announce();
            }
            Err(refusal) => tracing::warn!(node, id, "streaming: {refusal}"),
        }
    }
}

impl Shared {
    /// Makes an id free for a mountpoint of this node, which another node's has.
    pub(crate) async fn evict(&self, id: Option<&Id>) {
        let Some(id) = id.filter(|id| self.mountpoints.exists(id)) else {
            return;
        };
        if let Ok(known) = self.mountpoints.get(id)
            && known.home().is_some()
        {
            end(self, &known).await;
        }
    }
}

async fn end(shared: &Shared, mountpoint: &Arc<Mountpoint>) {
    if shared.mountpoints.remove(mountpoint).is_ok() {
        mountpoint.close().await;
        tracing::info!(id = %mountpoint.id(), "the mountpoint of another node has ended");
        shared.notify(None, || mountpoint.event("destroyed").into());
    }
}

fn own_mountpoint(mountpoint: &Mountpoint) -> OwnMountpoint {
    let details = mountpoint.details().clone();
    let is_data = |stream: &Stream| stream.kind() == MediaKind::Data;
    let media = mountpoint.streams.iter().filter(|it| !is_data(it));
    let (streams, sources) = media
        .map(|stream| (stream.definition(), stream.own_source(mountpoint)))
        .unzip();
    let all = mountpoint.streams.iter().enumerate();
    let data: Vec<_> = all.filter(|(_, stream)| is_data(stream)).collect();
    let data_definitions = data.iter();
    let data_definitions = data_definitions.map(|(index, stream)| stream.data_definition(*index));
    let data_definitions = data_definitions.collect();
    let data = data.into_iter();
    let data = data.filter_map(|(_, stream)| stream.own_data());
    OwnMountpoint {
        id: mountpoint.id.to_string(),
        definition: Definition {
            name: mountpoint.name.clone(),
            description: details.description,
            metadata: details.metadata,
            is_private: details.access.is_private,
            pin: details.access.sealed(&mountpoint.name).pin,
            has_secret: details.access.secret.is_some(),
            enabled: mountpoint.is_enabled(),
            described: mountpoint.is_described(),
            e2ee: mountpoint.is_e2ee(),
            playout_delay: mountpoint.has_playout_delay(),
            abs_capture_time: mountpoint.abs_capture_time(),
            streams,
            data: data_definitions,
        },
        sources,
        data: data.collect(),
    }
}

impl Stream {
    fn data_definition(&self, index: usize) -> DataDefinition {
        DataDefinition {
            index,
            mid: self.mid().as_str().to_owned(),
            label: self.spec.label.clone(),
            is_binary: self.spec.datatype == DataType::Binary,
            keeps_last: self.spec.buffermsg,
            is_fed: self.live().age.is_fed(),
        }
    }

    fn own_data(&self) -> Option<OwnData> {
        Some(OwnData {
            mid: self.mid().as_str().to_owned(),
            source: self.live().source?,
        })
    }

    fn definition(&self) -> StreamDefinition {
        let live = self.live();
        StreamDefinition {
            mid: self.mid().as_str().to_owned(),
            is_video: self.kind() == MediaKind::Video,
            label: self.spec.label.clone(),
            msid: self.spec.msid.clone(),
            codec: live.codec.map(|codec| codec.name().to_owned()),
            pt: live.pt,
            fmtp: live.fmtp.clone(),
            channels: live.channels,
            simulcast: live.simulcast,
            svc: live.svc,
            is_fed: live.age.is_fed(),
            offer: None,
        }
    }

    fn own_source(&self, mountpoint: &Mountpoint) -> Option<OwnSource> {
        let live = self.live();
        // Redundant audio crosses as a source of Opus, whose packets may be redundant.
        let codec = match live.codec? {
            StreamCodec::Plain(codec) => codec,
            StreamCodec::Red => CodecName::Opus,
        };
        let encodings = match (live.simulcast, self.spec.more_ports.len()) {
            (false, _) => 1,
            (true, 0) => ENCODINGS,
            (true, more) => u8::try_from(more).map_or(ENCODINGS, |more| more.saturating_add(1)),
        };
        let mut extensions = live.extensions;
        if let Some(id) = mountpoint.abs_capture_time() {
            extensions.set(ExtensionKind::AbsCaptureTime, id);
        }
        Some(OwnSource {
            source: live.source?,
            description: SourceDescription {
                encodings: encodings.min(ENCODINGS),
                opaque: mountpoint.is_e2ee(),
                ..SourceDescription::new(codec).with_extensions(&extensions)
            },
        })
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mountpoints").finish_non_exhaustive()
    }
}
