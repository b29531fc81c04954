//! The relayed media between the two sides of a call.

use portunus_core::media::RouteOptions;
use portunus_core::sdp::Kind;
use portunus_core::{Handle, Mid};

use crate::link::Link;
use crate::users::{UserId, Users};

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
        let (source, sink) = (source.handle.clone(), sink.handle.clone());
        let pairs = pairs(&source, &sink);
        let options = |users: &Users, mid, kind| users.options(from, to, mid, kind);
        let mut links = match self.get_mut(to) {
            Some(user) => std::mem::take(&mut user.call.links),
            None => return,
        };
        links.retain(|link| {
            let kept = pairs.contains(&(link.from, link.to, link.kind));
            if !kept {
                sink.remove_route(link.route);
            }
            kept
        });
        for (from_mid, to_mid, kind) in pairs {
            if links
                .iter()
                .any(|link| link.from == from_mid && link.to == to_mid)
            {
                continue;
            }
            let options = options(self, from_mid, kind);
            if let Some(route) = source.route(from_mid, &sink, to_mid, options) {
                links.push(Link {
                    from: from_mid,
                    to: to_mid,
                    kind,
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
        for link in &user.call.links {
            user.handle
                .set_route(link.route, self.options(from, to, link.from, link.kind));
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

/// Returns the m-lines at the same places with the same kind of media on both sides.
fn pairs(from: &Handle, to: &Handle) -> Vec<(Mid, Mid, Kind)> {
    let (Some(from), Some(to)) = (from.negotiated(), to.negotiated()) else {
        return Vec::new();
    };
    from.media
        .iter()
        .zip(&to.media)
        .filter(|(from, to)| {
            from.kind == to.kind && from.kind != Kind::Data && !from.disabled && !to.disabled
        })
        .map(|(from, to)| (from.mid, to.mid, from.kind))
        .collect()
}
