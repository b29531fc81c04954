//! The requests about RTP forwarders.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_core::{Fields, Later, Reply};
use portunus_resources::{RoomContent, read_with_secret};
use serde::Deserialize;
use serde_json::Value;

use crate::forwarder_options::{ForwardMembers, ForwardRequest};
use crate::refusal::Refusal;
use crate::room::{NewForwarder, Room};
use crate::shared::Shared;
use crate::target::{self, Target};

/// The members of `stop_rtp_forward`.
#[derive(Deserialize)]
struct StopForward {
    stream_id: u64,
}

impl Shared {
    pub(super) fn rtp_forward(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let members: ForwardMembers<'_> = read_with_secret(fields)?;
        self.check_lock(fields, self.lock_rtp_forward)?;
        let mut request = members.check()?;
        let Target { host, .. } = request.target();
        if let Some(address) = host.numeric() {
            target::check(address, &self.outgoing)?;
        }
        request.spec.srtp = members.key()?;
        let room = self.managed_room(fields)?;
        {
            let state = room.lock();
            let group = request.group.as_deref();
            state.forwarders.check(&state.profile, group)?;
        }
        let start = Start { room, request };
        if let Some(address) = host.numeric() {
            return start.start(address).map(Reply::Success);
        }
        // The host is resolved last, after all other checks.
        let networks = Arc::clone(&self.outgoing);
        Ok(Reply::Later(Later::new(async move {
            let resolved = host.resolve().await;
            let checked = resolved.and_then(|address| target::check(address, &networks));
            let reply = checked.and_then(|address| start.start(address));
            reply.unwrap_or_else(|refusal| refusal.to_json())
        })))
    }

    pub(super) fn stop_rtp_forward(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let StopForward { stream_id } = read_with_secret(fields)?;
        self.check_lock(fields, self.lock_rtp_forward)?;
        self.managed(fields, |room, ()| {
            room.forwarders.end(stream_id);
            Ok(room.message("success").with("stream_id", stream_id).into())
        })
    }

    pub(super) fn list_forwarders(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room, ()| {
            let reply = room.message("forwarders");
            Ok(reply.with("rtp_forwarders", room.forwarders.list()).into())
        })
    }
}

/// A checked request for a forwarder.
struct Start {
    room: Arc<Room>,
    request: ForwardRequest,
}

impl Start {
    fn start(self, address: IpAddr) -> Result<Value, Refusal> {
        let ForwardRequest {
            spec, port, group, ..
        } = self.request;
        let state = &mut *self.room.lock();
        let place = state.forwarders.check(&state.profile, group.as_deref())?;
        let new = NewForwarder {
            wanted_id: None,
            to: (address, port).into(),
            spec,
            group: place,
        };
        let id = state.forwarders.start(new, &state.mix, &state.profile);
        let reply = state
            .message("success")
            .with_some("group", group.filter(|_| place.is_some()))
            .with("stream_id", id)
            .with("host", address.to_string())
            .with("port", port);
        Ok(reply.into())
    }
}
