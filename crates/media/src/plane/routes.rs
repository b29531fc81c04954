//! Routes, and what sources keep for their receivers.

use portunus_graph::{KeyframeCache, KeyframeInterval, RouteId, RouteOptions, SourceRef, TrackRef};

use super::MediaPlane;
use crate::command::{Command, RouteCommand, SourceCommand};

impl MediaPlane {
    /// Relays `from` to the m-line `to` of a peer. Either m-line may be negotiated later. The route
    /// ends with [`MediaPlane::remove_route`], or with its source or sink.
    pub fn route(
        &self,
        from: impl Into<SourceRef>,
        to: TrackRef,
        options: RouteOptions,
    ) -> RouteId {
        let from = from.into();
        let route = RouteId {
            worker: to.peer.worker,
            serial: self.next_id(),
        };
        let command = RouteCommand::Add { from, to, options };
        self.send_to(route.worker, Command::Route(route, command));
        route
    }

    /// Changes how a route selects and relays.
    pub fn set_route(&self, route: RouteId, options: RouteOptions) {
        self.send_to(
            route.worker,
            Command::Route(route, RouteCommand::Set(options)),
        );
    }

    /// Ends a route.
    pub fn remove_route(&self, route: RouteId) {
        self.send_to(route.worker, Command::Route(route, RouteCommand::Remove));
    }

    /// Keeps the packets of a video source from its last keyframe on, so that a new sink has a
    /// picture immediately. Has no effect with simulcast.
    pub fn keep_keyframe(&self, source: impl Into<SourceRef>, keep: Option<KeyframeCache>) {
        let source = source.into();
        self.send_to(
            source.worker(),
            Command::Source(source, SourceCommand::KeepKeyframe(keep)),
        );
    }

    /// Requests keyframes of a video source with receivers when none has come for a time. `None`
    /// disables that.
    pub fn ask_keyframes(&self, source: impl Into<SourceRef>, interval: Option<KeyframeInterval>) {
        let source = source.into();
        self.send_to(
            source.worker(),
            Command::Source(source, SourceCommand::SetKeyframeInterval(interval)),
        );
    }

    /// Requests keyframes of all encodings of a video source.
    pub fn request_source_keyframe(&self, source: impl Into<SourceRef>) {
        let source = source.into();
        self.send_to(
            source.worker(),
            Command::Source(source, SourceCommand::RequestKeyframes),
        );
    }
}
