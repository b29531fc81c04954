//! `--check-config`, as a person uses it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::path::Path;
use std::process::{Command, Output};

fn portunus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus"));
    command.env_remove("PORTUNUS_LOG");
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The output of `--check-config` for a file: the status, and the lines of both outputs.
fn checked(folder: &Path, text: &str) -> (Option<i32>, Vec<String>) {
    let path = folder.join("checked.toml");
    std::fs::write(&path, text.replace("HERE", folder.to_str().unwrap())).unwrap();
    let output = portunus()
        .args(["--check-config", "--config"])
        .arg(&path)
        .output()
        .unwrap();
    let name = format!("{}:", path.display());
    let folder = format!("{}/", folder.display());
    let lines = format!("{}{}", stderr(&output), stdout(&output));
    let lines = lines
        .lines()
        .map(|it| it.replace(&name, "").replace(&folder, "HERE/"));
    (output.status.code(), lines.collect())
}

#[test]
fn what_the_machine_lacks_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("text"), "no certificate").unwrap();
    for (text, expected) in [
        (
            "[http]\nhttps = true\n[tls]\ncertificate = \"HERE/cert.pem\"\nkey = \"HERE/key.pem\"",
            "4: tls.certificate: cannot use the certificate HERE/cert.pem with the key HERE/key.pem: the certificate: ",
        ),
        (
            "[tls]\ncertificate = \"HERE/text\"\nkey = \"HERE/text\"",
            "2: tls.certificate: cannot use the certificate HERE/text with the key HERE/text: the certificate's file holds none",
        ),
        (
            "[media]\ncertificate = \"HERE/text\"\nkey = \"HERE/text\"",
            "2: media.certificate: cannot use the DTLS certificate: ",
        ),
        (
            "[http]\nbind = [\"127.0.0.1\", \"192.0.2.77\"]",
            "2: http.bind: this machine has no address 192.0.2.77",
        ),
        (
            "[websocket]\nbind = [\"192.0.2.77\"]",
            "2: websocket.bind: this machine has no address 192.0.2.77",
        ),
        (
            "[admin]\nbind = [\"192.0.2.77\"]\nsecret = \"s\"\nenabled = false\nhttps = true\n[tls]\ncertificate = \"HERE/c\"\nkey = \"HERE/k\"",
            "2: admin.bind: this machine has no address 192.0.2.77",
        ),
        (
            "[http]\nmetrics_bind = \"192.0.2.77:9100\"",
            "2: http.metrics_bind: this machine has no address 192.0.2.77",
        ),
        (
            "[media]\nbind = [\"192.0.2.77\"]",
            "2: media.bind: this machine has no address 192.0.2.77",
        ),
        (
            "[sip]\nlocal_ip = \"192.0.2.77\"",
            "2: sip.local_ip: this machine has no address 192.0.2.77",
        ),
        (
            "[nosip]\nlocal_ip = \"nothing0\"",
            "2: nosip.local_ip: there is no interface or address nothing0",
        ),
        (
            "[unix]\npath = \"HERE/missing/api.sock\"",
            "2: unix.path: there is no folder HERE/missing",
        ),
        ("[jwt]\nkey_file = \"HERE/text\"", "2: jwt.key_file: "),
        (
            "[jwt]\njwks_file = \"HERE/missing.json\"",
            "2: jwt.jwks_file: ",
        ),
        (
            "[recording]\ndir = \"HERE/text/recordings\"",
            "2: recording.dir: cannot write into the folder HERE/text/recordings: ",
        ),
        (
            "[recording]\non_complete = [\"no-such-program\", \"{file}\"]",
            "2: recording.on_complete: there is no program no-such-program",
        ),
        (
            "[recording]\ndir = \"HERE\"\n[[videoroom.room]]\nroom = 7\n[[videoroom.room]]\nroom = 8\nrecord = true\nrec_dir = \"/elsewhere\"",
            "7: videoroom.room[1].record: ",
        ),
        (
            "[recording]\ndir = \"HERE\"\n[[audiobridge.room]]\nroom = 7\nsampling_rate = 48000\nmjrs = true\nmjrs_dir = \"HERE/text/mjrs\"",
            "6: audiobridge.room[0].mjrs: cannot record into HERE/text/mjrs: ",
        ),
        (
            "[[streaming.mountpoint]]\nname = \"a\"\ntype = \"ondemand\"\nfilename = \"HERE/film.mjr\"",
            "4: streaming.mountpoint[0].filename: cannot read HERE/film.mjr: ",
        ),
        (
            "[streaming]\nsave = \"HERE/missing/saved.toml\"",
            "2: streaming.save: cannot write HERE/missing/saved.toml: ",
        ),
        (
            "[events.file]\nenabled = true\npath = \"HERE/missing/events.json\"",
            "3: events.file.path: cannot write HERE/missing/events.json: ",
        ),
        (
            "[mqtt]\nenabled = true\ntls_cacert = \"HERE/missing.pem\"",
            "3: mqtt.tls_cacert: cannot use HERE/missing.pem: ",
        ),
        (
            "[events.webhook]\nenabled = true\nbackend = \"https://example.org\"\nca = \"HERE/missing.pem\"",
            "4: events.webhook.ca: cannot take certificates from HERE/missing.pem: ",
        ),
        (
            "[media]\nannounced = [\"no-such-name.invalid\"]",
            "2: media.announced: cannot resolve \"no-such-name.invalid\"",
        ),
    ] {
        let (status, lines) = checked(folder, text);
        assert_eq!(status, Some(2), "{text}\n{lines:?}");
        let found = lines.iter().any(|line| line.starts_with(expected));
        assert!(found, "{expected}\n{lines:#?}");
    }
    // Nothing is made, and what is off needs nothing.
    for text in [
        "[recording]\ndir = \"HERE/new/recordings\"",
        "[http]\nenabled = false\nbind = [\"192.0.2.77\"]",
        "[events.file]\npath = \"HERE/missing/events.json\"",
        "[plugins.sip]\nenabled = false\n[sip]\nlocal_ip = \"192.0.2.77\"",
    ] {
        let (status, lines) = checked(folder, text);
        assert_eq!(
            (status, lines),
            (Some(0), vec![" no mistakes".to_owned()]),
            "{text}"
        );
    }
    assert!(!folder.join("new").exists());
}

#[test]
fn what_cannot_be_meant_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        (
            "[server]\ntoken_auth = true",
            "2: warning: server.token_auth: there are no tokens: nobody is let in",
        ),
        (
            "[server]\ntoken_auth = true\napi_secret = \"s\"",
            "2: warning: server.token_auth: there are no tokens: only who shows server.api_secret",
        ),
        (
            "[server]\ntrust_loopback = false",
            "2: warning: server.trust_loopback: nobody may use the Admin API",
        ),
        (
            "[server]\ntrusted_proxies = [\"0.0.0.0/0\"]",
            "2: warning: server.trusted_proxies: everybody is a proxy",
        ),
        (
            "[admin]\nbind = [\"0.0.0.0\"]",
            "2: warning: admin.bind: from other machines nobody may use the Admin API",
        ),
        (
            "[admin]\nsecret = \"s\"\nbind = [\"::\"]",
            "3: warning: admin.bind: admin.secret is sent unencrypted",
        ),
        (
            "[recording]\nenabled = false\n[[videoroom.room]]\nroom = 7\nrecord = true",
            "5: warning: videoroom.room[0].record: nothing is recorded",
        ),
        (
            "[streaming]\nfolders = [\"HERE/missing\"]",
            "2: warning: streaming.folders: there is no folder HERE/missing",
        ),
        (
            "[admin]\ncapture_folder = \"HERE/missing\"",
            "2: warning: admin.capture_folder: there is no folder HERE/missing",
        ),
    ] {
        let (status, lines) = checked(folder.path(), text);
        assert_eq!(status, Some(0), "{text}\n{lines:?}");
        assert!(
            lines[0].trim_start().starts_with(expected),
            "{expected}\n{lines:#?}"
        );
        assert_eq!(lines[1..], [" no mistakes, and a warning"]);
    }
    for text in [
        "[server]\ntoken_auth = true\ntokens = [{ token = \"t\" }]",
        "[server]\ntoken_auth = true\n[jwt]\nsecret = \"0123456789abcdef0123456789abcdef\"",
        "[server]\ntrust_loopback = false\n[admin]\nsecret = \"s\"",
        "[server]\ntrust_loopback = false\n[admin]\nenabled = false",
        "[admin]\nsecret = \"s\"",
        "[admin]\nsecret = \"s\"\nbind = [\"127.0.0.1\"]",
    ] {
        let (status, lines) = checked(folder.path(), text);
        assert_eq!(
            (status, lines),
            (Some(0), vec![" no mistakes".to_owned()]),
            "{text}"
        );
    }
}

#[test]
fn a_filter_of_the_environment_that_is_none_is_told() {
    for arguments in [&["--check-config"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.toml");
        std::fs::write(&path, "").unwrap();
        let output = portunus()
            .env("PORTUNUS_LOG", "debgu")
            .args(arguments)
            .arg("--config")
            .arg(path)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(
            text.starts_with("PORTUNUS_LOG in the environment: \"debgu\" is no level"),
            "{text}"
        );
    }
}
