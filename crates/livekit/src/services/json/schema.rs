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
    /// A message of a `oneof`, left out if it is not there.
    Chosen(&'static Message),
    /// A message of a `oneof` with all that is in it as it was given, but for the names of members.
    Given,
}

use Kind::{Choice, Chosen, Enum, Flag, Given, List, Long, Map, Messages, Number, One, Text};

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
message!(PAGE, "TokenPagination", "token": Text);
message!(
    STREAM, "StreamInfo",
    "url": Text,
    "started_at": Long,
    "ended_at": Long,
    "duration": Long,
    "status": Enum("ACTIVE"),
    "error": Text,
    "last_retry_at": Long,
    "retries": Number,
);
message!(
    FILE, "FileInfo",
    "filename": Text,
    "started_at": Long,
    "ended_at": Long,
    "duration": Long,
    "size": Long,
    "location": Text,
);
message!(
    EGRESS, "EgressInfo",
    "egress_id": Text,
    "room_id": Text,
    "room_name": Text,
    "source_type": Enum("EGRESS_SOURCE_TYPE_WEB"),
    "status": Enum("EGRESS_STARTING"),
    "started_at": Long,
    "ended_at": Long,
    "updated_at": Long,
    "stream_results": Messages(&STREAM),
    "file_results": Messages(&FILE),
    "segment_results": List,
    "image_results": List,
    "error": Text,
    "error_code": Number,
    "details": Text,
    "manifest_location": Text,
    "backup_storage_used": Flag,
    "retry_count": Number,
    "egress": Given,
    "replay": Given,
    "room_composite": Given,
    "web": Given,
    "participant": Given,
    "track_composite": Given,
    "track": Given,
    "stream": Given,
    "file": Chosen(&FILE),
    "segments": Given,
);
message!(
    LIST_EGRESS, "ListEgressResponse",
    "items": Messages(&EGRESS),
    "next_page_token": One(&PAGE),
);
message!(
    AUDIO_ENCODING, "IngressAudioEncodingOptions",
    "audio_codec": Enum("DEFAULT_AC"),
    "bitrate": Number,
    "disable_dtx": Flag,
    "channels": Number,
);
message!(
    VIDEO_ENCODING, "IngressVideoEncodingOptions",
    "video_codec": Enum("DEFAULT_VC"),
    "frame_rate": Number,
    "layers": Messages(&VIDEO_LAYER),
);
message!(
    INGRESS_AUDIO, "IngressAudioOptions",
    "name": Text,
    "source": Enum("UNKNOWN"),
    "preset": Choice,
    "options": Chosen(&AUDIO_ENCODING),
);
message!(
    INGRESS_VIDEO, "IngressVideoOptions",
    "name": Text,
    "source": Enum("UNKNOWN"),
    "preset": Choice,
    "options": Chosen(&VIDEO_ENCODING),
);
message!(
    VIDEO_STATE, "InputVideoState",
    "mime_type": Text,
    "average_bitrate": Number,
    "width": Number,
    "height": Number,
    "framerate": Number,
);
message!(
    AUDIO_STATE, "InputAudioState",
    "mime_type": Text,
    "average_bitrate": Number,
    "channels": Number,
    "sample_rate": Number,
);
message!(
    INGRESS_STATE, "IngressState",
    "status": Enum("ENDPOINT_INACTIVE"),
    "error": Text,
    "video": One(&VIDEO_STATE),
    "audio": One(&AUDIO_STATE),
    "room_id": Text,
    "started_at": Long,
    "ended_at": Long,
    "updated_at": Long,
    "resource_id": Text,
    "tracks": Messages(&TRACK),
);
message!(
    INGRESS, "IngressInfo",
    "ingress_id": Text,
    "name": Text,
    "stream_key": Text,
    "url": Text,
    "input_type": Enum("RTMP_INPUT"),
    "bypass_transcoding": Flag,
    "enable_transcoding": Choice,
    "audio": One(&INGRESS_AUDIO),
    "video": One(&INGRESS_VIDEO),
    "room_name": Text,
    "participant_identity": Text,
    "participant_name": Text,
    "participant_metadata": Text,
    "reusable": Flag,
    "state": One(&INGRESS_STATE),
    "enabled": Choice,
);
message!(
    LIST_INGRESS, "ListIngressResponse",
    "next_page_token": One(&PAGE),
    "items": Messages(&INGRESS),
);
message!(SIP_CODEC, "SIPCodec", "name": Text, "rate": Number);
message!(
    SIP_MEDIA, "SIPMediaConfig",
    "only_listed_codecs": Flag,
    "codecs": Messages(&SIP_CODEC),
    "encryption": Choice,
    // A text: a duration, as times below are.
    "media_timeout": One(&EMPTY),
);
message!(
    INBOUND, "SIPInboundTrunkInfo",
    "sip_trunk_id": Text,
    "name": Text,
    "metadata": Text,
    "numbers": List,
    "allowed_addresses": List,
    "allowed_numbers": List,
    "auth_username": Text,
    "auth_password": Text,
    "auth_realm": Text,
    "headers": Map,
    "headers_to_attributes": Map,
    "attributes_to_headers": Map,
    "include_headers": Enum("SIP_NO_HEADERS"),
    "ringing_timeout": One(&EMPTY),
    "ringing_timeout_status": Enum("SIP_STATUS_UNKNOWN"),
    "max_call_duration": One(&EMPTY),
    "krisp_enabled": Flag,
    "media_encryption": Enum("SIP_MEDIA_ENCRYPT_DISABLE"),
    "media": One(&SIP_MEDIA),
    "created_at": One(&EMPTY),
    "updated_at": One(&EMPTY),
);
message!(GET_INBOUND, "GetSIPInboundTrunkResponse", "trunk": One(&INBOUND));
message!(LIST_INBOUND, "ListSIPInboundTrunkResponse", "items": Messages(&INBOUND));
message!(
    OUTBOUND, "SIPOutboundTrunkInfo",
    "sip_trunk_id": Text,
    "name": Text,
    "metadata": Text,
    "address": Text,
    "destination_country": Text,
    "transport": Enum("SIP_TRANSPORT_AUTO"),
    "numbers": List,
    "auth_username": Text,
    "auth_password": Text,
    "headers": Map,
    "headers_to_attributes": Map,
    "attributes_to_headers": Map,
    "include_headers": Enum("SIP_NO_HEADERS"),
    "media_encryption": Enum("SIP_MEDIA_ENCRYPT_DISABLE"),
    "media": One(&SIP_MEDIA),
    "from_host": Text,
    "created_at": One(&EMPTY),
    "updated_at": One(&EMPTY),
);
message!(GET_OUTBOUND, "GetSIPOutboundTrunkResponse", "trunk": One(&OUTBOUND));
message!(LIST_OUTBOUND, "ListSIPOutboundTrunkResponse", "items": Messages(&OUTBOUND));
message!(
    SIP_TRUNK, "SIPTrunkInfo",
    "sip_trunk_id": Text,
    "kind": Enum("TRUNK_LEGACY"),
    "inbound_addresses": List,
    "outbound_address": Text,
    "outbound_number": Text,
    "transport": Enum("SIP_TRANSPORT_AUTO"),
    "inbound_numbers_regex": List,
    "inbound_numbers": List,
    "inbound_username": Text,
    "inbound_password": Text,
    "outbound_username": Text,
    "outbound_password": Text,
    "name": Text,
    "metadata": Text,
);
message!(DIRECT_RULE, "SIPDispatchRuleDirect", "room_name": Text, "pin": Text);
message!(
    INDIVIDUAL_RULE, "SIPDispatchRuleIndividual",
    "room_prefix": Text,
    "pin": Text,
    "no_randomness": Flag,
);
message!(
    CALLEE_RULE, "SIPDispatchRuleCallee",
    "room_prefix": Text,
    "pin": Text,
    "randomize": Flag,
);
message!(
    INNER_RULE, "SIPDispatchRule",
    "dispatch_rule_direct": Chosen(&DIRECT_RULE),
    "dispatch_rule_individual": Chosen(&INDIVIDUAL_RULE),
    "dispatch_rule_callee": Chosen(&CALLEE_RULE),
);
message!(
    SIP_RULE, "SIPDispatchRuleInfo",
    "sip_dispatch_rule_id": Text,
    "rule": One(&INNER_RULE),
    "trunk_ids": List,
    "hide_phone_number": Flag,
    "inbound_numbers": List,
    "numbers": List,
    "name": Text,
    "metadata": Text,
    "attributes": Map,
    "room_preset": Text,
    "room_config": Given,
    "media": One(&SIP_MEDIA),
    "krisp_enabled": Flag,
    "media_encryption": Enum("SIP_MEDIA_ENCRYPT_DISABLE"),
    "created_at": One(&EMPTY),
    "updated_at": One(&EMPTY),
);
message!(LIST_SIP_RULES, "ListSIPDispatchRuleResponse", "items": Messages(&SIP_RULE));
message!(
    SIP_PARTICIPANT, "SIPParticipantInfo",
    "participant_id": Text,
    "participant_identity": Text,
    "room_name": Text,
    "sip_call_id": Text,
);
message!(SIP_STATUS, "SIPStatus", "code": Enum("SIP_STATUS_UNKNOWN"), "status": Text);
message!(
    SIP_TRANSFER, "TransferSIPParticipantResponse",
    "transfer_id": Text,
    "status": Enum("STS_TRANSFER_ONGOING"),
    "reason": Enum("STR_UNSPECIFIED"),
    "sip_status": One(&SIP_STATUS),
);
