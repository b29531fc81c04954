//! ffmpeg as both far ends: it sends G.711 into one leg, and records what comes out of another (left out with a message where
//! there is none).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by a panic"
)]

mod rig;

use std::f64::consts::TAU;
use std::fmt::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portunus_leg::{LegEvent, LegRemote, LegSrtp, Profile, SrtpKey};

use rig::{PCMU, Rig, until};

const TONE: f64 = 700.0;

/// How much of the energy is of the tone, 0.0 to 1.0.
fn share(sound: &[i16]) -> f64 {
    let (mut sine, mut cosine, mut energy) = (0.0, 0.0, 1e-9);
    for (n, sample) in sound.iter().enumerate() {
        let (sample, angle) = (f64::from(*sample), n as f64 * TONE * TAU / 8_000.0);
        sine += sample * angle.sin();
        cosine += sample * angle.cos();
        energy += sample * sample;
    }
    2.0 * (sine * sine + cosine * cosine) / (sound.len() as f64 * energy)
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-y"]);
    command.stdin(Stdio::null());
    command
}

#[test]
fn a_tone_passes_from_ffmpeg_to_ffmpeg() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        eprintln!("no ffmpeg: left out");
        return;
    }
    let suites = [
        None,
        Some((Profile::Aes128CmSha1_80, "AES_CM_128_HMAC_SHA1_80")),
        Some((Profile::Aes128CmSha1_32, "AES_CM_128_HMAC_SHA1_32")),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (round, suite) in suites.into_iter().enumerate() {
        let mut rig = Rig::new(1);
        let (from, to) = (rig.leg(|_| {}), rig.leg(|_| {}));
        let keys = suite.map(|(profile, _)| (SrtpKey::random(profile), SrtpKey::random(profile)));
        let srtp = keys
            .clone()
            .map(|(incoming, outgoing)| LegSrtp { incoming, outgoing });
        // Where it sends from is found out.
        let nowhere = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let told = LegRemote::new(Some(nowhere), vec![PCMU]);
        from.set_remote(LegRemote {
            srtp: srtp.clone(),
            ..told.clone()
        });
        // A port that is free now, and one after it for RTCP.
        let listens = rig::Phone::new().at();
        let remote = LegRemote {
            rtp: Some(listens),
            srtp,
            ..told
        };
        to.set_remote(remote);
        to.route_from(Some(from.source()));

        let mut sdp = format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {} RTP/{} 0\r\n",
            listens.port(),
            if keys.is_some() { "SAVP" } else { "AVP" },
        );
        let base64 = |key: &SrtpKey| STANDARD.encode(key.key_and_salt());
        if let Some(((_, outgoing), (_, name))) = keys.as_ref().zip(suite) {
            write!(sdp, "a=crypto:1 {name} inline:{}\r\n", base64(outgoing)).unwrap();
        }
        let (description, heard) = (
            folder.path().join(format!("{round}.sdp")),
            folder.path().join(format!("{round}.raw")),
        );
        std::fs::write(&description, sdp).unwrap();
        let mut receiver = ffmpeg()
            .args(["-protocol_whitelist", "file,crypto,data,udp,rtp,srtp", "-i"])
            .arg(&description)
            .args(["-t", "1.5", "-f", "s16le", "-ar", "8000", "-ac", "1"])
            .arg(&heard)
            .spawn()
            .expect("ffmpeg is installed");
        let mut sender = ffmpeg();
        let source = format!("sine=frequency={TONE}:sample_rate=8000");
        sender.args(["-re", "-f", "lavfi", "-i", &source, "-t", "20"]);
        sender.args(["-ac", "1", "-c:a", "pcm_mulaw", "-f", "rtp"]);
        let scheme = match keys.as_ref().zip(suite) {
            Some(((incoming, _), (_, name))) => {
                sender.args([
                    "-srtp_out_suite",
                    name,
                    "-srtp_out_params",
                    &base64(incoming),
                ]);
                "srtp"
            }
            None => "rtp",
        };
        sender.arg(format!("{scheme}://127.0.0.1:{}", from.port()));
        let mut sender = sender
            .stdout(Stdio::null())
            .spawn()
            .expect("ffmpeg is installed");
        rig.event(&from, |event| *event == LegEvent::Heard);
        until("it has heard enough", || {
            receiver.try_wait().unwrap().is_some()
        });
        sender.kill().unwrap();
        sender.wait().unwrap();
        let heard = std::fs::read(&heard).unwrap();
        let sound: Vec<i16> = heard
            .chunks_exact(2)
            .map(|sample| i16::from_le_bytes([sample[0], sample[1]]))
            .collect();
        assert!(sound.len() > 8_000, "{} samples", sound.len());
        let share = share(&sound[sound.len() - 6_000..]);
        assert!(share > 0.9, "{suite:?}: {share}");
        assert_eq!(from.status().incoming().lost(), 0);
    }
}
