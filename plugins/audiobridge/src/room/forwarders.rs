//! RTP forwarders: they send the mix of a room or of a group to a UDP port until the room ends.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_audio::{MixSource, Mixture};
use portunus_core::media::{Encodings, ForwardOptions, MediaPlane, RouteId, RouteOptions};
use portunus_core::{Object, Ssrc};
use serde_json::Value;

use super::mix::Mix;
use super::profile::Profile;
use crate::codec::{codec_name, shared_encoding};
use crate::forwarder_options::ForwardSpec;
use crate::refusal::Refusal;

/// The limit of forwarders in a room: each sends to an address that a client chose.
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
pub(crate) struct Forwarders {
    ids: Arc<StreamIds>,
    media: MediaPlane,
    by_id: BTreeMap<u32, Forwarder>,
}

/// A forwarder that is to start.
#[derive(Debug)]
pub(crate) struct NewForwarder {
    pub(crate) wanted_id: Option<u32>,
    pub(crate) to: SocketAddr,
    pub(crate) spec: ForwardSpec,
    /// The index of the group to forward, or `None` for the whole room.
    pub(crate) group: Option<usize>,
}

#[derive(Debug)]
struct Forwarder {
    to: SocketAddr,
    spec: ForwardSpec,
    ssrc: Ssrc,
    group: Option<String>,
    route: RouteId,
    /// Dropping it ends the mix.
    _mix: MixSource,
}

impl Forwarder {
    /// Describes it to clients.
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
    pub(super) fn new(ids: Arc<StreamIds>, media: MediaPlane) -> Self {
        Forwarders {
            ids,
            media,
            by_id: BTreeMap::new(),
        }
    }

    /// The media plane that they send by.
    pub(super) fn media(&self) -> &MediaPlane {
        &self.media
    }

    /// The number of forwarders.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Checks that one more forwarder may start. Returns the index of its group, if the room has
    /// groups.
    pub(crate) fn check(
        &self,
        profile: &Profile,
        group: Option<&str>,
    ) -> Result<Option<usize>, Refusal> {
        profile.check_there()?;
        if self.by_id.len() >= MAX_FORWARDERS {
            return Err(Refusal::Unknown(
                "A room has 64 forwarders at most".to_owned(),
            ));
        }
        let options = profile.options();
        let group = group.filter(|_| !options.groups.is_empty());
        group.map(|group| options.group(group)).transpose()
    }

    /// Starts a forwarder, and returns its id.
    pub(crate) fn start(&mut self, new: NewForwarder, mix: &Mix, profile: &Profile) -> u32 {
        let NewForwarder {
            wanted_id,
            to,
            spec,
            group,
        } = new;
        let id = self.ids.take(wanted_id);
        let mixture = group.map_or(Mixture::Everyone, Mixture::Group);
        let encoding = shared_encoding(spec.codec, profile.options());
        let mix = mix.source(mixture, encoding, spec.always_on);
        let ssrc = spec.ssrc.unwrap_or(Ssrc(id));
        let options = ForwardOptions {
            encodings: Encodings::Only(0),
            pt: Some(spec.pt),
            ssrc: Some(ssrc),
            // The first packet has number 1, as clients know it.
            after: Some(0),
            srtp: spec.srtp.clone(),
            ..ForwardOptions::new(to)
        };
        let route = self
            .media
            .forward(mix.source(), RouteOptions::default(), options);
        let name = group.and_then(|group| profile.options().groups.get(group));
        let forwarder = Forwarder {
            to,
            spec,
            ssrc,
            group: name.cloned(),
            route,
            _mix: mix,
        };
        self.by_id.insert(id, forwarder);
        tracing::info!(room = %profile.id(), %to, id, "the mix is forwarded");
        id
    }

    /// Ends the forwarder `id`, if the room has it.
    pub(crate) fn end(&mut self, id: u64) {
        let removed = u32::try_from(id).ok().and_then(|id| {
            let forwarder = self.by_id.remove(&id)?;
            Some((id, forwarder))
        });
        if let Some((id, forwarder)) = removed {
            self.media.remove_route(forwarder.route);
            self.ids.give_back(id);
        }
    }

    /// Ends all forwarders.
    pub(super) fn end_all(&mut self) {
        for (id, forwarder) in std::mem::take(&mut self.by_id) {
            self.media.remove_route(forwarder.route);
            self.ids.give_back(id);
        }
    }

    /// Describes all forwarders to clients.
    pub(crate) fn list(&self) -> Vec<Value> {
        let all = self.by_id.iter();
        all.map(|(id, forwarder)| forwarder.to_json(*id)).collect()
    }
}

/// Frees the ids, however the room ended.
impl Drop for Forwarders {
    fn drop(&mut self) {
        for id in self.by_id.keys() {
            self.ids.give_back(*id);
        }
    }
}
