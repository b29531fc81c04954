//! The routes of a subscription.

use std::collections::HashMap;

use portunus_core::media::{Layer, RouteId, RouteOptions, SourceRef};
use portunus_core::{Handle, HandleId};

use super::{Line, Relayed, Source, Subscriber};
use crate::id::Id;
use crate::publication::Stream;
use crate::room::RoomState;
use crate::roster::Participant;

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
    /// Makes the routes of m-line `index` what they should be.
    pub(super) fn relay(&mut self, index: usize, people: &HashMap<Id, Participant>) {
        let gate = !self.paused && !self.owner_kicked;
        let Some(line) = self.lines.get_mut(index) else {
            return;
        };
        let mut wanted: HashMap<_, _> = line.wanted(people, gate).into_iter().collect();
        let before = line.routes.len();
        line.routes.retain_mut(|known| {
            let Some(options) = wanted.remove(&known.from) else {
                self.handle.remove_route(known.route);
                return false;
            };
            if known.options != options {
                self.handle.set_route(known.route, options.clone());
                known.options = options;
            }
            true
        });
        if line.routes.len() < before {
            (line.current, line.reason) = (Layer::default(), None);
        }
        for (from, options) in wanted {
            let route = self.handle.route_from(from, line.mid, options.clone());
            line.routes.extend(route.map(|route| Relayed {
                route,
                from,
                options,
            }));
        }
    }

    /// The m-line that the route feeds.
    pub(super) fn fed_by(&mut self, route: RouteId) -> Option<&mut Line> {
        let feeds = |line: &&mut Line| line.routes.iter().any(|known| known.route == route);
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

    pub(super) fn end_routes(&mut self, handle: &Handle) {
        for relayed in self.routes.drain(..) {
            handle.remove_route(relayed.route);
        }
        (self.current, self.reason) = (Layer::default(), None);
    }

    /// Ends the route of one of the publishers whose data it carries.
    pub(super) fn end_route_of(&mut self, handle: &Handle, feed: &Id) {
        let label = feed.to_string();
        self.routes.retain(|relayed| {
            let ends = relayed.options.label.as_deref() == Some(label.as_str());
            if ends {
                handle.remove_route(relayed.route);
            }
            !ends
        });
    }

    /// The routes that it should have: from where, and how.
    fn wanted(
        &self,
        people: &HashMap<Id, Participant>,
        gate: bool,
    ) -> Vec<(SourceRef, RouteOptions)> {
        if !self.ready {
            return Vec::new();
        }
        if let Source::Data(feeds) = &self.source {
            let wanted = feeds.iter().filter_map(|feed| {
                let publisher = people.get(feed)?;
                let stream = publisher.up()?.data().next()?;
                let from = publisher.origin.source(stream.mid)?;
                let options = RouteOptions {
                    enabled: gate && self.send && stream.is_open(),
                    label: Some(feed.to_string().into()),
                    ..RouteOptions::default()
                };
                Some((from, options))
            });
            return wanted.collect();
        }
        let track = self.track(people).and_then(|(publisher, stream)| {
            let from = publisher.origin.source(stream.mid)?;
            Some((from, self.options(stream, gate)))
        });
        track.into_iter().collect()
    }

    fn options(&self, stream: &Stream, gate: bool) -> RouteOptions {
        let delay = self.requested.delay.range().or(stream.delay.range());
        let plain = RouteOptions {
            enabled: gate && self.send && stream.is_open(),
            playout_delay: delay,
            priority: self.requested.priority,
            ..RouteOptions::default()
        };
        let requested = &self.requested;
        if stream.simulcast {
            return RouteOptions {
                substream: requested.substream,
                temporal: requested.temporal,
                fallback: requested.fallback,
                ..plain
            };
        }
        if stream.svc {
            return RouteOptions {
                spatial: requested.spatial_layer,
                temporal: requested.temporal_layer,
                ..plain
            };
        }
        plain
    }
}
