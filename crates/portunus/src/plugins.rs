//! The plugins of this server. This is the only place that names them.

use portunus_audiobridge::AudioBridge;
use portunus_core::Registration;
use portunus_echotest::EchoTest;
use portunus_nosip::NoSip;
use portunus_recordplay::RecordPlay;
use portunus_sip_plugin::Sip;
use portunus_streaming::Streaming;
use portunus_textroom::TextRoom;
use portunus_videocall::VideoCall;
use portunus_videoroom::VideoRoom;
use portunus_voicemail::VoiceMail;

/// All plugins, in the order of `info`.
pub(crate) const PLUGINS: &[Registration] = &[
    Registration::of::<EchoTest>(),
    Registration::of::<VideoCall>(),
    Registration::of::<Streaming>(),
    Registration::of::<VideoRoom>(),
    Registration::of::<AudioBridge>(),
    Registration::of::<TextRoom>(),
    Registration::of::<VoiceMail>(),
    Registration::of::<RecordPlay>(),
    Registration::of::<NoSip>(),
    Registration::of::<Sip>(),
];
