//! The requests about publishers of other servers.

use std::net::Ipv4Addr;
use std::sync::Arc;

use portunus_core::sdp::{CodecName, Kind, OfferedFlags};
use portunus_core::{FieldError, Fields, Mid};
use portunus_room::{
    ExtensionIds, MAX_STREAMS, NewRemote, Place, Remote, RoomSettings, Stream, StreamUpdate, hear,
};
use serde_json::Value;

use super::success;
use super::target::{port, srtp};
use crate::Shared;
use crate::read::{person_in, profile, wanted_id};
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn add_remote_publisher(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.managed_room(fields)?;
        let wanted = wanted_id(fields, self.rooms.ids())?;
        let profile = profile(fields)?;
        let e2ee = fields.boolean("e2ee")?.unwrap_or(false);
        let (place, srtp) = (place(fields)?, srtp(fields)?);
        let entries = fields.some_objects("streams")?;
        let entries = entries.ok_or_else(|| FieldError::Missing("streams".to_owned()))?;
        if entries.len() > MAX_STREAMS {
            return Err(Refusal::value("streams", "too many"));
        }
        let mut state = room.lock();
        state.check_there()?;
        state.check_e2ee(e2ee)?;
        let entries = entries.into_iter().enumerate();
        let streams = entries.map(|(index, entry)| read(entry, state.settings(), index));
        let streams: Vec<Stream> = streams.collect::<Result<_, _>>()?;
        let id = wanted.unwrap_or_else(|| state.free_id());
        state.check_remote(&id)?;
        let (mut remote, hears) = Remote::open(self.media.clone(), &place, srtp)?;
        for stream in &streams {
            remote.take_in(stream, e2ee);
        }
        let (local, rtcp_port) = (remote.local(), remote.rtcp_port());
        let new = NewRemote {
            remote,
            profile,
            e2ee,
            streams,
        };
        state.add_remote(&id, new);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(hear(Arc::downgrade(&room.conference), id.clone(), hears));
        }
        tracing::info!(room = %room.id, %id, %local, "remote publisher");
        let named = place.interface.is_some() || place.multicast.is_some();
        let reply = success()
            .with("room", room.id.to_json())
            .with("id", state.show().id(&id))
            .with_some("ip", named.then(|| local.ip().to_string()))
            .with("port", local.port())
            .with("rtcp_port", rtcp_port);
        Ok(reply.into())
    }

    pub(super) fn update_remote_publisher(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.managed_room(fields)?;
        let id = person_in(fields, self.rooms.ids(), "id")?;
        room.lock().remote_streams(&id)?;
        let profile = profile(fields)?;
        let e2ee = fields.boolean("e2ee")?;
        let entries = fields.objects("streams")?;
        let entries = entries.ok_or_else(|| FieldError::Missing("streams".to_owned()))?;
        let mut state = room.lock();
        let streams = state.remote_streams(&id)?;
        if let Some(e2ee) = e2ee {
            state.check_e2ee(e2ee)?;
        }
        let mut updates = Vec::new();
        let mut count = streams.len();
        for entry in entries {
            let index = place_of(streams, entry, count)?;
            let stream = read(entry, state.settings(), index)?;
            count = count.max(index.saturating_add(1));
            let described = entry.has("description");
            updates.push(StreamUpdate { stream, described });
        }
        state.update_remote(&id, profile, e2ee, updates);
        Ok(success().into())
    }

    pub(super) fn remove_remote_publisher(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = person_in(fields, self.rooms.ids(), "id")?;
            room.remote_streams(&id)?;
            room.remove_remote(&id);
            tracing::info!(room = room.name(), %id, "remote publisher removed");
            Ok(success().into())
        })
    }
}

/// Which stream an entry is about: one of those that there are, or the next one after `count`.
fn place_of(streams: &[Stream], entry: Fields<'_>, count: usize) -> Result<usize, Refusal> {
    let mid = entry.required_string("mid")?;
    if let Some(stream) = streams.iter().find(|stream| stream.mid.as_str() == mid) {
        return Ok(stream.index);
    }
    let index = entry.positive("mindex")?;
    let index = index.ok_or_else(|| FieldError::Missing("mindex".to_owned()))?;
    let index = usize::try_from(index).ok();
    let is_next = |index: &usize| *index <= count && *index < MAX_STREAMS;
    index
        .filter(is_next)
        .ok_or_else(|| Refusal::value("mindex", "not the next one"))
}

/// Where the media comes to.
fn place(fields: Fields<'_>) -> Result<Place, Refusal> {
    let text = |name| -> Result<Option<&str>, FieldError> {
        Ok(fields.string(name)?.filter(|text| !text.is_empty()))
    };
    let multicast = text("mcast")?.map(str::parse::<Ipv4Addr>).transpose();
    let multicast = multicast.map_err(|_| Refusal::value("mcast", "an IPv4 address"))?;
    Ok(Place {
        port: port(fields, "port")?.unwrap_or(0),
        rtcp_port: port(fields, "rtcp_port")?.unwrap_or(0),
        interface: text("iface")?.map(str::to_owned),
        multicast,
    })
}

/// Reads what another server says of the stream that has place `index` here.
fn read(fields: Fields<'_>, options: &RoomSettings, index: usize) -> Result<Stream, Refusal> {
    let kind = match fields.required_string("type")? {
        "audio" => Kind::Audio,
        "video" => Kind::Video,
        "data" => Kind::Data,
        _ => return Err(Refusal::value("type", "audio, video or data")),
    };
    fields.required_string("mid")?;
    let number = fields.positive("mindex")?;
    number.ok_or_else(|| FieldError::Missing("mindex".to_owned()))?;
    let mid = Mid::new(&index.to_string());
    let mid = mid.ok_or_else(|| Refusal::value("streams", "too many"))?;
    let flag =
        |name: &str| -> Result<bool, FieldError> { Ok(fields.boolean(name)?.unwrap_or(false)) };
    let text = |name: &str| fields.string(name).map(|text| text.map(str::to_owned));
    let number = |name: &str| -> Result<Option<u8>, Refusal> {
        let id = fields.positive(name)?.map(u8::try_from).transpose();
        let id = id.map_err(|_| Refusal::value(name, "at most 255"))?;
        Ok(id.filter(|id| *id > 0))
    };
    let mut stream = Stream::new(kind, mid, index);
    stream.disabled = flag("disabled")?;
    stream.description = text("description")?;
    stream.opus = OfferedFlags {
        stereo: flag("stereo")?,
        fec: flag("fec")?,
        dtx: flag("dtx")?,
    };
    stream.simulcast = flag("simulcast")? && kind == Kind::Video;
    stream.svc = flag("svc")? && kind == Kind::Video;
    stream.h264_profile = text("h264_profile")?;
    stream.vp9_profile = text("vp9_profile")?;
    stream.extensions = ExtensionIds {
        audio_level: number("audiolevel_ext_id")?,
        video_orientation: number("videoorient_ext_id")?,
        playout_delay: number("playoutdelay_ext_id")?,
        dependency_descriptor: number("dependencydesc_ext_id")?,
    };
    let codec = fields.string("codec")?;
    let listed = match kind {
        Kind::Audio => &options.audiocodec,
        Kind::Video => &options.videocodec,
        Kind::Data => return Ok(stream),
    };
    // What is disabled is described without its codec.
    if codec.is_none() && stream.disabled {
        return Ok(stream);
    }
    let codec = codec.ok_or(Refusal::Codec("none"))?;
    let codec = CodecName::from_name(codec).filter(|codec| codec.kind() == kind);
    let codec = codec.ok_or(Refusal::Codec("unsupported"))?;
    stream.codec = Some(codec);
    stream.disabled |= !listed.contains(&codec);
    Ok(stream)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn streams_are_read_as_publishers_are_told_of_theirs() {
        let options = RoomSettings::default();
        let told = json!({ "type": "video", "mid": "v", "mindex": 4, "codec": "vp8", "simulcast": true,
                           "description": "d", "videoorient_ext_id": 3 });
        let members = told.as_object().unwrap().clone();
        let stream = read(Fields(&members), &options, 1).unwrap();
        let own = json!({ "type": "video", "mid": "1", "mindex": 1, "codec": "vp8", "simulcast": true,
                          "description": "d", "videoorient_ext_id": 3 });
        assert_eq!(crate::show::stream::own(&stream), own);
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
            let stream = read(Fields(members), &options, 0);
            let read = stream.map(|stream| stream.disabled);
            assert_eq!(read.map_err(|refusal| refusal.code()), expected, "{change}");
        }
    }
}
