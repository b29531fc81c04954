//! The requests about publishers of ours on other servers.

use portunus_core::media::ForwardRtcp;
use portunus_core::{Fields, Object, Reply};
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::id::Id;
use crate::publication::{
    Forwarder, Host, MAX_FORWARDERS, Remotization, address, port, required_port, srtp,
};
use crate::refusal::Refusal;
use crate::room::RoomState;

impl Shared {
    pub(super) fn publish_remotely(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let room = self.managed_room(fields)?;
        self.check_forwarding(fields)?;
        let publisher = self.ids.required(fields, "publisher_id")?;
        let remote_id = fields.required_string("remote_id")?.to_owned();
        let host = Host::required(fields)?;
        let to = required_port(fields, "port")?;
        let rtcp_port = port(fields, "rtcp_port")?;
        let srtp = srtp(fields)?;
        room.lock().check_remotizable(&publisher, &remote_id)?;
        self.resolved(vec![host], move |addresses| {
            let rtcp = rtcp_port.map(|port| {
                let to = address(addresses, 0, port)?;
                ForwardRtcp::bind(to).map_err(|error| Refusal::Socket(error.to_string()))
            });
            let remotization = Remotization {
                id: remote_id,
                to: address(addresses, 0, to)?,
                rtcp: rtcp.transpose()?,
                srtp,
            };
            let mut state = room.lock();
            state.check_remotizable(&publisher, &remotization.id)?;
            let media = state.people.get_mut(&publisher);
            if let Some(media) = media.and_then(|person| person.media.as_mut()) {
                media.remotizations.push(remotization.clone());
            }
            state.forward_remotely(&publisher, &remotization);
            tracing::info!(room = %room.id, %publisher, to = %remotization.to, "published remotely");
            Ok(told(&state, &publisher)
                .with("remote_id", remotization.id)
                .into())
        })
    }

    pub(super) fn unpublish_remotely(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let publisher = self.ids.required(fields, "publisher_id")?;
            let remote_id = fields.required_string("remote_id")?;
            room.named(&publisher)?;
            let media = room.people.get_mut(&publisher);
            let known = media.and_then(|person| person.media.as_mut()).map(|media| {
                let before = media.remotizations.len();
                media.remotizations.retain(|known| known.id != remote_id);
                before > media.remotizations.len()
            });
            if known != Some(true) {
                return Err(Refusal::NoSuchFeed(remote_id.to_owned()));
            }
            let is_of = |forwarder: &Forwarder| forwarder.remote_id.as_deref() == Some(remote_id);
            room.end_forwarders(&publisher, is_of);
            Ok(told(room, &publisher).into())
        })
    }

    pub(super) fn list_remotes(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let publisher = self.ids.required(fields, "publisher_id")?;
            let person = room.named(&publisher)?;
            let remotizations = person.media.iter().flat_map(|media| &media.remotizations);
            let list: Vec<Value> = remotizations.map(Remotization::to_json).collect();
            Ok(told(room, &publisher).with("list", list).into())
        })
    }
}

impl RoomState {
    /// Checks that a publisher can be published elsewhere by this name.
    fn check_remotizable(&self, publisher: &Id, remote_id: &str) -> Result<(), Refusal> {
        let person = self.named(publisher)?;
        if person.origin.handle().is_none() {
            let reason = "not a publisher of this server";
            return Err(Refusal::value("publisher_id", reason));
        }
        let media = self.forwardable(publisher)?.media.as_ref();
        let mut known = media.into_iter().flat_map(|media| &media.remotizations);
        if known.clone().count() >= MAX_FORWARDERS {
            let reason = "a publisher is on 64 other servers at most";
            return Err(Refusal::value("remote_id", reason));
        }
        match known.any(|known| known.id == remote_id) {
            true => Err(Refusal::IdExists(Id::Text(remote_id.to_owned()))),
            false => Ok(()),
        }
    }
}

impl Remotization {
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

fn told(room: &RoomState, publisher: &Id) -> Object {
    success()
        .with("room", room.id.to_json())
        .with("id", publisher.to_json())
}
