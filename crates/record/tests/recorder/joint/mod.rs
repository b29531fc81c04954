//! Files that several tracks share.

mod files;
mod limits;
mod tracks;

use std::time::{Duration, Instant};

use portunus_files::summary::{Depth, Summary};
use portunus_files::{MediaFile, OpenOptions};
use portunus_media::testing::RequestedOutlet;
use portunus_record::{Format, JointRecording, JointSpec, Participant, RecordedMedia, TrackSpec};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;

use crate::rig::{Rig, rtp};

fn track(rig: &Rig, key: &str, codec: CodecName) -> TrackSpec {
    TrackSpec {
        key: key.to_owned(),
        media: RecordedMedia::codec(codec).with_mid(Some(key.to_owned())),
        from: rig.source(codec.codec()),
        open: true,
    }
}

fn spec(name: &str, format: Format, tracks: Vec<TrackSpec>) -> JointSpec {
    JointSpec {
        dir: None,
        name: name.to_owned(),
        format,
        of: None,
        tracks,
    }
}

fn start(rig: &Rig, name: &str, of: Option<Participant>) -> JointRecording {
    let tracks = vec![
        track(rig, "0", CodecName::Opus),
        track(rig, "1", CodecName::Vp8),
    ];
    let spec = JointSpec {
        of,
        ..spec(name, Format::WebM, tracks)
    };
    rig.recorder.joint(&rig.media, spec).unwrap()
}

/// A sender of synchronous audio and video.
struct Sender {
    sound: RequestedOutlet,
    picture: RequestedOutlet,
    begun: Instant,
    /// The audio packets so far.
    count: u16,
}

/// A packet of a VP8 frame of 64 x 48.
fn vp8(sequence: u16, timestamp: u32, keyframe: bool) -> Vec<u8> {
    let mut payload = vec![0x10, u8::from(!keyframe), 0, 0];
    payload.extend_from_slice(&[0x9d, 0x01, 0x2a, 64, 0, 48, 0]);
    payload.extend_from_slice(&[7; 40]);
    let mut packet = rtp(sequence, timestamp, &payload);
    packet[1] |= 0x80;
    packet
}

impl Sender {
    /// Returns a sender for the last two taps.
    fn new(rig: &Rig) -> Self {
        let mut taps = rig.taps();
        let picture = taps.pop().unwrap();
        Self {
            sound: taps.pop().unwrap(),
            picture,
            begun: Instant::now(),
            count: 0,
        }
    }

    /// Sends so many audio packets of 20 ms, with a frame for every second one. Each arrives when
    /// it is sent.
    fn send(&mut self, packets: u16) {
        for _ in 0..packets {
            let count = self.count;
            let at = self.begun + Duration::from_millis(20) * u32::from(count);
            let sound = rtp(count, u32::from(count) * 960, &[0xfc, 1, 2, 3]);
            self.sound.pretend_packet(&sound, Codec::Opus, at);
            if count.is_multiple_of(2) {
                let frame = vp8(
                    count / 2,
                    u32::from(count) * 1_800,
                    count.is_multiple_of(100),
                );
                self.picture.pretend_packet(&frame, Codec::Vp8, at);
            }
            self.count += 1;
        }
    }
}

/// Returns the codecs and the duration of a file.
fn read(path: &std::path::Path) -> (Vec<String>, Duration) {
    let file = MediaFile::open(path, &OpenOptions::default()).unwrap();
    let names = file
        .tracks()
        .iter()
        .map(|track| track.codec.name().to_owned());
    (names.collect(), file.duration().unwrap())
}

/// Returns the number of frames of each track.
fn frames_of(path: &std::path::Path) -> Vec<u64> {
    let summary = Summary::of(path, Depth::All).unwrap();
    summary.tracks.iter().map(|track| track.frames).collect()
}

/// Returns the number of packets of a file when it is played.
fn packets_of(path: &std::path::Path) -> usize {
    let options = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &options).unwrap();
    std::iter::from_fn(|| file.next().map(|packet| packet.is_ok())).count()
}

async fn end(rig: &Rig, recording: JointRecording) {
    let outcome = recording.outcome();
    drop(recording);
    outcome.ended().await.unwrap();
    rig.recorder.finished().await;
}
