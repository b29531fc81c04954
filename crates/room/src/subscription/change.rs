//! Changes of a subscription: streams come, go, and take the m-lines of others.

use std::collections::{BTreeSet, HashMap};

use portunus_rtp::Mid;
use portunus_sdp::Kind;

use super::line::Line;
use super::request::{Change, Unsubscribe};
use super::track::{Track, e2ee_of, tracks};
use super::{MAX_LINES, Subscriber};
use crate::publication::Publications;
use crate::{PersonId, Refusal};

impl Subscriber {
    /// Adds and removes streams; after an error, none. Returns whether an offer is due.
    pub(crate) fn change(
        &mut self,
        change: Change,
        publications: &Publications,
    ) -> Result<bool, Refusal> {
        if self.waiting.is_some() {
            self.change_waiting(change, publications)?;
            return Ok(false);
        }
        let tracks = tracks(change.subscribe, publications)?;
        if self.negotiation.of_client {
            return Err(Refusal::LinesOfClient);
        }
        let concerned = change.unsubscribe.iter();
        let concerned: Vec<_> = concerned
            .map(|request| self.concerned(request, publications))
            .collect();
        self.check_room_for(&tracks, &concerned)?;
        if !self.careful
            && let Some(e2ee) = e2ee_of(&tracks, publications)?
        {
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
        // Another publisher on the m-line of data needs no offer, but a route.
        self.relay(publications);
        Ok(changed)
    }

    /// Puts a stream on a free or a new m-line. Returns whether an offer is due.
    pub(crate) fn subscribe(&mut self, track: Track) -> Result<bool, Refusal> {
        let mut lines = self.lines.iter_mut();
        if track.kind == Kind::Data
            && let Some(line) = lines.find(|line| line.kind == Kind::Data)
        {
            return Ok(line.add_data(track.request.feed));
        }
        let careful = self.careful;
        let free = |line: &&mut Line| {
            let same = line.kind == track.kind && line.codec() == track.codec;
            same && line.is_empty() && line.seat.is_none() && (line.vacant || !careful)
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

    /// Removes streams. Returns whether an offer is due.
    pub(super) fn unsubscribe(
        &mut self,
        request: &Unsubscribe,
        publications: &Publications,
    ) -> bool {
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

    /// Removes all streams of a publisher. Returns whether an offer is due.
    pub(super) fn remove_feed(&mut self, feed: &PersonId) -> bool {
        let mut changed = false;
        for line in &mut self.lines {
            changed |= line.remove_feed(&self.media, feed);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.forget(feed, changed);
        }
        changed
    }

    /// Returns the indices of the m-lines whose streams a request removes.
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

    /// Returns whether a stream is left after `requests`, which concern the m-lines in `concerned`.
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

    /// Checks that the streams fit once the m-lines in `concerned` are free.
    fn check_room_for(&self, tracks: &[Track], concerned: &[Vec<usize>]) -> Result<(), Refusal> {
        let freed: BTreeSet<usize> = concerned.iter().flatten().copied().collect();
        let mut free: HashMap<_, usize> = HashMap::new();
        for (index, line) in self.lines.iter().enumerate() {
            let is_free = match self.careful {
                true => line.is_empty() && line.vacant,
                false => line.is_empty() || freed.contains(&index),
            };
            if line.seat.is_none() && is_free {
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

    /// Checks that `more` m-lines of audio and video fit.
    pub(super) fn check_room(&self, more: usize) -> Result<(), Refusal> {
        let lines = self.lines.iter().filter(|line| line.kind != Kind::Data);
        match lines.count().saturating_add(more) > MAX_LINES {
            true => Err(Refusal::TooManyLines),
            false => Ok(()),
        }
    }
}
