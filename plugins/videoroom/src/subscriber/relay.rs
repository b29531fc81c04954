//! The routes of a subscription.

use std::collections::HashMap;

use portunus_core::media::{Layer, RouteId, RouteOptions};
use portunus_core::{Handle, HandleId};

use super::{Line, Relayed, Source, Subscriber};
use crate::id::Id;
use crate::participant::{Participant, Stream};
use crate::room::RoomState;

impl RoomState {
    /// Makes the routes of a subscription what they should be.
    pub(crate) fn relay(&mut self, key: HandleId) {
        let RoomState {
            people,
            subscribers,
            ..
        } = self;
        if let Some(subscriber) = subscribers.get_mut(&key) {
            for index in 0..subscriber.lines.len() {
                subscriber.relay(index, people);
            }
        }
    }

    /// Makes the routes of one stream what they should be.
    pub(crate) fn relay_stream(&mut self, feed: &Id, stream: usize) {
        self.gate_forwarders(feed, stream);
        let RoomState {
            people,
            subscribers,
            ..
        } = self;
        let media = people.get(feed).and_then(|person| person.media.as_ref());
        let Some(stream) = media.and_then(|media| media.streams.get(stream)) else {
            return;
        };
        for (key, index) in &stream.receivers {
            if let Some(subscriber) = subscribers.get_mut(key) {
                subscriber.relay(*index, people);
            }
        }
    }
}

impl Subscriber {
    fn relay(&mut self, index: usize, people: &HashMap<Id, Participant>) {
        let gate = !self.paused && !self.cut_off;
        let Some(line) = self.lines.get_mut(index) else {
            return;
        };
        let track = line.track(people).filter(|_| line.ready);
        let Some((publisher, stream)) = track else {
            line.end_route(&self.handle);
            return;
        };
        let options = line.options(stream, gate);
        let Some(from) = publisher.origin.source(stream.mid) else {
            line.end_route(&self.handle);
            return;
        };
        match &mut line.route {
            Some(relayed) if relayed.from == from => {
                if relayed.options != options {
                    self.handle.set_route(relayed.route, options.clone());
                    relayed.options = options;
                }
            }
            _ => {
                line.end_route(&self.handle);
                let route = self.handle.route_from(from, line.mid, options.clone());
                line.route = route.map(|route| Relayed {
                    route,
                    from,
                    options,
                });
            }
        }
    }

    /// The m-line that the route feeds.
    pub(super) fn fed_by(&mut self, route: RouteId) -> Option<&mut Line> {
        let feeds = |line: &&mut Line| line.route.as_ref().is_some_and(|r| r.route == route);
        self.lines.iter_mut().find(feeds)
    }
}

impl Line {
    /// The stream that it receives, if there is media of it.
    pub(super) fn track<'a>(
        &self,
        people: &'a HashMap<Id, Participant>,
    ) -> Option<(&'a Participant, &'a Stream)> {
        let Source::Track { feed, mid } = &self.source else {
            return None;
        };
        let publisher = people.get(feed)?;
        let stream = publisher.up()?.stream(*mid)?;
        (!stream.disabled).then_some((publisher, stream))
    }

    pub(super) fn end_route(&mut self, handle: &Handle) {
        if let Some(relayed) = self.route.take() {
            handle.remove_route(relayed.route);
            self.now = Layer::default();
            self.why = None;
        }
    }

    fn options(&self, stream: &Stream, gate: bool) -> RouteOptions {
        let delay = self.wish.delay.range().or(stream.delay.range());
        let plain = RouteOptions {
            enabled: gate && self.send && stream.is_open(),
            playout_delay: delay,
            ..RouteOptions::default()
        };
        let wish = &self.wish;
        if stream.simulcast {
            return RouteOptions {
                substream: wish.substream,
                temporal: wish.temporal,
                fallback: wish.fallback,
                ..plain
            };
        }
        if stream.svc {
            return RouteOptions {
                spatial: wish.spatial_layer,
                temporal: wish.temporal_layer,
                ..plain
            };
        }
        plain
    }
}
