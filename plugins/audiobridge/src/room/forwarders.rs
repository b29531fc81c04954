//! RTP forwarders: the mix of a room or of a group, sent to a UDP port. They end with the room.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_audio::{MixSource, Mixture};
use portunus_core::media::{Encodings, ForwardOptions, MediaPlane, RouteId, RouteOptions};
use portunus_core::{Object, Ssrc};
use serde_json::Value;

use super::RoomState;
use crate::codec::{codec_name, shared_encoding};
use crate::forward::ForwardSpec;
use crate::refusal::Refusal;

/// Forwarders that a room has at most: each sends to an address of anybody's choice.
const MAX_FORWARDERS: usize = 64;

/// The ids of all forwarders of the plugin.
#[derive(Debug, Default)]
pub(crate) struct StreamIds(Mutex<HashSet<u32>>);

impl StreamIds {
    /// Takes an id: the wanted one if it is free, or a random one.
    fn take(&self, wanted: Option<u32>) -> u32 {
        let mut taken = self.taken();
        if let Some(id) = wanted
            && taken.insert(id)
        {
            return id;
        }
        loop {
            let id = rand::random();
            if id != 0 && taken.insert(id) {
                return id;
            }
        }
    }

    fn give_back(&self, id: u32) {
        self.taken().remove(&id);
    }

    fn taken(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The forwarders of a room.
#[derive(Debug)]
pub(super) struct Forwarders {
    ids: Arc<StreamIds>,
    by_id: BTreeMap<u32, Forwarder>,
}

#[derive(Debug)]
struct Forwarder {
    to: SocketAddr,
    spec: ForwardSpec,
    ssrc: Ssrc,
    group: Option<String>,
    route: RouteId,
    /// What is forwarded, as long as this is there.
    _mix: MixSource,
}

impl Forwarder {
    /// As clients are told of it.
    fn to_json(&self, id: u32) -> Value {
        Object::new()
            .with("stream_id", id)
            .with_some("group", self.group.as_deref())
            .with("ip", self.to.ip().to_string())
            .with("port", self.to.port())
            .with("ssrc", self.ssrc.0)
            .with("codec", codec_name(self.spec.codec))
            .with("ptype", self.spec.pt.0)
            .with_some("srtp", self.spec.srtp.is_some().then_some(true))
            .with("always_on", self.spec.always_on)
            .into()
    }
}

impl Forwarders {
    pub(super) fn new(ids: Arc<StreamIds>) -> Self {
        Forwarders {
            ids,
            by_id: BTreeMap::new(),
        }
    }

    fn end(&mut self, id: u32, media: &MediaPlane) {
        if let Some(forwarder) = self.by_id.remove(&id) {
            media.remove_route(forwarder.route);
            self.ids.give_back(id);
        }
    }

    /// Ends all of them.
    pub(super) fn clear(&mut self, media: &MediaPlane) {
        let ids: Vec<u32> = self.by_id.keys().copied().collect();
        for id in ids {
            self.end(id, media);
        }
    }
}

impl RoomState {
    /// Checks that there may be one more forwarder, and gives the place of its group, if groups matter here.
    pub(crate) fn check_forwarder(&self, group: Option<&str>) -> Result<Option<usize>, Refusal> {
        if self.destroyed {
            return Err(Refusal::NoSuchRoom(self.id.clone()));
        }
        if self.forwarders.by_id.len() >= MAX_FORWARDERS {
            return Err(Refusal::Unknown(
                "A room has 64 forwarders at most".to_owned(),
            ));
        }
        let group = group.filter(|_| !self.options.groups.is_empty());
        group.map(|group| self.options.group(group)).transpose()
    }

    /// Forwards the mix, or that of a group; gives the forwarder's id.
    pub(crate) fn forward(
        &mut self,
        wanted: Option<u32>,
        to: SocketAddr,
        spec: ForwardSpec,
        group: Option<usize>,
    ) -> u32 {
        let id = self.forwarders.ids.take(wanted);
        let mixture = group.map_or(Mixture::Everyone, Mixture::Group);
        let encoding = shared_encoding(spec.codec, &self.options);
        let mix = self.sound.mix(mixture, encoding, spec.always_on);
        let ssrc = spec.ssrc.unwrap_or(Ssrc(id));
        let options = ForwardOptions {
            encodings: Encodings::Only(0),
            pt: Some(spec.pt),
            ssrc: Some(ssrc),
            // As clients know it: the first packet has number 1.
            after: Some(0),
            srtp: spec.srtp.clone(),
            ..ForwardOptions::new(to)
        };
        let route = self
            .media
            .forward(mix.source(), RouteOptions::default(), options);
        let name = group.and_then(|group| self.options.groups.get(group));
        let forwarder = Forwarder {
            to,
            spec,
            ssrc,
            group: name.cloned(),
            route,
            _mix: mix,
        };
        self.forwarders.by_id.insert(id, forwarder);
        tracing::info!(room = %self.id, %to, id, "the mix is forwarded");
        id
    }

    /// Ends a forwarder, if it is one of the room's.
    pub(crate) fn end_forwarder(&mut self, id: u64) {
        if let Ok(id) = u32::try_from(id) {
            self.forwarders.end(id, &self.media);
        }
    }

    /// All forwarders, as clients are told of them.
    pub(crate) fn forwarders(&self) -> Vec<Value> {
        let all = self.forwarders.by_id.iter();
        all.map(|(id, forwarder)| forwarder.to_json(*id)).collect()
    }
}

/// The ids are free again, however the room ended.
impl Drop for Forwarders {
    fn drop(&mut self) {
        for id in self.by_id.keys() {
            self.ids.give_back(*id);
        }
    }
}
