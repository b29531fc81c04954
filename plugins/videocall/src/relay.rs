//! The relayed media between the two sides of a call.

use portunus_core::media::{RouteOptions, SourceRef};
use portunus_core::sdp::Kind;
use portunus_core::{Handle, Mid};

use crate::link::Link;
use crate::users::{Line, User, UserId, Users};

impl Users {
    /// Links all m-lines of both sides in both directions, and ends other links.
    pub(crate) fn link(&mut self, a: UserId, b: UserId) {
        self.link_to(a, b);
        self.link_to(b, a);
    }

    fn link_to(&mut self, from: UserId, to: UserId) {
        let (Some(source), Some(sink)) = (self.get(from), self.get(to)) else {
            return;
        };
        let Some(handle) = sink.handle().cloned() else {
            let sources = source.sources();
            if let Some(far) = self.far_mut(to) {
                far.offer(sources);
            }
            return;
        };
        let pairs = pairs(source, &handle);
        let mut links = match self.get_mut(to) {
            Some(user) => std::mem::take(&mut user.call.links),
            None => return,
        };
        links.retain(|link| {
            let kept = pairs.iter().any(|pair| pair.has(link));
            if !kept {
                handle.remove_route(link.route);
            }
            kept
        });
        for pair in pairs {
            if links.iter().any(|link| pair.has(link)) {
                continue;
            }
            let options = self.options(from, to, pair.from, pair.kind);
            if let Some(route) = handle.route_from(pair.source, pair.to, options) {
                links.push(Link {
                    from: pair.from,
                    to: pair.to,
                    kind: pair.kind,
                    source: pair.source,
                    route,
                });
            }
        }
        if let Some(user) = self.get_mut(to) {
            user.call.links = links;
        }
        self.apply(from, to);
    }

    /// Applies the settings of both sides to their links.
    pub(crate) fn apply_settings(&self, a: UserId, b: UserId) {
        self.apply(a, b);
        self.apply(b, a);
    }

    fn apply(&self, from: UserId, to: UserId) {
        let Some(user) = self.get(to) else { return };
        let Some(handle) = user.handle() else { return };
        for link in &user.call.links {
            let options = self.options(from, to, link.from, link.kind);
            handle.set_route(link.route, options);
        }
    }

    /// Returns the options of a link: the sender sets the gate, the receiver chooses the layers.
    fn options(&self, from: UserId, to: UserId, mid: Mid, kind: Kind) -> RouteOptions {
        let (Some(from), Some(to)) = (self.get(from), self.get(to)) else {
            return RouteOptions::default();
        };
        let gate = &from.call.settings;
        let enabled = if kind == Kind::Audio {
            gate.audio
        } else {
            gate.video
        };
        let plain = RouteOptions {
            enabled,
            ..RouteOptions::default()
        };
        if from.call.simulcast != Some(mid) {
            return plain;
        }
        let wish = &to.call.settings;
        RouteOptions {
            substream: wish.substream,
            temporal: wish.temporal,
            fallback: wish.fallback,
            ..plain
        }
    }
}

/// Two m-lines at the same place, with the same kind of media.
#[derive(Debug, Clone, Copy)]
struct Pair {
    from: Mid,
    to: Mid,
    kind: Kind,
    source: SourceRef,
}

impl Pair {
    fn has(&self, link: &Link) -> bool {
        (link.from, link.to, link.kind, link.source) == (self.from, self.to, self.kind, self.source)
    }
}

/// Returns the m-lines at the same places with the same kind of media on both sides.
fn pairs(from: &User, to: &Handle) -> Vec<Pair> {
    let Some(sinks) = to.negotiated() else {
        return Vec::new();
    };
    let sources: Vec<(Mid, Kind, Option<SourceRef>)> = match &from.line {
        Line::Here(handle) => {
            let media = handle.negotiated().map_or_else(Vec::new, |it| it.media);
            let media = media.iter().map(|media| {
                let track = handle.track(media.mid).filter(|_| !media.disabled);
                (media.mid, media.kind, track.map(SourceRef::from))
            });
            media.collect()
        }
        Line::There(far) => far.tracks().collect(),
    };
    let pairs = sources.into_iter().zip(&sinks.media);
    let pairs =
        pairs.filter(|((_, kind, _), to)| *kind == to.kind && *kind != Kind::Data && !to.disabled);
    let pairs = pairs.filter_map(|((from, kind, source), to)| {
        Some(Pair {
            from,
            to: to.mid,
            kind,
            source: source?,
        })
    });
    pairs.collect()
}
