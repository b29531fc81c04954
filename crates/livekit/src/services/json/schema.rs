//! The fields of the messages that services answer with, in the order of their declaration.
//!
//! prost keeps no description of a message, and pbjson writes lower camel case without default
//! values. Twirp's JSON needs both.

/// A message.
#[derive(Debug)]
pub(crate) struct Message {
    /// The name, with its package.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it"))]
    pub(super) name: &'static str,
    pub(super) fields: &'static [(&'static str, Kind)],
}

/// The type of a field, as far as its default value needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Number,
    /// An integer of 64 bits, which JSON has as a text.
    Long,
    Flag,
    /// An enum with the name of its first value.
    Enum(&'static str),
    List,
    Messages(&'static Message),
    Map,
    /// A message, `null` if it is not there.
    One(&'static Message),
    /// A member of a `oneof`, left out if it is not there.
    Choice,
}

use Kind::{Choice, Enum, Flag, List, Long, Map, Messages, Number, One, Text};

/// A message without fields.
pub(crate) static EMPTY: Message = Message {
    name: "",
    fields: &[],
};

macro_rules! message {
    ($constant:ident, $name:literal, $($field:literal: $kind:expr),+ $(,)?) => {
        pub(crate) static $constant: Message = Message {
            name: concat!("livekit.", $name),
            fields: &[$(($field, $kind)),+],
        };
    };
}

message!(CODEC, "Codec", "mime": Text, "fmtp_line": Text);
message!(TIMED_VERSION, "TimedVersion", "unix_micro": Long, "ticks": Number);
message!(
    ROOM, "Room",
    "sid": Text,
    "name": Text,
    "empty_timeout": Number,
    "departure_timeout": Number,
    "max_participants": Number,
    "creation_time": Long,
    "creation_time_ms": Long,
    "turn_password": Text,
    "enabled_codecs": Messages(&CODEC),
    "metadata": Text,
    "num_participants": Number,
    "num_publishers": Number,
    "active_recording": Flag,
    "version": One(&TIMED_VERSION),
);
message!(LIST_ROOMS, "ListRoomsResponse", "rooms": Messages(&ROOM));
message!(
    PERMISSION, "ParticipantPermission",
    "can_subscribe": Flag,
    "can_publish": Flag,
    "can_publish_data": Flag,
    "can_publish_sources": List,
    "hidden": Flag,
    "recorder": Flag,
    "can_update_metadata": Flag,
    "agent": Flag,
    "can_subscribe_metrics": Flag,
    "can_manage_agent_session": Flag,
);
message!(
    VIDEO_LAYER, "VideoLayer",
    "quality": Enum("LOW"),
    "width": Number,
    "height": Number,
    "bitrate": Number,
    "ssrc": Number,
    "spatial_layer": Number,
    "rid": Text,
    "repair_ssrc": Number,
);
message!(
    SIMULCAST_CODEC, "SimulcastCodecInfo",
    "mime_type": Text,
    "mid": Text,
    "cid": Text,
    "layers": Messages(&VIDEO_LAYER),
    "video_layer_mode": Enum("MODE_UNUSED"),
    "sdp_cid": Text,
);
message!(
    TRACK, "TrackInfo",
    "sid": Text,
    "type": Enum("AUDIO"),
    "name": Text,
    "muted": Flag,
    "width": Number,
    "height": Number,
    "simulcast": Flag,
    "disable_dtx": Flag,
    "source": Enum("UNKNOWN"),
    "layers": Messages(&VIDEO_LAYER),
    "mime_type": Text,
    "mid": Text,
    "codecs": Messages(&SIMULCAST_CODEC),
    "stereo": Flag,
    "disable_red": Flag,
    "encryption": Enum("NONE"),
    "stream": Text,
    "version": One(&TIMED_VERSION),
    "audio_features": List,
    "backup_codec_policy": Enum("PREFER_REGRESSION"),
    "packet_trailer_features": List,
);
message!(FRAME_ENCODING, "DataTrackFrameEncoding", "well_known": Choice, "custom": Choice);
message!(SCHEMA_ENCODING, "DataTrackSchemaEncoding", "well_known": Choice, "custom": Choice);
message!(
    DATA_TRACK_SCHEMA, "DataTrackSchemaId",
    "name": Text,
    "encoding": One(&SCHEMA_ENCODING),
);
message!(
    DATA_TRACK, "DataTrackInfo",
    "pub_handle": Number,
    "sid": Text,
    "name": Text,
    "encryption": Enum("NONE"),
    "frame_encoding": One(&FRAME_ENCODING),
    "schema": One(&DATA_TRACK_SCHEMA),
);
message!(
    PARTICIPANT, "ParticipantInfo",
    "sid": Text,
    "identity": Text,
    "state": Enum("JOINING"),
    "tracks": Messages(&TRACK),
    "metadata": Text,
    "joined_at": Long,
    "joined_at_ms": Long,
    "name": Text,
    "version": Number,
    "permission": One(&PERMISSION),
    "region": Text,
    "is_publisher": Flag,
    "kind": Enum("STANDARD"),
    "attributes": Map,
    "disconnect_reason": Enum("UNKNOWN_REASON"),
    "kind_details": List,
    "data_tracks": Messages(&DATA_TRACK),
    "client_protocol": Number,
    "capabilities": List,
);
message!(
    LIST_PARTICIPANTS, "ListParticipantsResponse",
    "participants": Messages(&PARTICIPANT),
);
message!(MUTE_TRACK, "MuteRoomTrackResponse", "track": One(&TRACK));
message!(PERFORM_RPC, "PerformRpcResponse", "payload": Text);
message!(
    JOB_STATE, "JobState",
    "status": Enum("JS_PENDING"),
    "error": Text,
    "started_at": Long,
    "ended_at": Long,
    "updated_at": Long,
    "participant_identity": Text,
    "worker_id": Text,
    "agent_id": Text,
);
message!(
    JOB, "Job",
    "id": Text,
    "dispatch_id": Text,
    "type": Enum("JT_ROOM"),
    "room": One(&ROOM),
    "participant": One(&PARTICIPANT),
    "namespace": Text,
    "metadata": Text,
    "agent_name": Text,
    "state": One(&JOB_STATE),
    "enable_recording": Flag,
    "deployment": Text,
    "attributes": Map,
    "enable_redaction": Flag,
);
message!(
    DISPATCH_STATE, "AgentDispatchState",
    "jobs": Messages(&JOB),
    "created_at": Long,
    "deleted_at": Long,
);
message!(
    DISPATCH, "AgentDispatch",
    "id": Text,
    "agent_name": Text,
    "room": Text,
    "metadata": Text,
    "state": One(&DISPATCH_STATE),
    "restart_policy": Enum("JRP_ON_FAILURE"),
    "deployment": Text,
    "attributes": Map,
);
message!(
    LIST_DISPATCHES, "ListAgentDispatchResponse",
    "agent_dispatches": Messages(&DISPATCH),
);
