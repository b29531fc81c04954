//! What a subscription receives: streams come, go, and take the m-lines of others.

use std::collections::{BTreeSet, HashMap};

use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind};
use serde::Deserialize;

use super::layers::LayerRequest;
use super::line::Line;
use super::{MAX_LINES, Subscriber};
use crate::publication::Publications;
use crate::{PersonId, Refusal};

/// What a subscription receives from now on, and what no more.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// What it receives.
    pub subscribe: Vec<Subscribe>,
    /// What it receives no more.
    pub unsubscribe: Vec<Unsubscribe>,
}

/// A stream, or all streams of a publisher.
#[derive(Debug, Clone, Deserialize)]
pub struct Subscribe {
    /// The publisher.
    pub feed: PersonId,
    /// The publisher's m-line; `None` means all of them.
    pub mid: Option<String>,
    /// The client's name for it.
    pub crossrefid: Option<String>,
    /// Whether its media is let through.
    #[serde(default = "yes")]
    pub send: bool,
    /// Which layers.
    pub layers: LayerRequest,
}

/// A stream, all streams of a publisher, or an m-line of the subscription.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Unsubscribe {
    /// The publisher.
    pub feed: Option<PersonId>,
    /// The publisher's m-line; `None` means all of them.
    pub mid: Option<String>,
    /// The m-line of the subscription, which says more than the publisher.
    pub sub_mid: Option<String>,
}

pub(super) const fn yes() -> bool {
    true
}

/// A stream that is going to be received.
#[derive(Debug)]
pub(crate) struct Track {
    pub(super) mid: Mid,
    pub(super) kind: Kind,
    pub(super) codec: Option<CodecName>,
    pub(super) request: Subscribe,
}

/// The streams that are requested, if all feeds and m-lines are known. Disabled ones are left out.
pub(crate) fn tracks(
    requests: Vec<Subscribe>,
    publications: &Publications,
) -> Result<Vec<Track>, Refusal> {
    let mut tracks = Vec::new();
    for request in requests {
        let publication = publications.published(&request.feed)?;
        let mut streams: Vec<_> = publication.streams().iter().collect();
        if let Some(mid) = &request.mid {
            streams.retain(|stream| stream.mid.as_str() == mid);
            if streams.is_empty() {
                return Err(Refusal::NoSuchFeed(format!("{} mid {mid}", request.feed)));
            }
        }
        for stream in streams.into_iter().filter(|stream| !stream.disabled) {
            // More could not be had; that is known before they take memory.
            if tracks.len() >= 2 * MAX_LINES {
                return Err(Refusal::TooManyLines);
            }
            tracks.push(Track {
                mid: stream.mid,
                kind: stream.kind,
                codec: stream.codec,
                request: request.clone(),
            });
        }
    }
    Ok(tracks)
}

/// Whether all are encrypted end to end, if they all are or none is.
pub(crate) fn e2ee_of(
    tracks: &[Track],
    publications: &Publications,
) -> Result<Option<bool>, Refusal> {
    let mut e2ee = None;
    for track in tracks {
        let this = publications.published(&track.request.feed)?.e2ee;
        if e2ee.is_some_and(|e2ee| e2ee != this) {
            return Err(Refusal::MixedFeeds);
        }
        e2ee = Some(this);
    }
    Ok(e2ee)
}

impl Subscriber {
    /// Changes what is received; says whether that has to be offered. Nothing is done by halves.
    pub(crate) fn change(
        &mut self,
        change: Change,
        publications: &Publications,
    ) -> Result<bool, Refusal> {
        let tracks = tracks(change.subscribe, publications)?;
        if self.negotiation.of_client {
            return Err(Refusal::LinesOfClient);
        }
        let concerned = change.unsubscribe.iter();
        let concerned: Vec<_> = concerned
            .map(|request| self.concerned(request, publications))
            .collect();
        self.check_room_for(&tracks, &concerned)?;
        if let Some(e2ee) = e2ee_of(&tracks, publications)? {
            if self.keeps_some(&change.unsubscribe, &concerned) && self.e2ee != e2ee {
                return Err(Refusal::MixedFeeds);
            }
            self.e2ee = e2ee;
        }
        let mut changed = false;
        for request in &change.unsubscribe {
            changed |= self.unsubscribe(request, publications);
        }
        for track in tracks {
            changed |= self.subscribe(track)?;
        }
        // One more publisher on the m-line of data takes no offer.
        self.relay(publications);
        Ok(changed)
    }

    /// Takes a stream into an m-line; says whether that has to be offered.
    pub(crate) fn subscribe(&mut self, track: Track) -> Result<bool, Refusal> {
        let mut lines = self.lines.iter_mut();
        if track.kind == Kind::Data
            && let Some(line) = lines.find(|line| line.kind == Kind::Data)
        {
            return Ok(line.add_data(track.request.feed));
        }
        let free = |line: &&mut Line| {
            let same = line.kind == track.kind && line.codec() == track.codec;
            same && line.is_empty() && line.seat.is_none()
        };
        if let Some(line) = self.lines.iter_mut().find(free) {
            line.receive(track);
            return Ok(true);
        }
        if track.kind != Kind::Data {
            self.check_room(1)?;
        }
        let mid = Mid::new(&self.lines.len().to_string()).ok_or(Refusal::TooManyLines)?;
        let mut line = Line::new(track.kind, mid);
        line.receive(track);
        self.lines.push(line);
        Ok(true)
    }

    /// Lets streams go; says whether that has to be offered.
    fn unsubscribe(&mut self, request: &Unsubscribe, publications: &Publications) -> bool {
        let mut changed = false;
        for index in self.concerned(request, publications) {
            let Some(line) = self.lines.get_mut(index) else {
                continue;
            };
            changed |= match request.feed_only() {
                Some(feed) => line.remove_feed(&self.media, feed),
                None => line.clear(&self.media),
            };
        }
        changed
    }

    /// Receives nothing of a publisher any more; says whether that has to be offered.
    pub(super) fn remove_feed(&mut self, feed: &PersonId) -> bool {
        let mut changed = false;
        for line in &mut self.lines {
            changed |= line.remove_feed(&self.media, feed);
        }
        changed
    }

    /// The m-lines that are not to receive what they do.
    fn concerned(&self, request: &Unsubscribe, publications: &Publications) -> Vec<usize> {
        let lines = self.lines.iter().enumerate();
        let bound = lines.filter(|(_, line)| line.seat.is_none());
        if let Some(mid) = &request.sub_mid {
            let named = bound.filter(|(_, line)| line.mid.as_str() == mid);
            return named.map(|(index, _)| index).take(1).collect();
        }
        let Some(feed) = &request.feed else {
            return Vec::new();
        };
        let data = publications.get(feed).and_then(|known| known.data().next());
        let data = data.map(|stream| stream.mid);
        let mid = request.mid.as_deref();
        let concerned = bound.filter(|(_, line)| line.is_from(feed, mid, data));
        concerned.map(|(index, _)| index).collect()
    }

    /// Whether anything is left to receive once these requests are done, which concern these m-lines.
    fn keeps_some(&self, requests: &[Unsubscribe], concerned: &[Vec<usize>]) -> bool {
        let goes = |index: usize, feed: &PersonId| {
            let mut requests = requests.iter().zip(concerned);
            requests.any(|(request, lines)| {
                let of_feed = request.feed_only().is_none_or(|of| of == feed);
                of_feed && lines.contains(&index)
            })
        };
        let mut lines = self.lines.iter().enumerate();
        lines.any(|(index, line)| line.feeds().iter().any(|feed| !goes(index, feed)))
    }

    /// Checks that there is room for these streams once the m-lines that are `concerned` are free.
    fn check_room_for(&self, tracks: &[Track], concerned: &[Vec<usize>]) -> Result<(), Refusal> {
        let freed: BTreeSet<usize> = concerned.iter().flatten().copied().collect();
        let mut free: HashMap<_, usize> = HashMap::new();
        for (index, line) in self.lines.iter().enumerate() {
            if line.seat.is_none() && (line.is_empty() || freed.contains(&index)) {
                *free.entry((line.kind, line.codec())).or_default() += 1;
            }
        }
        let mut more = 0;
        for track in tracks.iter().filter(|track| track.kind != Kind::Data) {
            match free.get_mut(&(track.kind, track.codec)) {
                Some(left) if *left > 0 => *left -= 1,
                Some(_) | None => more += 1,
            }
        }
        self.check_room(more)
    }

    /// Checks that there is room for so many more m-lines of audio and video.
    pub(super) fn check_room(&self, more: usize) -> Result<(), Refusal> {
        let lines = self.lines.iter().filter(|line| line.kind != Kind::Data);
        match lines.count().saturating_add(more) > MAX_LINES {
            true => Err(Refusal::TooManyLines),
            false => Ok(()),
        }
    }
}

impl Unsubscribe {
    /// The feed, where it is not the m-line that is named.
    fn feed_only(&self) -> Option<&PersonId> {
        self.feed.as_ref().filter(|_| self.sub_mid.is_none())
    }
}
