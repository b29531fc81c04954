//! The requests about RTP forwarders.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_core::{FieldError, Fields, Later, Reply};
use portunus_resources::RoomContent;
use serde_json::Value;

use crate::forward::ForwardRequest;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::Room;
use crate::target::{self, Target};

impl Shared {
    pub(super) fn rtp_forward(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        check_types(fields)?;
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
        fields.string("secret")?;
        let stream_id = fields.required_positive("stream_id")?;
        self.rooms.ids().required(fields, "room")?;
        self.check_forwarding(fields)?;
        self.managed(fields, |room| {
            room.end_forwarder(stream_id);
            Ok(room.message("success").with("stream_id", stream_id).into())
        })
    }

    pub(super) fn list_forwarders(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let reply = room.message("forwarders");
            Ok(reply.with("rtp_forwarders", room.forwarders()).into())
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

/// Checks the types of the members of `rtp_forward`: they are told before what is wrong with a value.
fn check_types(fields: Fields<'_>) -> Result<(), FieldError> {
    fields.string("secret")?;
    fields.positive("ssrc")?;
    fields.string("codec")?;
    fields.positive("ptype")?;
    fields.required_positive("port")?;
    fields.required_string("host")?;
    fields.string("host_family")?;
    fields.positive("srtp_suite")?;
    fields.string("srtp_crypto")?;
    fields.boolean("always_on")?;
    fields.string("group")?;
    Ok(())
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
        let reply = state
            .message("success")
            .with_some("group", group.filter(|_| place.is_some()))
            .with("stream_id", id)
            .with("host", address.to_string())
            .with("port", port);
        Ok(reply.into())
    }
}
