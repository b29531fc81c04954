//! The requests about publications on other servers.

use portunus_core::{Fields, Object, Reply};
use portunus_room::{PersonId, RemotePublication};
use serde::Deserialize;
use serde_json::Value;

use super::target::{Host, address, port, required_port, rtcp, srtp};
use crate::messages::Show;
use crate::prepared::Permit;
use crate::refusal::Refusal;
use crate::requests::fields::person_in;
use crate::shared::Shared;

/// The id of a publication on another server.
#[derive(Deserialize)]
struct RemoteId {
    remote_id: String,
}

impl Shared {
    pub(super) fn publish_remotely(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Reply, Refusal> {
        let room = self.permitted_room(fields, permit)?;
        self.check_forwarding(fields)?;
        let ids = self.rooms.ids();
        let publisher = person_in(fields, ids, "publisher_id")?;
        let RemoteId { remote_id } = fields.read()?;
        let host = Host::required(fields)?;
        let to = required_port(fields, "port")?;
        let rtcp_port = port(fields, "rtcp_port")?;
        let srtp = srtp(fields)?;
        room.lock().check_remote_id(&publisher, &remote_id)?;
        self.resolved(vec![host], move |addresses| {
            let remote = RemotePublication {
                id: remote_id,
                to: address(addresses, 0, to)?,
                rtcp: rtcp(addresses, 0, rtcp_port)?,
                srtp,
            };
            let mut state = room.lock();
            let (id, to) = (remote.id.clone(), remote.to);
            state.publish_remotely(&publisher, remote)?;
            tracing::info!(room = state.name(), %publisher, %to, "published remotely");
            let reply = reply(Show::new(ids, &state), &publisher);
            Ok(reply.with("remote_id", id).into())
        })
    }

    pub(super) fn unpublish_remotely(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        self.permitted(fields, permit, |_, room| {
            let publisher = person_in(fields, self.rooms.ids(), "publisher_id")?;
            let RemoteId { remote_id } = fields.read()?;
            room.unpublish_remotely(&publisher, &remote_id)?;
            Ok(reply(self.show(room), &publisher))
        })
    }

    pub(super) fn list_remotes(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        self.permitted(fields, permit, |_, room| {
            let publisher = person_in(fields, self.rooms.ids(), "publisher_id")?;
            let remotes = room.remotes(&publisher)?.iter();
            let list: Vec<Value> = remotes.map(to_json).collect();
            Ok(reply(self.show(room), &publisher).with("list", list))
        })
    }
}

/// Returns a publication on another server as clients see it.
fn to_json(remote: &RemotePublication) -> Value {
    let rtcp = remote.rtcp.as_ref();
    Object::new()
        .with("remote_id", remote.id.as_str())
        .with("host", remote.to.ip().to_string())
        .with("port", remote.to.port())
        .with_some("rtcp_port", rtcp.map(|rtcp| rtcp.remote().port()))
        .into()
}

fn reply(show: Show<'_>, publisher: &PersonId) -> Object {
    show.head("success").with("id", show.id(publisher))
}
