//! Two sides of a call without a common codec hear each other.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by a panic"
)]

use std::f64::consts::TAU;
use std::time::{Duration, Instant};

use portunus_audio::{AudioCodec, AudioConfig, AudioThreads, TranscodedSide};
use portunus_dsp::g711::{self, Law};
use portunus_dsp::g722;
use portunus_media::{
    IngestFeed, IngestOptions, MediaConfig, MediaPlane, PacketFeed, RouteOptions, SourceRef, Tap,
    TapOptions, Tapped, TappedPacket, packet_feed,
};
use portunus_record::{Recorder, RecorderConfig};
use portunus_rtp::{Fields, Pt, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;

const PATIENCE: Duration = Duration::from_secs(20);

fn fed(media: &MediaPlane, codec: Codec) -> (SourceRef, PacketFeed) {
    let (feed, packets) = packet_feed(1);
    let options = IngestOptions::rtp(codec, 8_000, IngestFeed::Packets(packets));
    (media.add_ingest(options).id.into(), feed)
}

fn tone(hertz: f64, rate: f64, from: usize, len: usize) -> Vec<f32> {
    let at = |n: usize| (0.4 * (n as f64 * hertz * TAU / rate).sin()) as f32;
    (from..from + len).map(at).collect()
}

/// A packet of 20 ms.
fn packet(n: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 12];
    let fields = Fields {
        marker: false,
        padding: false,
        pt: Pt(0),
        sequence: n,
        timestamp: u32::from(n) * 160,
        ssrc: Ssrc(77),
    };
    write_header(&mut packet, &fields, []).unwrap();
    packet.extend_from_slice(payload);
    packet
}

/// Returns the next packet of a tap.
fn tapped(tap: &mut Tap, deadline: Instant) -> TappedPacket {
    while Instant::now() < deadline {
        match tap.try_recv() {
            Some(Tapped::Packet(packet)) => return packet,
            Some(_) => {}
            None => std::thread::yield_now(),
        }
    }
    panic!("nothing comes");
}

/// Returns the share of a tone in the energy, 0.0 to 1.0.
fn share(sound: &[f32], hertz: f64, rate: f64) -> f64 {
    let (mut sine, mut cosine, mut energy) = (0.0, 0.0, 1e-9);
    for (n, sample) in sound.iter().enumerate() {
        let angle = n as f64 * hertz * TAU / rate;
        sine += f64::from(*sample) * angle.sin();
        cosine += f64::from(*sample) * angle.cos();
        energy += f64::from(*sample) * f64::from(*sample);
    }
    2.0 * (sine * sine + cosine * cosine) / (sound.len() as f64 * energy)
}

#[test]
fn each_side_hears_the_other_in_its_own_codec() {
    let config = MediaConfig {
        workers: 2,
        pin: false,
        port: 0,
        bind: vec!["127.0.0.1".parse().unwrap()],
        ..MediaConfig::default()
    };
    let (media, _events) = MediaPlane::start(config).unwrap();
    let config = AudioConfig {
        threads: 1,
        pin: false,
    };
    let recorder = Recorder::new(RecorderConfig::default());
    let threads = AudioThreads::new(config, media.clone(), recorder);
    // Two transcoded calls in a row: from G.711 to Opus to G.722.
    let (narrow, narrow_feed) = fed(&media, Codec::Pcmu);
    let (wide, wide_feed) = fed(&media, Codec::G722);
    let side = TranscodedSide::new;
    let (silence, _feed) = fed(&media, Codec::Opus);
    let first = threads
        .transcode(
            side(silence, AudioCodec::Opus),
            side(narrow, AudioCodec::Pcmu),
        )
        .unwrap();
    let second = threads
        .transcode(
            TranscodedSide {
                bitrate: Some(32_000),
                expected_loss: 5,
                worker: Some(1),
                ..side(first.to_near(), AudioCodec::Opus)
            },
            side(wide, AudioCodec::G722),
        )
        .unwrap();
    // Back, without Opus.
    let third = threads
        .transcode(side(narrow, AudioCodec::Pcmu), side(wide, AudioCodec::G722))
        .unwrap();
    let tap = |source| {
        media
            .tap(source, RouteOptions::default(), TapOptions::default())
            .1
    };
    let (mut to_wide, mut to_narrow) = (tap(second.to_far()), tap(third.to_near()));
    let deadline = Instant::now() + PATIENCE;
    let mut encoder = g722::Encoder::default();
    let mut decoder = g722::Decoder::default();
    let (mut wide_heard, mut narrow_heard) = (Vec::new(), Vec::new());
    let mut last: Option<(u64, u32)> = None;
    for n in 0..150_u16 {
        let at = usize::from(n);
        let mut payload = Vec::new();
        g711::encode(Law::Mu, &tone(700.0, 8_000.0, at * 160, 160), &mut payload);
        narrow_feed.send(0, &packet(n, &payload)).unwrap();
        payload.clear();
        encoder.encode(&tone(1_900.0, 16_000.0, at * 320, 320), &mut payload);
        wide_feed.send(0, &packet(n, &payload)).unwrap();
        // The threads follow the clock: a packet comes every 20 ms.
        let came = tapped(&mut to_wide, deadline);
        assert_eq!((came.codec(), came.payload().len()), (Codec::G722, 160));
        decoder.decode(came.payload(), &mut wide_heard);
        if let Some((seq, timestamp)) = last {
            assert_eq!(came.seq().0, seq + 1);
            assert_eq!(came.timestamp(), timestamp.wrapping_add(160));
        }
        last = Some((came.seq().0, came.timestamp()));
        let came = tapped(&mut to_narrow, deadline);
        assert_eq!((came.codec(), came.payload().len()), (Codec::Pcmu, 160));
        g711::decode(Law::Mu, came.payload(), &mut narrow_heard);
    }
    let end = |sound: &[f32], len: usize| sound[sound.len() - len..].to_vec();
    let (wide_heard, narrow_heard) = (end(&wide_heard, 8_000), end(&narrow_heard, 4_000));
    // Late packets on a busy machine are concealed.
    let through_opus = share(&wide_heard, 700.0, 16_000.0);
    assert!(through_opus > 0.8, "{through_opus}");
    let direct = share(&narrow_heard, 1_900.0, 8_000.0);
    assert!(direct > 0.8, "{direct}");
    // Everything ends.
    drop((first, second, third));
    let deadline = Instant::now() + PATIENCE;
    while threads.totals().rooms > 0 {
        assert!(Instant::now() < deadline, "rooms stay");
        std::thread::yield_now();
    }
    media.shutdown();
}
