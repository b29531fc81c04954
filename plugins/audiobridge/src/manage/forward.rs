//! The requests about RTP forwarders.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_core::{Fields, Later, Object, Reply};
use serde_json::Value;

use super::{ROOM, success};
use crate::forward::ForwardRequest;
use crate::members::{Members, Type, check};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::Room;
use crate::target::{self, Target};

/// The types of `rtp_forward`.
const FORWARDED: Members = &[
    ("secret", Type::Text),
    ("ssrc", Type::Number),
    ("codec", Type::Text),
    ("ptype", Type::Number),
    ("port", Type::NeededNumber),
    ("host", Type::NeededText),
    ("host_family", Type::Text),
    ("srtp_suite", Type::Number),
    ("srtp_crypto", Type::Text),
    ("always_on", Type::Flag),
    ("group", Type::Text),
];

/// The types of `stop_rtp_forward`.
const STOPPED: Members = &[("secret", Type::Text), ("stream_id", Type::NeededNumber)];

impl Shared {
    pub(super) fn rtp_forward(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        check(fields, FORWARDED)?;
        self.rooms.ids().required(fields, "room")?;
        self.check_forwarding(fields)?;
        let request = ForwardRequest::read(fields)?;
        let Target { host, .. } = request.target();
        if let Some(address) = host.numeric() {
            let address = target::check(address, &self.outgoing)?;
            let room = self.managed_with_key(fields, request)?;
            return room.start(address).map(Reply::Success);
        }
        // Whatever is wrong with the rest is told before anybody is asked for an address.
        let start = self.managed_with_key(fields, request)?;
        let networks = Arc::clone(&self.outgoing);
        Ok(Reply::Later(Later::new(async move {
            let resolved = host.resolve().await;
            let checked = resolved.and_then(|address| target::check(address, &networks));
            let reply = checked.and_then(|address| start.start(address));
            reply.unwrap_or_else(|refusal| refusal.to_json())
        })))
    }

    /// Reads the key of a forwarder, and finds the room, which it may manage.
    fn managed_with_key(
        &self,
        fields: Fields<'_>,
        mut request: ForwardRequest,
    ) -> Result<Start, Refusal> {
        request.read_key(fields)?;
        let room = self.managed_room(fields)?;
        room.lock().check_forwarder(request.group.as_deref())?;
        Ok(Start { room, request })
    }

    pub(super) fn stop_rtp_forward(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        check(fields, STOPPED)?;
        self.rooms.ids().required(fields, "room")?;
        self.check_forwarding(fields)?;
        let stream = fields.required_positive("stream_id")?;
        self.managed(fields, STOPPED, |room| {
            room.end_forwarder(stream);
            let reply = success().with("room", room.id.to_json());
            Ok(reply.with("stream_id", stream).into())
        })
    }

    pub(super) fn list_forwarders(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, ROOM, |room| {
            let reply = Object::new()
                .with("audiobridge", "forwarders")
                .with("room", room.id.to_json())
                .with("rtp_forwarders", room.forwarders());
            Ok(reply.into())
        })
    }

    /// Checks that a request may forward, where that is locked.
    fn check_forwarding(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        match self.lock_rtp_forward {
            true => Ok(self.rooms.check_admin_key(fields)?),
            false => Ok(()),
        }
    }
}

/// A forwarder that may be.
struct Start {
    room: Arc<Room>,
    request: ForwardRequest,
}

impl Start {
    fn start(self, address: IpAddr) -> Result<Value, Refusal> {
        let ForwardRequest {
            spec, port, group, ..
        } = self.request;
        let mut state = self.room.lock();
        let place = state.check_forwarder(group.as_deref())?;
        let id = state.forward(None, (address, port).into(), spec, place);
        let reply = success()
            .with("room", state.id.to_json())
            .with_some("group", group.filter(|_| place.is_some()))
            .with("stream_id", id)
            .with("host", address.to_string())
            .with("port", port);
        Ok(reply.into())
    }
}
