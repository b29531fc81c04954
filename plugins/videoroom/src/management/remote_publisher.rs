//! The requests about publishers of other servers.

use std::net::Ipv4Addr;
use std::sync::Arc;

use portunus_core::sdp::{CodecName, Kind, OfferedFlags};
use portunus_core::{FieldError, Fields, Mid, Object};
use portunus_room::{
    ExtensionIds, MAX_STREAMS, NewRemote, Place, Profile, Remote, RoomSettings, Stream,
    StreamFormat, hear,
};
use serde::Deserialize;

use super::success;
use super::target::{port, srtp};
use crate::prepared::Permit;
use crate::refusal::Refusal;
use crate::requests::fields::{ProfileMembers, free_id, person_in, wanted_id};
use crate::shared::Shared;

impl Shared {
    pub(super) fn add_remote_publisher(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        let room = self.permitted_room(fields, permit)?;
        let ids = self.rooms.ids();
        let wanted = wanted_id(fields, ids)?;
        let (place, srtp) = (place(fields)?, srtp(fields)?);
        let request: RemoteRequest = fields.read()?;
        if request.streams.is_empty() {
            return Err(FieldError::value("streams", "should not be empty").into());
        }
        if request.streams.len() > MAX_STREAMS {
            return Err(Refusal::value("streams", "too many"));
        }
        let mut state = room.lock();
        if state.is_destroyed() {
            let id = ids.required(fields, "room")?;
            return Err(Refusal::NoSuchRoom(id));
        }
        let e2ee = request.e2ee.unwrap_or(false);
        state.settings().check_e2ee(e2ee)?;
        let entries = request.streams.into_iter().enumerate();
        let streams = entries.map(|(index, entry)| entry.stream(state.settings(), index));
        let streams: Vec<Stream> = streams.collect::<Result<_, _>>()?;
        // The home has given an id.
        let given = permit.and_then(|permit| permit.id.clone());
        let id = given.or(wanted).unwrap_or_else(|| free_id(&state, ids));
        state.check_remote(&id)?;
        let (mut remote, hears) = Remote::open(self.media.clone(), &place, srtp)?;
        for stream in &streams {
            remote.take_in(stream, e2ee);
        }
        let (local, rtcp_port) = (remote.local(), remote.rtcp_port());
        let new = NewRemote {
            remote,
            profile: request.profile,
            e2ee,
            streams,
        };
        state.add_remote(&id, new);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(hear(Arc::downgrade(&room), id.clone(), hears));
        }
        tracing::info!(room = state.name(), %id, ?local, "remote publisher");
        let named = place.interface.is_some() || place.multicast.is_some();
        let show = self.show(&state);
        let reply = show
            .head("success")
            .with("id", show.id(&id))
            .with_some(
                "ip",
                local.filter(|_| named).map(|local| local.ip().to_string()),
            )
            .with_some("port", local.map(|local| local.port()))
            .with_some("rtcp_port", rtcp_port);
        Ok(reply)
    }

    pub(super) fn update_remote_publisher(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        let room = self.permitted_room(fields, permit)?;
        let id = person_in(fields, self.rooms.ids(), "id")?;
        room.lock().remote_streams(&id)?;
        let request: RemoteRequest = fields.read()?;
        let mut state = room.lock();
        let streams = state.remote_streams(&id)?;
        if let Some(e2ee) = request.e2ee {
            state.settings().check_e2ee(e2ee)?;
        }
        let mut updates = Vec::new();
        let mut count = streams.len();
        for entry in request.streams {
            let index = entry.place_among(streams, count)?;
            updates.push(entry.stream(state.settings(), index)?);
            count = count.max(index.saturating_add(1));
        }
        state.update_remote(&id, request.profile, request.e2ee, updates);
        Ok(success())
    }

    pub(super) fn remove_remote_publisher(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        self.permitted(fields, permit, |_, room| {
            let id = person_in(fields, self.rooms.ids(), "id")?;
            room.remote_streams(&id)?;
            room.remove_remote(&id);
            tracing::info!(room = room.name(), %id, "remote publisher removed");
            Ok(success())
        })
    }
}

/// The description of a publisher by another server.
#[derive(Deserialize)]
struct RemoteRequest {
    #[serde(with = "ProfileMembers")]
    profile: Profile,
    e2ee: Option<bool>,
    streams: Vec<StreamEntry>,
}

/// The description of a stream by another server.
#[derive(Deserialize)]
struct StreamEntry {
    #[serde(rename = "type")]
    kind: String,
    mid: String,
    mindex: u64,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    disabled: bool,
    description: Option<String>,
    stereo: bool,
    fec: bool,
    dtx: bool,
    simulcast: bool,
    svc: bool,
    h264_profile: Option<String>,
    vp9_profile: Option<String>,
    audiolevel_ext_id: Option<u64>,
    videoorient_ext_id: Option<u64>,
    playoutdelay_ext_id: Option<u64>,
    dependencydesc_ext_id: Option<u64>,
    codec: Option<String>,
}

/// Reads the ports for the media.
fn place(fields: Fields<'_>) -> Result<Place, Refusal> {
    let multicast = fields
        .text("mcast")?
        .map(str::parse::<Ipv4Addr>)
        .transpose();
    let multicast = multicast.map_err(|_| Refusal::value("mcast", "an IPv4 address"))?;
    Ok(Place {
        port: port(fields, "port")?.unwrap_or(0),
        rtcp_port: port(fields, "rtcp_port")?.unwrap_or(0),
        interface: fields.text("iface")?.map(str::to_owned),
        multicast,
    })
}

impl StreamEntry {
    /// Returns the index of the stream: a known one, or the next one after `count`.
    fn place_among(&self, streams: &[Stream], count: usize) -> Result<usize, Refusal> {
        let mut known = streams.iter();
        if let Some(stream) = known.find(|stream| stream.mid.as_str() == self.mid) {
            return Ok(stream.index);
        }
        let index = usize::try_from(self.mindex).ok();
        index
            .filter(|index| *index <= count && *index < MAX_STREAMS)
            .ok_or_else(|| Refusal::value("mindex", "not the next one"))
    }

    /// Returns the stream, with this index.
    fn stream(self, options: &RoomSettings, index: usize) -> Result<Stream, Refusal> {
        let details = self.details;
        let mut kinds = [Kind::Audio, Kind::Video, Kind::Data].into_iter();
        let kind = kinds.find(|kind| kind.name() == self.kind);
        let kind = kind.ok_or_else(|| Refusal::value("type", "audio, video or data"))?;
        let mid = Mid::new(&index.to_string());
        let mid = mid.ok_or_else(|| Refusal::value("streams", "too many"))?;
        let number = |name: &str, id: Option<u64>| -> Result<Option<u8>, Refusal> {
            let id = id.map(u8::try_from).transpose();
            let id = id.map_err(|_| Refusal::value(name, "at most 255"))?;
            Ok(id.filter(|id| *id > 0))
        };
        let mut stream = Stream::new(kind, mid, index);
        stream.disabled = details.disabled;
        stream.description = details.description;
        stream.format = StreamFormat {
            opus: OfferedFlags {
                stereo: details.stereo,
                fec: details.fec,
                dtx: details.dtx,
            },
            simulcast: details.simulcast && kind == Kind::Video,
            svc: details.svc && kind == Kind::Video,
            h264_profile: details.h264_profile,
            vp9_profile: details.vp9_profile,
            extensions: ExtensionIds {
                audio_level: number("audiolevel_ext_id", details.audiolevel_ext_id)?,
                video_orientation: number("videoorient_ext_id", details.videoorient_ext_id)?,
                playout_delay: number("playoutdelay_ext_id", details.playoutdelay_ext_id)?,
                dependency_descriptor: number(
                    "dependencydesc_ext_id",
                    details.dependencydesc_ext_id,
                )?,
            },
            ..StreamFormat::default()
        };
        // A disabled stream may have no codec.
        if kind == Kind::Data || details.codec.is_none() && stream.disabled {
            return Ok(stream);
        }
        let codec = details.codec.ok_or(Refusal::Codec("none"))?;
        let codec = CodecName::from_name(&codec).filter(|codec| codec.kind() == kind);
        let codec = codec.ok_or(Refusal::Codec("unsupported"))?;
        stream.format.codec = Some(codec);
        stream.disabled |= !options.codecs(kind).contains(&codec);
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn streams_are_read_as_publishers_are_told_of_theirs() {
        let options = RoomSettings::default();
        let told = json!({ "type": "video", "mid": "v", "mindex": 4, "codec": "vp8", "simulcast": true,
                           "description": "d", "videoorient_ext_id": 3 });
        let members = told.as_object().unwrap().clone();
        let entry: StreamEntry = Fields(&members).read().unwrap();
        let stream = entry.stream(&options, 1).unwrap();
        let own = json!({ "type": "video", "mid": "1", "mindex": 1, "codec": "vp8", "simulcast": true,
                          "description": "d", "videoorient_ext_id": 3 });
        assert_eq!(crate::messages::stream::own(&stream), own);
    }

    #[test]
    fn what_cannot_be_is_refused_or_disabled() {
        let options = RoomSettings::default();
        for (change, expected) in [
            (json!({}), Ok(false)),
            (json!({ "codec": "h264" }), Ok(true)),
            (json!({ "disabled": true }), Ok(true)),
            (json!({ "codec": "opus" }), Err(429)),
            (json!({ "codec": "mp3" }), Err(429)),
            (json!({ "codec": 1 }), Err(430)),
            (json!({ "type": "text" }), Err(430)),
            (json!({ "mindex": -1 }), Err(430)),
            (json!({ "playoutdelay_ext_id": 256 }), Err(430)),
        ] {
            let mut entry = json!({ "type": "video", "mid": "0", "mindex": 0, "codec": "vp8" });
            let members = entry.as_object_mut().unwrap();
            members.extend(change.as_object().unwrap().clone());
            let entry = Fields(members).read::<StreamEntry>().map_err(Refusal::from);
            let stream = entry.and_then(|entry| entry.stream(&options, 0));
            let read = stream.map(|stream| stream.disabled);
            assert_eq!(read.map_err(|refusal| refusal.code()), expected, "{change}");
        }
    }
}
