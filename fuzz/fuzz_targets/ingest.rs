#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_media::ingest::{ParameterSets, RtpIngest};
use portunus_media::testing::FanOut;
use portunus_media::{IngestFeed, IngestMedia, IngestOptions, KeyframeCache, packet_feed};
use portunus_sdp::negotiated::Codec;
use std::time::Duration;

const CODECS: [Codec; 6] = [
    Codec::Vp8,
    Codec::Vp9,
    Codec::H264,
    Codec::H265,
    Codec::Av1,
    Codec::Opus,
];

// Datagrams of an ingest, each preceded by its length, on the RTP and on the RTCP port. Nothing
// panics. The first byte chooses the codec.
fuzz_target!(|bytes: &[u8]| {
    let Some((codec, mut rest)) = bytes.split_first() else {
        return;
    };
    let codec = CODECS[usize::from(*codec) % CODECS.len()];
    let (_feed, packets) = packet_feed(1);
    let mut options = IngestOptions::rtp(codec, 90_000, IngestFeed::Packets(packets));
    options.media = IngestMedia::Rtp(RtpIngest {
        skew: true,
        svc: true,
        abs_capture_time: Some(3),
        h264_parameter_sets: ParameterSets::from_sprop("Z0LAHg==,aM48gA==").ok(),
        ..RtpIngest::new(codec, 90_000)
    });
    let keep = KeyframeCache {
        max_age: Duration::from_secs(1),
        max_bytes: 10_000,
    };
    let mut rig = FanOut::of_ingest(0, options, Some(keep));
    while let Some((len, more)) = rest.split_first() {
        let (datagram, more) = more.split_at(usize::from(*len).min(more.len()));
        rest = more;
        rig.take_in_rtcp(datagram);
        rig.take_in(&mut [datagram.to_vec()]);
    }
});
