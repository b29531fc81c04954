//! The requests about publishers of ours on other servers.

use portunus_core::media::ForwardRtcp;
use portunus_core::{Fields, Object, Reply};
use portunus_resources::Id;
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::publication::{Host, RemotePublication, address, port, required_port, srtp};
use crate::refusal::Refusal;
use crate::room::RoomState;

impl Shared {
    pub(super) fn publish_remotely(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let room = self.managed_room(fields)?;
        self.check_forwarding(fields)?;
        let publisher = self.rooms.ids().required(fields, "publisher_id")?;
        let remote_id = fields.required_string("remote_id")?.to_owned();
        let host = Host::required(fields)?;
        let to = required_port(fields, "port")?;
        let rtcp_port = port(fields, "rtcp_port")?;
        let srtp = srtp(fields)?;
        room.lock().check_remote_id(&publisher, &remote_id)?;
        self.resolved(vec![host], move |addresses| {
            let rtcp = rtcp_port.map(|port| {
                let to = address(addresses, 0, port)?;
                ForwardRtcp::bind(to).map_err(|error| Refusal::Socket(error.to_string()))
            });
            let remote = RemotePublication {
                id: remote_id,
                to: address(addresses, 0, to)?,
                rtcp: rtcp.transpose()?,
                srtp,
            };
            let mut state = room.lock();
            let (id, to) = (remote.id.clone(), remote.to);
            state.publish_remotely(&publisher, remote)?;
            tracing::info!(room = %room.id, %publisher, %to, "published remotely");
            Ok(reply(&state, &publisher).with("remote_id", id).into())
        })
    }

    pub(super) fn unpublish_remotely(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let publisher = self.rooms.ids().required(fields, "publisher_id")?;
            let remote_id = fields.required_string("remote_id")?;
            room.unpublish_remotely(&publisher, remote_id)?;
            Ok(reply(room, &publisher).into())
        })
    }

    pub(super) fn list_remotes(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let publisher = self.rooms.ids().required(fields, "publisher_id")?;
            let remotes = room.remotes(&publisher)?.iter();
            let list: Vec<Value> = remotes.map(RemotePublication::to_json).collect();
            Ok(reply(room, &publisher).with("list", list).into())
        })
    }
}

impl RemotePublication {
    /// As clients are told of it.
    fn to_json(&self) -> Value {
        let rtcp = self.rtcp.as_ref();
        Object::new()
            .with("remote_id", self.id.as_str())
            .with("host", self.to.ip().to_string())
            .with("port", self.to.port())
            .with_some("rtcp_port", rtcp.map(|rtcp| rtcp.remote().port()))
            .into()
    }
}

fn reply(room: &RoomState, publisher: &Id) -> Object {
    success()
        .with("room", room.id.to_json())
        .with("id", publisher.to_json())
}
