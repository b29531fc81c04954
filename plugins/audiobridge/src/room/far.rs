//! The clients of other nodes of the cluster: participants whose media is relayed, and listeners.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use portunus_audio::{MixOutlet, MixSource, Mixture, Out};
use portunus_core::media::SourceRef;
use portunus_core::media::ingest::IngestId;
use portunus_dsp::{AudioCodec, ParticipantId};
use portunus_relay::{Offer, SourceDescription, Sources};
use portunus_resources::Id;

use super::mix::Mix;
use super::participant::Participant;
use super::{Audience, Link, RoomState, Who};
use crate::cluster::{ClusterRooms, FarClient, FarMedia, FarMessage, StayId};
use crate::codec::{codec_name, named_codec, sdp_codec, shared_encoding};
use crate::options::RoomOptions;

/// The relayed media of a participant.
#[derive(Debug, Default)]
pub(crate) struct FarLink {
    media: FarMedia,
    source: Option<FarSource>,
    mix: Option<OfferedMix>,
}

/// A source of another node.
#[derive(Debug)]
struct FarSource {
    sources: Arc<dyn Sources>,
    offer: Offer,
    ingest: Option<IngestId>,
}

impl Drop for FarSource {
    fn drop(&mut self) {
        if let Some(ingest) = self.ingest.take() {
            self.sources.release(ingest);
        }
    }
}

/// The mix of one participant, which its node may take.
#[derive(Debug)]
struct OfferedMix {
    outlet: Arc<MixOutlet>,
    offer: Offer,
    cluster: ClusterRooms,
}

impl Drop for OfferedMix {
    fn drop(&mut self) {
        self.cluster.withdraw(self.offer.id);
    }
}

impl FarLink {
    /// Whether its packets carry audio levels.
    pub(super) const fn has_levels(&self) -> bool {
        self.media.levels
    }

    /// Whether in-band FEC is sent.
    pub(super) const fn fec(&self) -> bool {
        self.media.fec
    }

    /// Whether its packets may be redundant audio.
    pub(super) const fn red(&self) -> bool {
        self.media.red
    }

    pub(super) fn source(&self) -> Option<SourceRef> {
        let ingest = self.source.as_ref()?.ingest?;
        Some(SourceRef::from(ingest))
    }

    pub(super) fn out(&self) -> Option<Out> {
        let mix = self.mix.as_ref()?;
        Some(Out::Source(Arc::clone(&mix.outlet)))
    }

    /// Takes the media of a client, as its node tells it. Returns whether it has changed.
    fn set(&mut self, client: &FarClient, media: FarMedia, codec: AudioCodec, mix: &Mix) -> bool {
        let mut changed = false;
        let usable = |offer: &&Offer| offer.description.codec == sdp_codec(codec);
        let offer = media.offer.as_ref().filter(usable);
        let known = self.source.as_ref().map(|source| source.offer.id);
        if known != offer.map(|offer| offer.id) {
            self.source = offer.and_then(|offer| FarSource::take(client, offer));
            changed = true;
        }
        let hears = media.hears.as_deref() == Some(codec_name(codec));
        if hears != self.mix.is_some() {
            self.mix = hears.then(|| OfferedMix::of(client, codec, mix)).flatten();
            changed = true;
        }
        changed |= (self.media.levels, self.media.fec) != (media.levels, media.fec);
        self.media = media;
        changed
    }
}

impl FarSource {
    fn take(client: &FarClient, offer: &Offer) -> Option<Self> {
        let sources = client.cluster.sources(client.node())?;
        Some(FarSource {
            ingest: sources.take(offer),
            offer: offer.clone(),
            sources,
        })
    }
}

impl OfferedMix {
    /// Offers the mix of a participant to its node.
    fn of(client: &FarClient, codec: AudioCodec, mix: &Mix) -> Option<Self> {
        let outlet = mix.room().outlet(codec);
        let description = SourceDescription::new(sdp_codec(codec));
        let offer = client.cluster.offer(outlet.source(), description)?;
        client.send(&FarMessage::Mix {
            stay: client.stay(),
            offer: offer.clone(),
        });
        Some(OfferedMix {
            outlet: Arc::new(outlet),
            offer,
            cluster: client.cluster.clone(),
        })
    }
}

impl RoomState {
    /// Returns the participant `id` if it still has this number.
    fn numbered(&mut self, id: &Id, number: ParticipantId) -> Option<&mut Participant> {
        let person = self.roster.get_mut(id);
        person.filter(|person| person.number == number)
    }

    /// Takes the media of a participant of another node.
    pub(crate) fn set_far_media(&mut self, id: &Id, number: ParticipantId, media: FarMedia) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let Who::Far(client) = &person.who else {
            return;
        };
        if person.number != number {
            return;
        }
        let is_up = media.is_up;
        let mut link = match std::mem::replace(&mut person.link, Link::None) {
            Link::Far(link) => link,
            Link::None | Link::Peer(_) | Link::Rtp(_) | Link::Phone(_) => Box::default(),
        };
        let changed = link.set(client, media, person.settings.codec, &self.mix);
        person.link = Link::Far(link);
        match (person.setup, is_up) {
            (false, true) => self.up(id),
            (true, _) if changed => self.connect(id),
            _ => {}
        }
    }

    /// Takes the source of a participant anew, because there is a new link to its node.
    pub(crate) fn retake_far_source(&mut self, id: &Id, number: ParticipantId) {
        let Some(person) = self.numbered(id, number) else {
            return;
        };
        let Link::Far(link) = &mut person.link else {
            return;
        };
        let Some(source) = &mut link.source else {
            return;
        };
        // The one before has ended with the link.
        let before = source.ingest;
        source.ingest = source.sources.take(&source.offer);
        if source.ingest != before && person.setup {
            self.connect(id);
        }
    }

    /// Removes a participant of another node. `lost`: not at its own request.
    pub(crate) fn depart(&mut self, id: &Id, number: ParticipantId, lost: bool) {
        if self.numbered(id, number).is_some() {
            let audience = match lost {
                true => Audience::All,
                false => Audience::Listening,
            };
            self.remove_and_notify(id, audience);
        }
    }

    pub(crate) fn add_far_listener(&mut self, client: FarClient) {
        self.far_listeners.add(client);
        self.changed();
    }

    pub(crate) fn remove_far_listener(&mut self, node: &str, stay: StayId) {
        self.far_listeners.remove(node, stay);
        self.changed();
    }

    /// Takes the media of a listener of another node.
    pub(crate) fn set_far_listener(&mut self, node: &str, stay: StayId, media: &FarMedia) {
        let hears = media.hears.as_deref();
        let codec = hears.and_then(|name| named_codec(Some(name)).ok());
        let options = self.profile.options();
        self.far_listeners
            .set(node, stay, codec, (&self.mix, options));
    }
}

/// The listeners of other nodes. All with one codec share one mix, which crosses the link to each
/// of their nodes once.
#[derive(Debug, Default)]
pub(crate) struct FarListeners {
    by_node: HashMap<Arc<str>, HashMap<StayId, FarListener>>,
    mixes: HashMap<AudioCodec, Weak<SharedMix>>,
}

#[derive(Debug)]
struct FarListener {
    client: FarClient,
    hears: Option<(AudioCodec, Arc<SharedMix>)>,
}

/// A mix that the nodes of listeners may take.
#[derive(Debug)]
struct SharedMix {
    offer: Offer,
    cluster: ClusterRooms,
    /// Dropping it ends the mix.
    _mix: MixSource,
}

impl Drop for SharedMix {
    fn drop(&mut self) {
        self.cluster.withdraw(self.offer.id);
    }
}

impl FarListeners {
    /// The number of listeners.
    pub(super) fn len(&self) -> usize {
        self.by_node.values().map(HashMap::len).sum()
    }

    fn add(&mut self, client: FarClient) {
        let listeners = self.by_node.entry(Arc::clone(client.node())).or_default();
        let hears = None;
        listeners.insert(client.stay(), FarListener { client, hears });
    }

    fn remove(&mut self, node: &str, stay: StayId) {
        if let Some(listeners) = self.by_node.get_mut(node) {
            listeners.remove(&stay);
            if listeners.is_empty() {
                self.by_node.remove(node);
            }
        }
        self.mixes.retain(|_, mix| mix.strong_count() > 0);
    }

    /// Removes all listeners.
    pub(super) fn take_all(&mut self) -> Vec<FarClient> {
        self.mixes.clear();
        let all = std::mem::take(&mut self.by_node).into_values();
        let all = all.flat_map(HashMap::into_values);
        all.map(|listener| listener.client).collect()
    }

    /// Sets the codec that a listener hears, or that it hears nothing.
    fn set(
        &mut self,
        node: &str,
        stay: StayId,
        codec: Option<AudioCodec>,
        of: (&Mix, &RoomOptions),
    ) {
        let listener = self.by_node.get(node).and_then(|it| it.get(&stay));
        let Some(listener) = listener else { return };
        let known = listener.hears.as_ref().map(|(codec, _)| *codec);
        if known == codec {
            return;
        }
        let client = listener.client.clone();
        let hears = codec.and_then(|codec| Some((codec, self.shared_mix(&client, codec, of)?)));
        if let Some((_, mix)) = &hears {
            let offer = mix.offer.clone();
            client.send(&FarMessage::Mix { stay, offer });
        }
        let listeners = self.by_node.get_mut(node);
        if let Some(listener) = listeners.and_then(|it| it.get_mut(&stay)) {
            listener.hears = hears;
        }
    }

    /// Returns the mix that all listeners with this codec share.
    fn shared_mix(
        &mut self,
        client: &FarClient,
        codec: AudioCodec,
        (mix, options): (&Mix, &RoomOptions),
    ) -> Option<Arc<SharedMix>> {
        if let Some(mix) = self.mixes.get(&codec).and_then(Weak::upgrade) {
            return Some(mix);
        }
        let mix = mix.source(Mixture::Everyone, shared_encoding(codec, options), false);
        let description = SourceDescription::new(sdp_codec(codec));
        let shared = Arc::new(SharedMix {
            offer: client.cluster.offer(mix.source(), description)?,
            cluster: client.cluster.clone(),
            _mix: mix,
        });
        self.mixes.insert(codec, Arc::downgrade(&shared));
        Some(shared)
    }
}
