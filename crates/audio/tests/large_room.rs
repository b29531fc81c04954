//! A room that is too large for one thread: another thread helps to encode, and each listener still
//! has one stream.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_audio::{
    AudioCodec, AudioConfig, AudioRoom, AudioThreads, Channels, Encoding, Format, Out,
    ParticipantId, ParticipantOptions, RoomOptions, RtpLeg, RtpLegOptions, SampleRate,
};
use portunus_media::{MediaConfig, MediaPlane};
use portunus_record::Recorder;
use portunus_rtp::{Fields, Header, Pt, Ssrc, write_header};

const TALKERS: usize = 120;
const FRAME: Duration = Duration::from_millis(20);
/// The shortest time of the test, and the longest until another thread has helped.
const TIME: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(30);

/// A participant that sends noise by PCMU and gets Opus.
struct Person {
    leg: Arc<RtpLeg>,
    socket: UdpSocket,
    heard: Vec<(u16, u32)>,
}

impl Person {
    fn new(media: &MediaPlane) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let options = RtpLegOptions {
            ports: 20_000..=50_000,
            remote: Some(socket.local_addr().unwrap()),
            codec: AudioCodec::Pcmu,
            pt: Pt(0),
            audio_level: None,
        };
        Self {
            leg: Arc::new(RtpLeg::open(media, options).unwrap()),
            socket,
            heard: Vec::new(),
        }
    }

    fn join(&self, room: &AudioRoom, number: u64) {
        let options = ParticipantOptions {
            codec: AudioCodec::Pcmu,
            muted: false,
            suspended: false,
            immune: false,
            gain: 0.1,
            position: 0.5,
            group: None,
            denoise: false,
            levels: false,
            talk: None,
            encoding: Encoding {
                codec: AudioCodec::Opus,
                bitrate: Some(16_000),
                complexity: 1,
                fec: false,
                expected_loss: 0,
            },
        };
        let (source, out) = (self.leg.source(), Out::Leg(Arc::clone(&self.leg)));
        let id = ParticipantId(number);
        room.join(id, options, Some(source), Some(out));
        room.connect(id, true);
    }

    fn send(&self, frame: u32, noise: &mut u32) {
        let mut packet = [0; 172];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(0),
            sequence: frame as u16,
            timestamp: frame.wrapping_mul(160),
            ssrc: Ssrc(77),
        };
        write_header(&mut packet, &fields, []).unwrap();
        for byte in &mut packet[12..] {
            *noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Of medium loudness and either sign.
            *byte = 0x20 | (*noise >> 24) as u8 & 0x9f;
        }
        let to: SocketAddr = ([127, 0, 0, 1], self.leg.port()).into();
        self.socket.send_to(&packet, to).unwrap();
    }

    fn hear(&mut self) {
        let mut buffer = [0; 2_048];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let header = Header::parse(&buffer[..len]).unwrap();
            self.heard.push((header.sequence, header.timestamp));
        }
    }
}

#[test]
fn a_hundred_and_twenty_who_all_talk_are_encoded_by_two_threads() {
    let config = MediaConfig {
        workers: 1,
        pin: false,
        port: 0,
        bind: vec!["127.0.0.1".parse().unwrap()],
        ..MediaConfig::default()
    };
    let (media, _events) = MediaPlane::start(config).unwrap();
    let config = AudioConfig {
        threads: 2,
        pin: false,
    };
    let threads = AudioThreads::new(config, media.clone(), Recorder::default());
    let options = RoomOptions {
        format: Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        },
        loudest: 0,
        groups: 0,
    };
    let (large, _told) = threads.open(options.clone()).unwrap();
    // A room on the other thread.
    let (small, _told) = threads.open(options).unwrap();
    let mut people: Vec<_> = (0..TALKERS + 1).map(|_| Person::new(&media)).collect();
    for (number, person) in people.iter().enumerate() {
        let room = if number < TALKERS { &large } else { &small };
        person.join(room, number as u64);
    }
    let (start, mut noise) = (Instant::now(), 1);
    for frame in 0.. {
        for person in &mut people {
            person.send(frame, &mut noise);
            person.hear();
        }
        let is_over = threads.totals().helped > 0 && start.elapsed() > TIME;
        let heard = |person: &Person| person.heard.len() > 20;
        if is_over && people.iter().all(heard) {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", threads.totals());
        let due = start + FRAME * (frame + 1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let lateness = threads.thread_stats();
    for person in &mut people {
        person.hear();
    }
    // The counters are read after the last packet was heard, so they include it.
    let totals = threads.totals();
    let mut missing = 0;
    for pair in people[..TALKERS].iter().flat_map(|it| it.heard.windows(2)) {
        let ((seq, time), (next_seq, next_time)) = (pair[0], pair[1]);
        assert_eq!(next_seq, seq.wrapping_add(1));
        let step = next_time.wrapping_sub(time);
        assert!(
            step > 0 && step.is_multiple_of(960) && step < 960 * 500,
            "{step}"
        );
        missing += u64::from(step / 960 - 1);
    }
    let most = totals.unreturned + totals.skipped * TALKERS as u64;
    assert!(missing <= most, "{missing} are missing: {totals:?}");
    // The helping thread mixes its own room on time, except during a job.
    let helper = lateness.iter().find(|thread| thread.participants == 1);
    let late = helper.unwrap().late_median;
    assert!(late < FRAME, "{late:?}");
    println!("{missing} missing, {totals:?}, {lateness:?}");
}
