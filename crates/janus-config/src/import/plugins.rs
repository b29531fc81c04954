//! Plugins: the group `general` of their files. Rooms and mountpoints are in `blocks.rs`.

use super::blocks::{self, Block};
use super::convert::Kind::{Flag, Number, Text};
use super::remark::Weight;
use super::rules::{Rule, UNKNOWN, elsewhere, take};
use super::translator::Translator;
use crate::Group;

/// A plugin with a file.
struct Plugin {
    subject: &'static str,
    rules: &'static [Rule],
    /// The kind of the other groups of the file.
    block: Option<&'static Block>,
}

const PLUGINS: &[Plugin] = &[
    Plugin {
        subject: "janus.plugin.echotest",
        rules: &[take("general.events", "plugins.echotest.events", Flag)],
        block: None,
    },
    Plugin {
        subject: "janus.plugin.videocall",
        rules: &[take("general.events", "plugins.videocall.events", Flag)],
        block: None,
    },
    Plugin {
        subject: "janus.plugin.streaming",
        rules: &[
            take("general.events", "plugins.streaming.events", Flag),
            take("general.admin_key", "streaming.admin_key", Text),
            take("general.rtp_port_range", "streaming.rtp_port_range", Text),
            take("general.string_ids", "streaming.string_ids", Flag),
        ],
        block: Some(&blocks::MOUNTPOINTS),
    },
    Plugin {
        subject: "janus.plugin.videoroom",
        rules: &[
            take("general.events", "plugins.videoroom.events", Flag),
            take("general.admin_key", "videoroom.admin_key", Text),
            take(
                "general.lock_rtp_forward",
                "videoroom.lock_rtp_forward",
                Flag,
            ),
            take("general.string_ids", "videoroom.string_ids", Flag),
        ],
        block: Some(&blocks::VIDEO_ROOMS),
    },
    Plugin {
        subject: "janus.plugin.audiobridge",
        rules: &[
            take("general.events", "plugins.audiobridge.events", Flag),
            take("general.admin_key", "audiobridge.admin_key", Text),
            take(
                "general.lock_rtp_forward",
                "audiobridge.lock_rtp_forward",
                Flag,
            ),
            take("general.lock_play_file", "audiobridge.lock_play_file", Flag),
            take("general.record_tmp_ext", "recording.temporary", Text),
            take("general.string_ids", "audiobridge.string_ids", Flag),
            take("general.rtp_port_range", "audiobridge.rtp_port_range", Text),
            take("general.local_ip", "audiobridge.local_ip", Text),
        ],
        block: Some(&blocks::AUDIO_ROOMS),
    },
    Plugin {
        subject: "janus.plugin.textroom",
        rules: &[
            take("general.events", "plugins.textroom.events", Flag),
            take("general.admin_key", "textroom.admin_key", Text),
            take("general.json", "textroom.json", Text),
            take("general.string_ids", "textroom.string_ids", Flag),
        ],
        block: Some(&blocks::TEXT_ROOMS),
    },
    Plugin {
        subject: "janus.plugin.voicemail",
        rules: &[
            take("general.events", "plugins.voicemail.events", Flag),
            take("general.path", "voicemail.path", Text),
            take("general.base", "voicemail.base", Text),
        ],
        block: None,
    },
    Plugin {
        subject: "janus.plugin.recordplay",
        rules: &[
            take("general.events", "plugins.recordplay.events", Flag),
            take("general.path", "recordplay.path", Text),
            take("general.admin_key", "recordplay.admin_key", Text),
            take("general.private", "recordplay.private", Flag),
        ],
        block: None,
    },
    Plugin {
        subject: "janus.plugin.nosip",
        rules: &[
            take("general.events", "plugins.nosip.events", Flag),
            take("general.local_ip", "nosip.local_ip", Text),
            take("general.sdp_ip", "nosip.sdp_ip", Text),
            take("general.rtp_port_range", "nosip.rtp_port_range", Text),
            take("general.dscp_audio_rtp", "nosip.dscp_audio_rtp", Number),
            take("general.dscp_video_rtp", "nosip.dscp_video_rtp", Number),
        ],
        block: None,
    },
    Plugin {
        subject: SIP,
        rules: &[
            take("general.events", "plugins.sip.events", Flag),
            take("general.local_ip", "sip.local_ip", Text),
            take("general.local_media_ip", "sip.local_media_ip", Text),
            take("general.sdp_ip", "sip.sdp_ip", Text),
            take(
                "general.keepalive_interval",
                "sip.keepalive_interval",
                Number,
            ),
            take("general.behind_nat", "sip.behind_nat", Flag),
            take("general.user_agent", "sip.user_agent", Text),
            take("general.register_ttl", "sip.register_ttl", Number),
            take("general.rtp_port_range", "sip.rtp_port_range", Text),
            take("general.dscp_audio_rtp", "sip.dscp_audio_rtp", Number),
            take("general.dscp_video_rtp", "sip.dscp_video_rtp", Number),
            elsewhere("general.sips_certs_dir"),
            take("general.sip_timer_t1x64", "sip.timer_t1x64_ms", Number),
        ],
        block: None,
    },
];

const SIP: &str = "janus.plugin.sip";

/// Plugins that run scripts, which have no counterpart.
const SCRIPTED: [(&str, &str); 2] = [
    ("janus.plugin.lua", "lua"),
    ("janus.plugin.duktape", "duktape"),
];

/// Returns all rules.
pub(super) fn tables() -> impl Iterator<Item = &'static [Rule]> {
    PLUGINS.iter().map(|plugin| plugin.rules)
}

/// Returns the keys of all rooms and mountpoints, each with its list.
pub(super) fn keys_of_blocks() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLUGINS
        .iter()
        .filter_map(|it| it.block)
        .flat_map(Block::named_keys)
}

pub(super) fn translate(translator: &mut Translator<'_>) {
    for plugin in PLUGINS {
        let Some(file) = translator.file(plugin.subject) else {
            continue;
        };
        for group in file.root.settings() {
            match (group.group(), plugin.block) {
                (Some(settings), _) if group.name == "general" => {
                    for setting in settings.settings() {
                        translator.setting("general", setting, plugin.rules);
                    }
                }
                (Some(settings), Some(block)) => block.translate(translator, file, group, settings),
                _ => translator.missing(group, "", UNKNOWN),
            }
        }
        if plugin.subject == SIP {
            sip_certificates(translator, &file.group("general"));
        }
    }
    translator.allow_recordings();
    for (subject, module) in SCRIPTED {
        if let Some(file) = translator.file(subject) {
            let weight = match translator.is_disabled("plugins", module) {
                true => Weight::NotNeeded,
                false => Weight::Attention,
            };
            let reason =
                "there are no scripts as plugins: a plugin is written in Rust (docs/plugins.md)";
            translator.about(&file.start(), weight, reason);
        }
    }
}

/// Sofia, the SIP library of Janus, looks for two files in `sips_certs_dir`.
fn sip_certificates(translator: &mut Translator<'_>, general: &Group) {
    if let Some(setting) = general.get("sips_certs_dir")
        && let Some(folder) = setting.value.text().filter(|folder| !folder.is_empty())
    {
        for (key, file) in [
            ("sip.tls_certificate", "agent.pem"),
            ("sip.tls_key", "agent.pem"),
            ("sip.tls_cacert", "cafile.pem"),
        ] {
            let path = format!("{}/{file}", folder.trim_end_matches('/'));
            translator.put("general", setting, key, path.into());
        }
    }
}
