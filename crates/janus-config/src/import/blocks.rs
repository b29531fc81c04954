//! Rooms and mountpoints: groups that a file may have any number of.

use toml::Value as Toml;

use super::convert::Kind::{self, Flag, Groups, Number, Text, Texts};
use super::convert::convert;
use super::draft::{Key, Section};
use super::folder::ConfigFile;
use super::remark::Weight;
use super::rules::UNKNOWN;
use super::translator::Translator;
use crate::{Group, Setting};

/// A kind of room or mountpoint.
pub(super) struct Block {
    /// The list of sections in our configuration.
    list: &'static str,
    /// The key for the name of the group.
    naming: Naming,
    /// Keys with the same name in our configuration.
    keys: &'static [(&'static str, Kind)],
    /// Keys without a counterpart.
    missing: &'static [MissingKey],
}

/// A key without a counterpart.
struct MissingKey {
    name: &'static str,
    weight: Weight,
    reason: &'static str,
}

/// The key for the name of the group.
enum Naming {
    /// The id: `room-1234` or `1234`.
    Room,
    /// The name.
    Mountpoint,
}

const LEGACY: &str = "bufferkf_ms and bufferkf_bytes bound what is kept from a keyframe on";

pub(super) const VIDEO_ROOMS: Block = Block {
    list: "videoroom.room",
    naming: Naming::Room,
    keys: &[
        ("description", Text),
        ("is_private", Flag),
        ("secret", Text),
        ("pin", Text),
        ("require_pvtid", Flag),
        ("signed_tokens", Flag),
        ("publishers", Number),
        ("bitrate", Number),
        ("bitrate_cap", Flag),
        ("fir_freq", Number),
        ("audiocodec", Text),
        ("videocodec", Text),
        ("vp9_profile", Text),
        ("h264_profile", Text),
        ("opus_fec", Flag),
        ("opus_dtx", Flag),
        ("audiolevel_ext", Flag),
        ("audiolevel_event", Flag),
        ("audio_active_packets", Number),
        ("audio_level_average", Number),
        ("videoorient_ext", Flag),
        ("playoutdelay_ext", Flag),
        ("transport_wide_cc_ext", Flag),
        ("record", Flag),
        ("rec_dir", Text),
        ("lock_record", Flag),
        ("notify_joining", Flag),
        ("require_e2ee", Flag),
        ("dummy_publisher", Flag),
        ("dummy_streams", Groups(dummy_stream)),
        ("dummy_e2ee", Flag),
        ("threads", Number),
    ],
    missing: &[MissingKey {
        name: "video_svc",
        weight: Weight::NotNeeded,
        reason: "layers of VP9 and AV1 are always chosen from where a publisher sends them",
    }],
};

fn dummy_stream(key: &str) -> Option<Kind> {
    matches!(key, "codec" | "fmtp").then_some(Text)
}

pub(super) const AUDIO_ROOMS: Block = Block {
    list: "audiobridge.room",
    naming: Naming::Room,
    keys: &[
        ("description", Text),
        ("is_private", Flag),
        ("secret", Text),
        ("pin", Text),
        ("signed_tokens", Flag),
        ("sampling_rate", Number),
        ("spatial_audio", Flag),
        ("audiolevel_ext", Flag),
        ("audiolevel_event", Flag),
        ("audio_active_packets", Number),
        ("audio_level_average", Number),
        ("default_expectedloss", Number),
        ("default_bitrate", Number),
        ("denoise", Flag),
        ("record", Flag),
        ("record_file", Text),
        ("record_dir", Text),
        ("mjrs", Flag),
        ("mjrs_dir", Text),
        ("allow_rtp_participants", Flag),
        ("groups", Texts),
        ("rtp_forward_id", Number),
        ("rtp_forward_host", Text),
        ("rtp_forward_host_family", Text),
        ("rtp_forward_port", Number),
        ("rtp_forward_ssrc", Number),
        ("rtp_forward_codec", Text),
        ("rtp_forward_ptype", Number),
        ("rtp_forward_group", Text),
        ("rtp_forward_srtp_suite", Number),
        ("rtp_forward_srtp_crypto", Text),
        ("rtp_forward_always_on", Flag),
    ],
    missing: &[],
};

pub(super) const TEXT_ROOMS: Block = Block {
    list: "textroom.room",
    naming: Naming::Room,
    keys: &[
        ("description", Text),
        ("is_private", Flag),
        ("secret", Text),
        ("pin", Text),
        ("history", Number),
        ("post", Text),
    ],
    missing: &[],
};

pub(super) const MOUNTPOINTS: Block = Block {
    list: "streaming.mountpoint",
    naming: Naming::Mountpoint,
    keys: &[
        ("type", Text),
        ("id", Number),
        ("description", Text),
        ("metadata", Text),
        ("is_private", Flag),
        ("secret", Text),
        ("pin", Text),
        ("filename", Text),
        ("audio", Flag),
        ("video", Flag),
        ("data", Flag),
        ("audioport", Number),
        ("audiortcpport", Number),
        ("audiomcast", Text),
        ("audioiface", Text),
        ("audiopt", Number),
        ("audiocodec", Text),
        ("audiortpmap", Text),
        ("audiofmtp", Text),
        ("audioskew", Flag),
        ("videoport", Number),
        ("videortcpport", Number),
        ("videomcast", Text),
        ("videoiface", Text),
        ("videopt", Number),
        ("videocodec", Text),
        ("videortpmap", Text),
        ("videofmtp", Text),
        ("videosimulcast", Flag),
        ("videoport2", Number),
        ("videoport3", Number),
        ("videoskew", Flag),
        ("videosvc", Flag),
        ("h264sps", Text),
        ("dataport", Number),
        ("datamcast", Text),
        ("dataiface", Text),
        ("datatype", Text),
        ("databuffermsg", Flag),
        ("media", Groups(medium)),
        ("collision", Number),
        ("threads", Number),
        ("bufferkf_ms", Number),
        ("bufferkf_bytes", Number),
        ("srtpsuite", Number),
        ("srtpcrypto", Text),
        ("e2ee", Flag),
        ("playoutdelay_ext", Flag),
        ("abscapturetime_src_ext_id", Number),
        ("url", Text),
        ("rtsp_user", Text),
        ("rtsp_pwd", Text),
        ("rtsp_quirk", Flag),
        ("rtsp_failcheck", Flag),
        ("rtspiface", Text),
        ("rtsp_reconnect_delay", Number),
        ("rtsp_session_timeout", Number),
        ("rtsp_timeout", Number),
        ("rtsp_conn_timeout", Number),
        ("rtsp_notify_changes", Flag),
    ],
    missing: &[MissingKey {
        name: "videobufferkf",
        weight: Weight::Attention,
        reason: LEGACY,
    }],
};

/// Returns the kind of a key in an entry of `media`.
fn medium(key: &str) -> Option<Kind> {
    Some(match key {
        "type" | "mid" | "label" | "msid" | "mcast" | "iface" | "codec" | "rtpmap" | "fmtp"
        | "h264sps" | "datatype" => Text,
        "port" | "port2" | "port3" | "rtcpport" | "pt" => Number,
        "skew" | "simulcast" | "svc" | "bufferkf" | "buffermsg" => Flag,
        _ => return None,
    })
}

impl Block {
    /// Returns its keys, each with the list of sections.
    pub(super) fn named_keys(&'static self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.keys.iter().map(|(key, _)| (self.list, *key))
    }

    /// Makes a section of the list from a group.
    pub(super) fn translate(
        &self,
        translator: &mut Translator<'_>,
        file: &ConfigFile,
        group: &Setting,
        settings: &Group,
    ) {
        let has_text_ids = file.group("general").is_on("string_ids");
        let (name, value) = match self.named(&group.name, has_text_ids) {
            Ok(named) => named,
            Err(reason) => return translator.missing(group, "", reason),
        };
        let key = |name: &str, value, setting: &Setting| Key {
            name: name.to_owned(),
            value,
            comments: setting.comments.clone(),
            at: setting.at.clone(),
            from: format!("{}.{}", group.name, setting.name),
        };
        let mut keys = vec![Key {
            comments: Vec::new(),
            from: group.name.clone(),
            ..key(name, value, group)
        }];
        for setting in settings.settings() {
            let mut missing = self.missing.iter();
            if let Some(key) = missing.find(|key| key.name == setting.name) {
                translator.left(setting, &group.name, key.weight, key.reason);
                continue;
            }
            match self.value(setting, has_text_ids) {
                Ok(value) => keys.push(key(&setting.name, value, setting)),
                Err(reason) => translator.missing(setting, &group.name, &reason),
            }
        }
        translator.push(Section {
            name: self.list.to_owned(),
            is_listed: true,
            comments: group.comments.clone(),
            keys,
            at: group.at.clone(),
            from: group.name.clone(),
        });
    }

    /// Returns the key with the name of the group.
    fn named(&self, group: &str, has_text_ids: bool) -> Result<(&'static str, Toml), &'static str> {
        match self.naming {
            Naming::Mountpoint => Ok(("name", group.into())),
            Naming::Room => {
                let id = group.strip_prefix("room-").unwrap_or(group);
                let number = id.parse::<i64>().ok().filter(|id| *id > 0);
                match (has_text_ids, number) {
                    (true, _) => Ok(("room", id.into())),
                    (false, Some(number)) => Ok(("room", number.into())),
                    (false, None) => {
                        Err("expected room-NUMBER: ids are numbers without string_ids")
                    }
                }
            }
        }
    }

    fn value(&self, setting: &Setting, has_text_ids: bool) -> Result<Toml, String> {
        let name = setting.name.as_str();
        let known = self.keys.iter().find(|(key, _)| *key == name);
        let kind = match known {
            Some((_, Number)) if name == "id" && has_text_ids => Text,
            Some((_, kind)) => *kind,
            None => return Err(UNKNOWN.to_owned()),
        };
        convert(kind, &setting.value)
    }
}
