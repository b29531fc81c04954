//! Outlets: taps, collectors and forwarders.

use portunus_graph::{RouteId, RouteOptions, SourceRef};

use super::MediaPlane;
use crate::command::{Command, OutletCommand};
use crate::outlet::{
    CollectInput, Collector, Encodings, ForwardOptions, Forwarder, NewOutlet, OutletEnd, Tap,
    TapOptions, channel,
};

impl MediaPlane {
    /// Passes the packets or messages of a source to the control plane. `options` gates and selects
    /// as for routes to peers; [`MediaPlane::set_route`] and [`MediaPlane::remove_route`] change
    /// and end it. It starts with a keyframe request. It ends with its source, and immediately if
    /// the source is gone.
    pub fn tap(
        &self,
        from: impl Into<SourceRef>,
        options: RouteOptions,
        tap: TapOptions,
    ) -> (RouteId, Tap) {
        let (input, output) = channel(&tap);
        let id = self.add_outlet(from.into(), options, tap.encodings, OutletEnd::Tap(input));
        (id, output)
    }

    /// Requests a keyframe of what a tap or forwarder takes.
    pub fn request_outlet_keyframe(&self, outlet: RouteId) {
        self.send_to(
            outlet.worker,
            Command::Outlet(OutletCommand::RequestKeyframe(outlet)),
        );
    }

    /// Sends the packets of a source as RTP, or its messages, to a UDP port. `options` gates and
    /// selects as for routes to peers; [`MediaPlane::set_route`] and [`MediaPlane::remove_route`]
    /// change and end it. It ends with its source. It starts with a keyframe request, and passes on
    /// those of the receiver.
    pub fn forward(
        &self,
        from: impl Into<SourceRef>,
        options: RouteOptions,
        forward: ForwardOptions,
    ) -> RouteId {
        let from = from.into();
        let serial = match from {
            SourceRef::Track(track) => track.peer.serial,
            SourceRef::Ingest(ingest) => ingest.serial,
        };
        let encodings = forward.encodings;
        let forwarder = Forwarder::new(forward, format!("portunus-{serial:x}"));
        let end = OutletEnd::Forward(Box::new(forwarder));
        self.add_outlet(from, options, encodings, end)
    }

    /// Passes the packets of an audio source to a collector, with `key`. Like a tap, it is changed
    /// and ended by its id, and ends with its source.
    pub fn collect(
        &self,
        from: impl Into<SourceRef>,
        options: RouteOptions,
        into: &Collector,
        key: u64,
    ) -> RouteId {
        let input = CollectInput::new(into, key);
        self.add_outlet(
            from.into(),
            options,
            Encodings::Best,
            OutletEnd::Collect(input),
        )
    }

    pub(super) fn add_outlet(
        &self,
        from: SourceRef,
        options: RouteOptions,
        encodings: Encodings,
        end: OutletEnd,
    ) -> RouteId {
        let id = RouteId {
            worker: from.worker(),
            serial: self.next_id(),
        };
        let new = NewOutlet {
            id,
            from,
            options,
            encodings,
            end,
        };
        self.send_to(
            id.worker,
            Command::Outlet(OutletCommand::Add(Box::new(new))),
        );
        id
    }
}
