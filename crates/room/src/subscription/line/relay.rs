//! The routes of an m-line.

use std::collections::HashMap;

use portunus_media::{Layer, MediaPlane, RouteOptions, SourceRef};
use portunus_sdp::Kind;

use super::{Line, Relayed, Source};
use crate::publication::{Layering, Publications, Stream};
use crate::{Connection, PersonId};

impl Line {
    /// Makes its routes what they should be: open, if the subscription's `gate` is.
    pub(in crate::subscription) fn relay(
        &mut self,
        connection: &dyn Connection,
        gate: bool,
        publications: &Publications,
    ) {
        let media = &publications.media;
        let wanted = self.wanted(connection, gate, publications);
        let mut wanted: HashMap<_, _> = wanted.into_iter().collect();
        let before = self.routes.len();
        self.routes.retain_mut(|known| {
            let Some(options) = wanted.remove(&known.from) else {
                media.remove_route(known.route);
                return false;
            };
            if known.options != options {
                media.set_route(known.route, options.clone());
                known.options = options;
            }
            true
        });
        if self.routes.len() < before {
            (self.current, self.reason) = (Layer::default(), None);
        }
        for (from, options) in wanted {
            if let Some(to) = connection.track(self.mid) {
                self.routes.push(Relayed {
                    route: media.route(from, to, options.clone()),
                    from,
                    options,
                });
            }
        }
    }

    pub(super) fn end_routes(&mut self, media: &MediaPlane) {
        for relayed in self.routes.drain(..) {
            media.remove_route(relayed.route);
        }
        (self.current, self.reason) = (Layer::default(), None);
    }

    /// Ends the route of one publisher whose data it carries.
    pub(super) fn end_route_of(&mut self, media: &MediaPlane, feed: &PersonId) {
        self.routes.retain(|relayed| {
            let ends = relayed.options.label.as_deref() == Some(feed.as_str());
            if ends {
                media.remove_route(relayed.route);
            }
            !ends
        });
    }

    /// Returns the routes that it should have, by their sources.
    fn wanted(
        &self,
        connection: &dyn Connection,
        gate: bool,
        publications: &Publications,
    ) -> Vec<(SourceRef, RouteOptions)> {
        if !self.ready {
            return Vec::new();
        }
        if let Source::Data(feeds) = &self.source {
            let wanted = feeds.iter().filter_map(|feed| {
                let publication = publications.up(feed)?;
                let stream = publication.data().next()?;
                let from = publication.origin.source(stream.mid)?;
                let options = RouteOptions {
                    enabled: gate && self.send && stream.is_open(),
                    label: Some(feed.as_str().into()),
                    ..RouteOptions::default()
                };
                Some((from, options))
            });
            return wanted.collect();
        }
        let track = self.track(publications).and_then(|(publication, stream)| {
            let from = publication.origin.source(stream.mid)?;
            let pausable = connection.may_pause() && stream.kind == Kind::Video;
            let options = self.options(stream, gate);
            Some((
                from,
                RouteOptions {
                    pausable,
                    ..options
                },
            ))
        });
        track.into_iter().collect()
    }

    fn options(&self, stream: &Stream, gate: bool) -> RouteOptions {
        let requested = &self.requested;
        let mut options = RouteOptions {
            enabled: gate && self.send && stream.is_open(),
            playout_delay: self.playout_delay(stream),
            priority: requested.priority,
            ..RouteOptions::default()
        };
        match stream.format.layering() {
            Layering::Simulcast => {
                options.substream = requested.substream;
                options.temporal = requested.temporal;
                options.fallback = requested.fallback;
            }
            Layering::Svc => {
                options.spatial = requested.spatial_layer;
                options.temporal = requested.temporal_layer;
            }
            Layering::Single => {}
        }
        options
    }
}
