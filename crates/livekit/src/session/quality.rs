//! The layers that a publisher has to send, and the quality of its connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use livekit_protocol::{
    ConnectionQuality, ConnectionQualityInfo, ConnectionQualityUpdate, SubscribedCodec,
    SubscribedQuality, SubscribedQualityUpdate, VideoQuality, signal_response,
};
use portunus_media::PeerStats;
use portunus_room::{ConnectionId, PersonId, State};
use portunus_rtp::Mid;
use portunus_sdp::Kind;
use tokio::time::{Instant, timeout};

use super::Session;
use crate::frame::Frame;
use crate::hall::{Hall, Role};

/// How long a layer that nobody wants any more is sent on.
const LOWERING: Duration = Duration::from_secs(5);

/// How often the quality of the connection is looked at.
pub(super) const MEASURING: Duration = Duration::from_secs(5);

/// How long statistics may take.
const STATS_LIMIT: Duration = Duration::from_secs(1);

/// The qualities with the numbers of their layers.
const QUALITIES: [(VideoQuality, u8); 3] = [
    (VideoQuality::Low, 0),
    (VideoQuality::Medium, 1),
    (VideoQuality::High, 2),
];

/// The layers of the published tracks that subscribers want, as the client knows them.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By the ids of tracks and the names of their codecs.
    known: HashMap<(String, String), Known>,
}

/// A codec of a track, with the highest layer that is wanted of it.
type WantedCodec = (String, Option<u8>);

/// The layers of a track that the client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// The highest layer, or `None` if nobody wants the track.
    layer: Option<u8>,
    /// When less was wanted first.
    lower_since: Option<Instant>,
}

impl Wanted {
    /// Takes the layer that is wanted now. Returns whether the client has to be told: of more at
    /// once, of less after a while.
    fn change(&mut self, sid: &str, (codec, layer): &WantedCodec, now: Instant) -> bool {
        let (key, layer) = ((sid.to_owned(), codec.clone()), *layer);
        let Some(known) = self.known.get_mut(&key) else {
            let lower_since = None;
            self.known.insert(key, Known { layer, lower_since });
            return true;
        };
        if layer >= known.layer {
            let is_new = layer > known.layer;
            (known.layer, known.lower_since) = (layer, None);
            return is_new;
        }
        let since = *known.lower_since.get_or_insert(now);
        let is_over = now.duration_since(since) >= LOWERING;
        if is_over {
            (known.layer, known.lower_since) = (layer, None);
        }
        is_over
    }

    /// Returns the layer of a codec that the client knows to be wanted.
    fn told(&self, sid: &str, codec: &str) -> WantedCodec {
        let known = self.known.get(&(sid.to_owned(), codec.to_owned()));
        (codec.to_owned(), known.and_then(|known| known.layer))
    }

    /// Returns when less will be told, unless more is wanted by then.
    fn deadline(&self) -> Option<Instant> {
        let since = self.known.values().filter_map(|known| known.lower_since);
        since.min().map(|since| since + LOWERING)
    }
}

impl Session {
    /// Tells the client which layers of its tracks are wanted.
    pub(super) fn balance(&mut self, now: Instant) {
        self.member.is_unbalanced.store(false, Ordering::Release);
        let hall = self.member.hall.clone();
        let state = hall.room.lock();
        let Some(publication) = state.published(&self.member.id) else {
            return;
        };
        let people = hall.people();
        let Some(person) = people.get(&self.member.id) else {
            return;
        };
        let sent = |mid: Option<Mid>| publication.stream(mid?).filter(|it| !it.disabled);
        let layer_of = |stream| state.wanted_layer(&self.member.id, stream);
        for track in person.tracks.iter().filter(|it| it.kind() == Kind::Video) {
            let Some(stream) = sent(track.mid) else {
                continue;
            };
            let codec = stream.format.codec.map_or("", |codec| codec.name());
            let mut codecs = vec![(codec.to_owned(), layer_of(stream).map(|it| it.min(2)))];
            codecs.extend(track.backup.as_ref().map(|backup| {
                let layer = match sent(backup.mid) {
                    Some(stream) => layer_of(stream).map(|it| it.min(2)),
                    // Its publisher sends it as soon as it is wanted.
                    None => backup.is_needed.then_some(2),
                };
                (backup.codec.codec.to_ascii_lowercase(), layer)
            }));
            let mut is_changed = false;
            for codec in &codecs {
                is_changed |= self.wanted.change(&track.sid, codec, now);
            }
            if is_changed {
                let told = codecs.iter().map(|it| self.wanted.told(&track.sid, &it.0));
                let update = quality_update(&track.sid, told.collect());
                let message = signal_response::Message::SubscribedQualityUpdate(update);
                self.member.out.message(message);
            }
        }
        self.balancing = self.wanted.deadline();
    }

    /// Looks at the quality of the connection.
    pub(super) async fn measure(&mut self) {
        self.measuring = Instant::now() + MEASURING;
        if !self.was_up {
            return;
        }
        let mut worst = ConnectionQuality::Excellent;
        for role in [Role::Publisher, Role::Subscriber] {
            let Some(handle) = self.member.handle(role) else {
                continue;
            };
            let stats = timeout(STATS_LIMIT, handle.stats()).await;
            if let Ok(Some(stats)) = stats {
                worst = worse(worst, quality(&stats));
            }
        }
        let hall = self.member.hall.clone();
        let mut people = hall.people();
        let Some(person) = people.get_mut(&self.member.id) else {
            return;
        };
        if person.quality.replace(worst) == Some(worst) {
            return;
        }
        let is_publisher = !person.tracks.is_empty();
        let frame = quality_frame(vec![(person.sid.clone(), worst)]);
        // Nobody shows the connections of thousands of viewers.
        if !is_publisher {
            self.member.out.send(&frame);
            return;
        }
        for member in people.members() {
            member.out.send(&frame);
        }
    }

    /// Tells the client the quality of the others' connections.
    pub(super) fn send_qualities(&self) {
        let people = self.member.hall.people();
        let known: Vec<_> = people.qualities().collect();
        if !known.is_empty() {
            self.member.out.send(&quality_frame(known));
        }
    }
}

/// Has the publishers of a subscription tell their clients which layers are wanted.
pub(super) fn unbalance(hall: &Hall, state: &State, key: ConnectionId) {
    let subscriber = state.subscriber(key);
    let lines = subscriber.into_iter().flat_map(|it| &it.lines);
    let sources = lines.filter_map(|line| line.source());
    let mut feeds: Vec<&PersonId> = sources.map(|(feed, _)| feed).collect();
    feeds.sort_unstable();
    feeds.dedup();
    unbalance_all(hall, feeds.into_iter());
}

/// Has publishers tell their clients which layers are wanted.
pub(super) fn unbalance_all<'a>(hall: &Hall, feeds: impl Iterator<Item = &'a PersonId>) {
    let people = hall.people();
    for feed in feeds {
        let member = people.get(feed).and_then(|person| person.member.as_ref());
        if let Some(member) = member {
            member.is_unbalanced.store(true, Ordering::Release);
            member.wake.notify_one();
        }
    }
}

fn quality_update(sid: &str, codecs: Vec<WantedCodec>) -> SubscribedQualityUpdate {
    let codec = |(codec, layer): WantedCodec| {
        let quality = |(quality, number): (VideoQuality, u8)| SubscribedQuality {
            quality: quality.into(),
            enabled: layer.is_some_and(|layer| number <= layer),
        };
        SubscribedCodec {
            codec,
            qualities: QUALITIES.into_iter().map(quality).collect(),
        }
    };
    let codecs: Vec<SubscribedCodec> = codecs.into_iter().map(codec).collect();
    SubscribedQualityUpdate {
        track_sid: sid.to_owned(),
        // Former clients know one codec only.
        subscribed_qualities: codecs
            .first()
            .map(|it| it.qualities.clone())
            .unwrap_or_default(),
        subscribed_codecs: codecs,
    }
}

fn quality_frame(qualities: Vec<(String, ConnectionQuality)>) -> Arc<Frame> {
    let info = |(sid, quality): (String, ConnectionQuality)| ConnectionQualityInfo {
        participant_sid: sid,
        quality: quality.into(),
        score: match quality {
            ConnectionQuality::Excellent => 4.5,
            ConnectionQuality::Good => 3.8,
            ConnectionQuality::Poor => 2.0,
            ConnectionQuality::Lost => 0.0,
        },
    };
    let updates = qualities.into_iter().map(info).collect();
    let update = ConnectionQualityUpdate { updates };
    Arc::new(Frame::new(signal_response::Message::ConnectionQuality(
        update,
    )))
}

/// Returns the quality of a PeerConnection by the packets that are not repaired.
fn quality(stats: &PeerStats) -> ConnectionQuality {
    let streams = stats.media.iter().flat_map(|media| {
        let sent = std::iter::once(&media.sent).filter(|_| media.send);
        media.received.iter().filter(|_| media.receive).chain(sent)
    });
    let used = streams.filter(|stream| stream.packets > 0);
    let worst = used.map(|stream| stream.media_link_quality).min();
    match worst {
        Some(0..=85) => ConnectionQuality::Poor,
        Some(86..=97) => ConnectionQuality::Good,
        Some(_) | None => ConnectionQuality::Excellent,
    }
}

fn worse(one: ConnectionQuality, other: ConnectionQuality) -> ConnectionQuality {
    let rank = |quality| match quality {
        ConnectionQuality::Lost => 0,
        ConnectionQuality::Poor => 1,
        ConnectionQuality::Good => 2,
        ConnectionQuality::Excellent => 3,
    };
    if rank(other) < rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_told_at_once_and_less_after_a_while() {
        let (mut wanted, start) = (Wanted::default(), Instant::now());
        let mut change = |layer, now| {
            let is_told = wanted.change("TR_1", &("vp8".to_owned(), layer), now);
            (is_told, wanted.deadline())
        };
        assert_eq!(
            change(Some(1), start),
            (true, None),
            "nothing was told before"
        );
        assert_eq!(change(Some(1), start), (false, None));
        assert_eq!(change(Some(2), start), (true, None));
        assert_eq!(change(Some(0), start), (false, Some(start + LOWERING)));
        assert_eq!(change(Some(2), start + LOWERING / 2), (false, None));
        assert!(!change(None, start + LOWERING).0);
        assert!(change(None, start + 2 * LOWERING).0);
        assert!(change(Some(0), start + 2 * LOWERING).0);
    }

    #[test]
    fn an_update_names_each_quality_for_old_and_new_clients() {
        let codecs = vec![("vp9".to_owned(), Some(1)), ("vp8".to_owned(), None)];
        let update = quality_update("TR_1", codecs);
        let enabled: Vec<bool> = update
            .subscribed_qualities
            .iter()
            .map(|it| it.enabled)
            .collect();
        assert_eq!(enabled, [true, true, false]);
        let [first, second] = update.subscribed_codecs.as_slice() else {
            unreachable!("there are two codecs")
        };
        assert_eq!((&*first.codec, &*second.codec), ("vp9", "vp8"));
        assert_eq!(first.qualities, update.subscribed_qualities);
        assert!(second.qualities.iter().all(|it| !it.enabled));
    }
}
