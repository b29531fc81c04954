//! Imported configurations are valid configurations of this server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::fs;
use std::path::Path;

use portunus_janus_config::named_keys;

use super::*;

/// Returns the configuration for files of Janus without comments, and the remarks.
fn imported(files: &[(&str, &str)]) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let draft = draft(&Folder::read(folder.path()).unwrap()).unwrap();
    let text = draft.text();
    check(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
    let lines = text
        .lines()
        .filter(|it| !it.is_empty() && !it.starts_with('#'));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let path = format!("{}/", folder.path().display());
    let remarks = draft.remarks().iter();
    let remarks = remarks
        .map(|it| it.to_string().replace(&path, ""))
        .collect();
    (lines, remarks)
}

#[test]
fn every_key_that_an_import_names_is_one_of_ours() {
    let whole = check("").unwrap();
    for (section, key) in named_keys() {
        let lists = [
            "streaming.mountpoint",
            "videoroom.room",
            "audiobridge.room",
            "textroom.room",
        ];
        if lists.contains(&section) {
            is_key_of_entry(section, key);
            continue;
        }
        let mut names = section.split('.');
        let found = names.try_fold(&whole, |table, name| table.get(name)?.as_table());
        assert!(found.unwrap().contains_key(key), "{section}.{key}");
    }
}

/// Invalid values are reported as such, and unknown keys by their names.
fn is_key_of_entry(list: &str, key: &str) {
    let types = ["rtp", "live", "rtsp"];
    let is_known = |kind: &&str| {
        let kind = match key {
            "type" => String::new(),
            _ => format!("type = \"{kind}\"\n"),
        };
        let text = format!("[[{list}]]\nroom = 1\nname = \"n\"\n{kind}{key} = 1979-05-27\n");
        let mistakes = check(&text).unwrap_err();
        let unknown = format!("{list}.{key}: unknown key");
        !mistakes.iter().any(|it| it.text.starts_with(&unknown))
    };
    assert!(types.iter().any(is_known), "{list}.{key}");
}

#[test]
fn what_takes_several_settings_of_janus_is_taken() {
    let (text, remarks) = imported(&[
        (
            "janus.jcfg",
            "general: { debug_level = 3; candidates_timeout = 9 }\nmedia: { rtp_port_range = \"0-0\" }\n\
             plugins: { disable = \"libjanus_nosip.so\" }",
        ),
        (
            "janus.transport.http.jcfg",
            "general: { http = false; https = true; secure_ip = \"127.0.0.1\" }\nadmin: { admin_http = true; admin_ip = \"::1\" }\n\
             certificates: { cert_pem = \"/d/cert.pem\"; cert_key = \"/d/key.pem\" }",
        ),
        (
            "janus.transport.websockets.jcfg",
            "general: { ws = true; ws_ip = \"::1\" }",
        ),
        (
            "janus.transport.pfunix.jcfg",
            "general: { enabled = true; path = \"/a\"; type = \"SOCK_DGRAM\" }\n\
             admin: { admin_enabled = true; admin_path = \"/b\"; admin_type = \"SOCK_DGRAM\" }",
        ),
        (
            "janus.plugin.sip.jcfg",
            "general: { sips_certs_dir = \"/c\" }",
        ),
    ]);
    let expected = "[server]\ncandidates_timeout = 9\n[media]\nport = 0\n\
                    [http]\nhttps = true\nbind = [\"127.0.0.1\"]\nenabled = false\n[websocket]\nbind = [\"::1\"]\n\
                    [unix]\npath = \"/a\"\nkind = \"datagram\"\n[admin]\nbind = [\"::1\"]\nunix_path = \"/b\"\n\
                    [tls]\ncertificate = \"/d/cert.pem\"\nkey = \"/d/key.pem\"\n\
                    [log]\nfilter = \"warn\"\n[plugins.nosip]\nenabled = false\n\
                    [sip]\ntls_certificate = \"/c/agent.pem\"\ntls_key = \"/c/agent.pem\"\ntls_cacert = \"/c/cafile.pem\"\n";
    assert_eq!((text.as_str(), remarks), (expected, vec![]));
}

#[test]
fn defaults_are_left_out_of_sections_rooms_and_mountpoints() {
    let (text, remarks) = imported(&[
        (
            "janus.jcfg",
            "general: { session_timeout = 60; server_name = \"Mine\" }",
        ),
        (
            "janus.transport.http.jcfg",
            "general: { http = true; port = 8088 }\nadmin: { admin_http = true }",
        ),
        ("janus.transport.websockets.jcfg", "general: { ws = true }"),
        (
            "janus.plugin.videoroom.jcfg",
            "room-1: { publishers = 6; record = false }\nroom-2: { publishers = 3; record = true }\n",
        ),
        (
            "janus.plugin.streaming.jcfg",
            "cam: { type = \"live\"; filename = \"/a.opus\"; audio = true; is_private = false }",
        ),
    ]);
    let expected = "[server]\nserver_name = \"Mine\"\n\
                    [[streaming.mountpoint]]\nname = \"cam\"\ntype = \"live\"\nfilename = \"/a.opus\"\n\
                    [[videoroom.room]]\nroom = 1\npublishers = 6\n[[videoroom.room]]\nroom = 2\nrecord = true\n";
    assert_eq!((text.as_str(), remarks), (expected, vec![]));
}

#[test]
fn values_that_this_server_refuses_are_named_with_its_reasons() {
    let (text, remarks) = imported(&[
        (
            "janus.jcfg",
            "certificates: {\n cert_pem = \"/c.pem\"\n}\nmedia: {\n twcc_period = 5\n}",
        ),
        (
            "janus.transport.http.jcfg",
            "general: {\n http = true\n port = 99999\n}\nadmin: { admin_http = true }",
        ),
        ("janus.transport.websockets.jcfg", "general: { ws = true }"),
        (
            "janus.transport.mqtt.jcfg",
            "general: {\n mqtt_version = \"3.1\"\n}",
        ),
        (
            "janus.plugin.audiobridge.jcfg",
            "room-1: {\n secret = \"s\"\n}\nroom-2: { sampling_rate = 44100 }",
        ),
        (
            "janus.plugin.streaming.jcfg",
            "a: { type = \"rtp\"; audio = true; audiopt = 111; audiocodec = \"opus\" }",
        ),
    ]);
    assert_eq!(text, "");
    let expected = [
        "janus.jcfg:2: certificates.cert_pem: media.certificate: needs media.key",
        "janus.jcfg:5: media.twcc_period: media.twcc_period_ms: expected 10 to 1000, got 5",
        "janus.plugin.audiobridge.jcfg:1: room-1: audiobridge.room.sampling_rate: sampling_rate is missing",
        "janus.plugin.audiobridge.jcfg:4: room-2: audiobridge.room.sampling_rate: sampling_rate is missing",
        "janus.plugin.audiobridge.jcfg:4: room-2.sampling_rate: audiobridge.room.sampling_rate: expected 8000, 12000, 16000, 24000 or 48000",
        "janus.plugin.streaming.jcfg:1: a: streaming.mountpoint.audioport: audioport is missing",
        "janus.transport.http.jcfg:3: general.port: http.port: expected a whole number from 0 to 65535, got 99999",
        "janus.transport.mqtt.jcfg:2: general.mqtt_version: mqtt.mqtt_version: expected \"3.1.1\" or \"5\", got \"3.1\"",
    ];
    assert_eq!(remarks, expected);
}

#[test]
fn a_mistake_of_two_keys_takes_no_other_key_along() {
    let (text, remarks) = imported(&[(
        "janus.transport.mqtt.jcfg",
        "general: {\n enabled = true\n url = \"tcp://broker:1883\"\n keyfile = \"/k.pem\"\n}",
    )]);
    assert_eq!(
        text,
        "[mqtt]\nenabled = true\nurl = \"tcp://broker:1883\"\n"
    );
    let expected = "janus.transport.mqtt.jcfg:4: general.keyfile: mqtt.tls_client_cert: tls_client_cert and tls_client_key belong together";
    assert_eq!(remarks, [expected]);
}

/// As in the fuzz target `janus_config`, which starts with these files.
#[test]
fn whatever_line_is_missing_what_is_imported_has_no_mistakes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/janus_config");
    let mut imported = 0;
    for seed in ["transports", "rooms", "mountpoints", "broken"] {
        let text = fs::read_to_string(corpus.join(seed)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for missing in 0..=lines.len() {
            let kept = lines
                .iter()
                .enumerate()
                .filter(|(line, _)| *line != missing);
            let text: String = kept.map(|(_, line)| format!("{line}\n")).collect();
            let files = text.split("@@ ").filter_map(|file| file.split_once('\n'));
            let files: Vec<(&str, &str)> = files.collect();
            match import_texts(&files) {
                Ok(config) => {
                    check(&config).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{config}"));
                    imported += 1;
                }
                Err(Failure::Folder(_)) => {}
                Err(failure) => panic!("{failure}\n{text}"),
            }
        }
    }
    assert!(imported > 20, "only {imported} were imported");
}

/// Returns the samples of an installed Janus, as in Debian's package `janus`.
#[test]
fn samples_of_an_installed_janus_come_over() {
    let folder = std::env::var_os("PORTUNUS_JANUS_SAMPLES").unwrap_or("/etc/janus".into());
    let folder = Path::new(&folder);
    if !folder.join("janus.jcfg").exists() {
        println!("skipped: there is no Janus in {}", folder.display());
        return;
    }
    let draft = draft(&Folder::read(folder).unwrap()).unwrap();
    let text = draft.text();
    let whole = check(&text).unwrap();
    let count = |section: &str, list: &str| {
        whole
            .get(section)
            .and_then(|it| it.get(list)?.as_array())
            .map(Vec::len)
    };
    assert_eq!(count("streaming", "mountpoint"), Some(4), "{text}");
    for plugin in ["videoroom", "audiobridge", "textroom"] {
        assert!(count(plugin, "room") >= Some(1), "{plugin}\n{text}");
    }
    // A file of Debian's package is broken.
    let remarks = draft.remarks().iter();
    for remark in remarks.filter(|it| !it.reason.starts_with("broken")) {
        assert!(!remark.reason.contains("neither Janus"), "{remark}");
        assert!(!remark.reason.contains("expected"), "{remark}");
    }
}
