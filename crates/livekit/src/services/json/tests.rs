#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use livekit_protocol as lk;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::json;

use super::schema::*;
use super::*;

/// Takes the name and the fields that a type asks for, and gives no value.
struct Names<'a>(&'a mut Option<(&'static str, &'static [&'static str])>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = Some((name, fields));
        Err(Self::Error::custom("only the names were wanted"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Checks that the fields of a message are those that the protocol declares.
fn check<T: for<'de> Deserialize<'de>>(schema: &Message) {
    let mut names = None;
    let _ = T::deserialize(Names(&mut names));
    let (name, declared) = names.unwrap();
    assert_eq!(name, schema.name);
    let mut expected = Vec::new();
    for (field, _) in schema.fields {
        expected.push((*field).to_owned());
        let camel = lower_camel_case(field);
        if camel != *field {
            expected.push(camel);
        }
    }
    assert_eq!(expected, declared, "{name}");
}

#[test]
fn the_fields_are_those_that_the_protocol_declares() {
    check::<lk::Codec>(&CODEC);
    check::<lk::TimedVersion>(&TIMED_VERSION);
    check::<lk::Room>(&ROOM);
    check::<lk::ListRoomsResponse>(&LIST_ROOMS);
    check::<lk::ParticipantPermission>(&PERMISSION);
    check::<lk::VideoLayer>(&VIDEO_LAYER);
    check::<lk::SimulcastCodecInfo>(&SIMULCAST_CODEC);
    check::<lk::TrackInfo>(&TRACK);
    check::<lk::DataTrackFrameEncoding>(&FRAME_ENCODING);
    check::<lk::DataTrackSchemaEncoding>(&SCHEMA_ENCODING);
    check::<lk::DataTrackSchemaId>(&DATA_TRACK_SCHEMA);
    check::<lk::DataTrackInfo>(&DATA_TRACK);
    check::<lk::ParticipantInfo>(&PARTICIPANT);
    check::<lk::ListParticipantsResponse>(&LIST_PARTICIPANTS);
    check::<lk::MuteRoomTrackResponse>(&MUTE_TRACK);
    check::<lk::PerformRpcResponse>(&PERFORM_RPC);
    check::<lk::JobState>(&JOB_STATE);
    check::<lk::Job>(&JOB);
    check::<lk::AgentDispatchState>(&DISPATCH_STATE);
    check::<lk::AgentDispatch>(&DISPATCH);
    check::<lk::ListAgentDispatchResponse>(&LIST_DISPATCHES);
    check::<lk::TokenPagination>(&PAGE);
    check::<lk::StreamInfo>(&STREAM);
    check::<lk::FileInfo>(&FILE);
    check::<lk::EgressInfo>(&EGRESS);
    check::<lk::ListEgressResponse>(&LIST_EGRESS);
    check::<lk::IngressAudioEncodingOptions>(&AUDIO_ENCODING);
    check::<lk::IngressVideoEncodingOptions>(&VIDEO_ENCODING);
    check::<lk::IngressAudioOptions>(&INGRESS_AUDIO);
    check::<lk::IngressVideoOptions>(&INGRESS_VIDEO);
    check::<lk::InputVideoState>(&VIDEO_STATE);
    check::<lk::InputAudioState>(&AUDIO_STATE);
    check::<lk::IngressState>(&INGRESS_STATE);
    check::<lk::IngressInfo>(&INGRESS);
    check::<lk::ListIngressResponse>(&LIST_INGRESS);
    check::<lk::SipCodec>(&SIP_CODEC);
    check::<lk::SipMediaConfig>(&SIP_MEDIA);
    check::<lk::SipInboundTrunkInfo>(&INBOUND);
    check::<lk::GetSipInboundTrunkResponse>(&GET_INBOUND);
    check::<lk::ListSipInboundTrunkResponse>(&LIST_INBOUND);
    check::<lk::SipOutboundTrunkInfo>(&OUTBOUND);
    check::<lk::GetSipOutboundTrunkResponse>(&GET_OUTBOUND);
    check::<lk::ListSipOutboundTrunkResponse>(&LIST_OUTBOUND);
    check::<lk::SipTrunkInfo>(&SIP_TRUNK);
    check::<lk::SipDispatchRuleDirect>(&DIRECT_RULE);
    check::<lk::SipDispatchRuleIndividual>(&INDIVIDUAL_RULE);
    check::<lk::SipDispatchRuleCallee>(&CALLEE_RULE);
    check::<lk::SipDispatchRule>(&INNER_RULE);
    check::<lk::SipDispatchRuleInfo>(&SIP_RULE);
    check::<lk::ListSipDispatchRuleResponse>(&LIST_SIP_RULES);
    check::<lk::SipParticipantInfo>(&SIP_PARTICIPANT);
    check::<lk::SipStatus>(&SIP_STATUS);
    check::<lk::TransferSipParticipantResponse>(&SIP_TRANSFER);
}

/// Checks that the written default values are read as the default message.
fn check_defaults<T>(schema: &Message)
where
    T: Serialize + DeserializeOwned + Default + PartialEq + std::fmt::Debug,
{
    let json = write(&T::default(), schema).unwrap();
    let written: Value = serde_json::from_str(&json).unwrap();
    let choices =
        |(_, kind): &&(_, Kind)| !matches!(kind, Kind::Choice | Kind::Chosen(_) | Kind::Given);
    let count = schema.fields.iter().filter(choices).count();
    assert_eq!(written.as_object().unwrap().len(), count);
    // The first value of an enum is a name that the protocol knows, and no other is the default.
    let read: T = read(json.as_bytes()).unwrap();
    assert_eq!(read, T::default());
}

#[test]
fn default_values_are_written_out_and_are_the_protocols() {
    check_defaults::<lk::Room>(&ROOM);
    check_defaults::<lk::VideoLayer>(&VIDEO_LAYER);
    check_defaults::<lk::SimulcastCodecInfo>(&SIMULCAST_CODEC);
    check_defaults::<lk::TrackInfo>(&TRACK);
    check_defaults::<lk::DataTrackInfo>(&DATA_TRACK);
    check_defaults::<lk::ParticipantInfo>(&PARTICIPANT);
    check_defaults::<lk::MuteRoomTrackResponse>(&MUTE_TRACK);
    check_defaults::<lk::Job>(&JOB);
    check_defaults::<lk::JobState>(&JOB_STATE);
    check_defaults::<lk::AgentDispatch>(&DISPATCH);
    check_defaults::<lk::EgressInfo>(&EGRESS);
    check_defaults::<lk::IngressInfo>(&INGRESS);
    check_defaults::<lk::SipInboundTrunkInfo>(&INBOUND);
    check_defaults::<lk::SipOutboundTrunkInfo>(&OUTBOUND);
    check_defaults::<lk::SipTrunkInfo>(&SIP_TRUNK);
    check_defaults::<lk::SipDispatchRuleInfo>(&SIP_RULE);
    check_defaults::<lk::TransferSipParticipantResponse>(&SIP_TRANSFER);
    check_defaults::<lk::IngressAudioOptions>(&INGRESS_AUDIO);
    check_defaults::<lk::IngressVideoEncodingOptions>(&VIDEO_ENCODING);
}

#[test]
fn values_keep_their_form_and_nested_messages_are_complete() {
    let room = lk::Room {
        name: "den".to_owned(),
        creation_time: 1 << 60,
        enabled_codecs: vec![lk::Codec::default()],
        version: Some(lk::TimedVersion::default()),
        ..Default::default()
    };
    let response = lk::ListRoomsResponse { rooms: vec![room] };
    let written: Value = serde_json::from_str(&write(&response, &LIST_ROOMS).unwrap()).unwrap();
    let expected = json!({"rooms": [{
        "sid": "", "name": "den", "empty_timeout": 0, "departure_timeout": 0,
        "max_participants": 0, "creation_time": "1152921504606846976", "creation_time_ms": "0",
        "turn_password": "", "enabled_codecs": [{"mime": "", "fmtp_line": ""}], "metadata": "",
        "num_participants": 0, "num_publishers": 0, "active_recording": false,
        "version": {"unix_micro": "0", "ticks": 0},
    }]});
    assert_eq!(written, expected);
}

#[test]
fn both_spellings_nulls_and_unknown_members_are_read() {
    let expected = lk::CreateRoomRequest {
        name: "den".to_owned(),
        empty_timeout: 7,
        ..Default::default()
    };
    for body in [
        r#"{"name":"den","empty_timeout":7}"#,
        r#"{"name":"den","emptyTimeout":"7","metadata":null,"egress":null,"new":{"a":[]}} trailing"#,
    ] {
        assert_eq!(read(body.as_bytes()), Some(expected.clone()), "{body}");
    }
    for body in [
        "",
        "{",
        "[]",
        "1",
        "null",
        r#"{"name":1}"#,
        r#"{"empty_timeout":-1}"#,
    ] {
        assert_eq!(
            read::<lk::CreateRoomRequest>(body.as_bytes()),
            None,
            "{body}"
        );
    }
}
