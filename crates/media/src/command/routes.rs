//! Commands that concern routes and outlets.

use portunus_graph::{RouteId, RouteOptions, SourceRef, TrackRef};

use crate::outlet::NewOutlet;

/// A command that concerns a route. [`RouteCommand::Set`] and [`RouteCommand::Remove`] concern
/// outlets, too.
#[derive(Debug)]
pub(crate) enum RouteCommand {
    /// To the worker of the sink.
    Add {
        from: SourceRef,
        to: TrackRef,
        options: RouteOptions,
    },
    Set(RouteOptions),
    Remove,
}

/// A command that concerns an outlet.
#[derive(Debug)]
pub(crate) enum OutletCommand {
    /// To the worker of the source.
    Add(Box<NewOutlet>),
    /// Requests a keyframe of what the outlet takes.
    RequestKeyframe(RouteId),
}
