//! Tracks that come and go.

use portunus_media::SourceRef;
use portunus_record::End;
use portunus_sdp::Kind;

use super::*;
use crate::rig::until;

#[tokio::test]
async fn tracks_come_and_go() {
    let rig = Rig::new();
    let spec = spec("ann", Format::WebM, vec![track(&rig, "0", CodecName::Opus)]);
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let sound = rig.tap();
    let begun = Instant::now();
    let send = |count: u16| {
        let at = begun + Duration::from_millis(20) * u32::from(count);
        let packet = rtp(count, u32::from(count) * 960, &[0xfc, 1]);
        assert!(sound.pretend_packet(&packet, Codec::Opus, at));
        at
    };
    for count in 0..100 {
        send(count);
    }
    until("the file has begun", || {
        rig.path("ann.webm").metadata().unwrap().len() > 0
    })
    .await;
    recording.add(track(&rig, "1", CodecName::Vp8));
    assert_eq!(recording.keys().collect::<Vec<_>>(), ["0", "1"]);
    let picture = rig.tap();
    for count in 100..200 {
        let at = send(count);
        let frame = vp8(count, u32::from(count) * 1_800, count == 100);
        picture.pretend_packet(&frame, Codec::Vp8, at);
    }
    drop(picture);
    recording.remove("1");
    for count in 200..250 {
        send(count);
    }
    assert!(!recording.is_over());
    // The end of the source ends the recording, unlike the removal of a track.
    drop(sound);
    let SourceRef::Ingest(ingest) = rig.media.requested().outlets[0].from else {
        panic!("an ingest was added");
    };
    rig.media.remove_ingest(ingest);
    assert_eq!(recording.outcome().ended().await.unwrap(), End::Source);
    assert!(recording.is_over());
    let (codecs, duration) = read(&rig.path("ann.webm"));
    assert_eq!(codecs, ["opus", "VP8"]);
    assert!(duration > Duration::from_millis(4_900), "{duration:?}");
}

/// A packet of a VP9 keyframe of this size.
fn vp9(sequence: u16, timestamp: u32, (width, height): (u16, u16)) -> Vec<u8> {
    // A frame in one packet: marker, profile 0, shown keyframe, the code, BT.601, and the size, 4
    // bits later.
    let size = u64::from(width - 1) << 16 | u64::from(height - 1);
    let bits = (1_u64 << 33 | size) << 4;
    let mut payload = vec![0x0c, 0x82, 0x49, 0x83, 0x42];
    payload.extend_from_slice(&bits.to_be_bytes()[3..]);
    payload.extend_from_slice(&[7; 20]);
    let mut packet = rtp(sequence, timestamp, &payload);
    packet[1] |= 0x80;
    packet
}

#[tokio::test]
async fn another_size_is_another_part_of_mp4_and_none_of_webm() {
    for (format, files) in [
        (Format::Mp4, &["ann.mp4", "ann-2.mp4"][..]),
        (Format::WebM, &["ann.webm"]),
    ] {
        let rig = Rig::new();
        let tracks = vec![track(&rig, "0", CodecName::Vp9)];
        let recording = rig.recorder.joint(&rig.media, spec("ann", format, tracks));
        let recording = recording.unwrap();
        recording.outcome().opened().await.unwrap();
        let begun = Instant::now();
        for count in 0..60_u16 {
            let size = if count < 30 { (640, 480) } else { (320, 240) };
            let at = begun + Duration::from_millis(40) * u32::from(count);
            let packet = vp9(count, u32::from(count) * 3_600, size);
            assert!(rig.tap().pretend_packet(&packet, Codec::Vp9, at));
        }
        end(&rig, recording).await;
        // Each frame is one packet.
        let packets = files.iter().map(|name| packets_of(&rig.path(name)));
        let expected: &[usize] = if files.len() == 1 { &[60] } else { &[30, 30] };
        assert_eq!(packets.collect::<Vec<_>>(), expected, "{format:?}");
        assert!(!rig.path("ann-2.webm").exists());
    }
}

/// Sends audio to a tap: packets of 20 ms from this number on, at their times.
fn talk(tap: &RequestedOutlet, begun: Instant, packets: std::ops::Range<u16>) {
    for count in packets {
        let at = begun + Duration::from_millis(20) * u32::from(count);
        let packet = rtp(count, u32::from(count) * 960, &[0xfc, 1]);
        assert!(tap.pretend_packet(&packet, Codec::Opus, at));
    }
}

#[tokio::test]
async fn what_comes_again_goes_on_in_the_same_track() {
    let rig = Rig::new();
    let mut recording = start(&rig, "ann", None);
    recording.outcome().opened().await.unwrap();
    let mut sender = Sender::new(&rig);
    sender.send(100);
    until("the file has begun", || rig.recorder.totals().frames > 0).await;
    // More often than a file has tracks.
    for round in 1..=8 {
        recording.remove("1");
        recording.add(track(&rig, "1", CodecName::Vp8));
        sender.picture = rig.tap();
        sender.count = round * 100;
        sender.send(100);
    }
    assert_eq!(recording.file_names(), ["ann.webm"]);
    drop(sender);
    end(&rig, recording).await;
    assert_eq!(read(&rig.path("ann.webm")).0, ["opus", "VP8"]);
    assert_eq!(frames_of(&rig.path("ann.webm")), [900, 450]);
    assert!(!rig.path("ann-2.webm").exists());
}

#[tokio::test]
async fn further_tracks_have_the_numbers_of_those_that_went_or_another_file() {
    let rig = Rig::new();
    let tracks = (0..6).map(|key| track(&rig, &key.to_string(), CodecName::Opus));
    let spec = spec("ann", Format::WebM, tracks.collect());
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let begun = Instant::now();
    for tap in rig.taps() {
        talk(&tap, begun, 0..100);
    }
    until("the file has begun", || rig.recorder.totals().frames > 0).await;
    // There is no room for a seventh.
    recording.add(track(&rig, "6", CodecName::Opus));
    talk(&rig.tap(), begun, 100..150);
    // There is room again after one was removed.
    recording.remove("2");
    recording.add(track(&rig, "7", CodecName::Opus));
    talk(&rig.tap(), begun, 200..250);
    end(&rig, recording).await;
    let tracks = |name: &str| frames_of(&rig.path(name)).len();
    assert_eq!((tracks("ann.webm"), tracks("ann-2.webm")), (6, 1));
    assert_eq!(tracks("ann-3.webm"), 1);
}

#[tokio::test]
async fn messages_that_come_again_are_in_another_file() {
    let rig = Rig::new();
    let data = |rig: &Rig| TrackSpec {
        media: RecordedMedia::data(true),
        ..track(rig, "0", CodecName::Opus)
    };
    let tracks = vec![data(&rig)];
    let mut recording = rig
        .recorder
        .joint(&rig.media, spec("ann", Format::WebM, tracks))
        .unwrap();
    assert!(rig.tap().pretend_first(Kind::Data));
    recording.add(data(&rig));
    assert!(rig.tap().pretend_first(Kind::Data));
    recording.outcome().opened().await.unwrap();
    end(&rig, recording).await;
    assert!(rig.path("ann-data.mjr").exists());
    assert!(rig.path("ann-data-2.mjr").exists());
    assert_eq!(rig.recorder.totals().failed, 0);
}

#[tokio::test]
async fn what_comes_after_the_end_is_in_the_next_file() {
    let rig = Rig::new();
    let tracks = vec![track(&rig, "0", CodecName::Opus)];
    let spec = spec("ann", Format::WebM, tracks);
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let begun = Instant::now();
    talk(&rig.tap(), begun, 0..100);
    let SourceRef::Ingest(ingest) = rig.taps()[0].from else {
        panic!("an ingest was added");
    };
    rig.media.remove_ingest(ingest);
    until("it is over", || recording.is_over()).await;
    recording.add(track(&rig, "1", CodecName::Opus));
    assert!(!recording.is_over());
    recording.outcome().opened().await.unwrap();
    talk(&rig.tap(), begun, 0..50);
    end(&rig, recording).await;
    assert_eq!(frames_of(&rig.path("ann.webm")), [100]);
    assert_eq!(frames_of(&rig.path("ann-2.webm")), [50]);
}
