//! Outlets as the control plane asks for them.

use super::{Encodings, ForwardOptions, Forwarder, NewOutlet, OutletEnd, Tap, TapOptions, channel};
use crate::command::Command;
use crate::{MediaPlane, RouteId, RouteOptions, SourceRef};

impl MediaPlane {
    /// Hands the packets or messages of a source to the control plane. `options` gates and selects as for
    /// routes to peers; [`MediaPlane::set_route`] and [`MediaPlane::remove_route`] change and end it. A
    /// keyframe is asked for at the start. The tap ends ([`Tap::recv`] gives nothing more) with its route
    /// or its source, and at once if the source's peer is gone already.
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

    /// Asks for a keyframe of what a tap or forwarder takes.
    pub fn request_outlet_keyframe(&self, outlet: RouteId) {
        self.send_to(outlet.worker, Command::OutletKeyframe { outlet });
    }

    /// Sends the packets of a source as RTP, or its messages, to a UDP port. `options` gates and selects as for
    /// routes to peers; [`MediaPlane::set_route`] and [`MediaPlane::remove_route`] change and end it. It ends with
    /// its source too, and whether anybody listens to the port makes no difference. A keyframe is asked for at the
    /// start, and whenever the receiver asks for one by RTCP.
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
        self.send_to(id.worker, Command::AddOutlet(Box::new(new)));
        id
    }
}
