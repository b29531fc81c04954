//! VP9 picture numbers at viewers, over changes of encodings and layers, in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::collections::HashMap;

use portunus_media::RouteOptions;
use portunus_media::testing::{Seen, Simulation};
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::BottleneckLink;
use portunus_rtp::codec::PictureId;
use portunus_sdp::negotiated::Codec;

/// What a viewer received, by extended sequence number.
fn in_order(simulation: &Simulation) -> Vec<(i64, Seen)> {
    let packets = &simulation.watchers[0].packets;
    let mut highest = i64::from(packets[0].sequence);
    let mut packets: Vec<(i64, Seen)> = packets
        .iter()
        .map(|seen| {
            let ahead = seen.sequence.wrapping_sub(highest as u16) as i16;
            let sequence = highest + i64::from(ahead);
            highest = highest.max(sequence);
            (sequence, *seen)
        })
        .collect();
    packets.sort_by_key(|(sequence, _)| *sequence);
    packets
}

/// Picture id and TL0PICIDX of a packet.
fn numbers(seen: &Seen) -> (u16, u8) {
    let vp9 = seen.vp9.unwrap();
    match (vp9.picture_id.unwrap(), vp9.tl0_pic_idx.unwrap()) {
        (PictureId::Long(picture), tl0) => (picture, tl0),
        (PictureId::Short(picture), _) => panic!("{picture} has another width than at the source"),
    }
}

/// The offset of the numbers from those of the publisher's first encoding.
fn offsets(seen: &Seen) -> (u16, u8) {
    let (picture, tl0) = numbers(seen);
    let tl0 = tl0.wrapping_sub((seen.number / 4) as u8);
    (picture.wrapping_sub(seen.number as u16) & 0x7fff, tl0)
}

fn asking_for(substream: u8, spatial: u8, temporal: u8) -> RouteOptions {
    RouteOptions {
        substream,
        spatial,
        temporal,
        ..RouteOptions::default()
    }
}

#[test]
fn picture_numbers_go_on_over_switches_of_encodings() {
    for loss in [0.0, 0.02] {
        let mut simulation = Simulation::new(1);
        let down = simulation.link(BottleneckLink {
            loss,
            ..BottleneckLink::of(DataRate::kbps(8_000))
        });
        let rates = [150, 500, 1_700];
        let camera = simulation.publish_as(Codec::Vp9, Layering::Encodings, &rates);
        simulation.watch(camera, down);
        for (substream, temporal) in [(2, 2), (0, 2), (1, 0), (2, 1), (0, 0), (2, 2)] {
            simulation.set_options(0, asking_for(substream, 2, temporal));
            simulation.run(6.0);
        }
        let packets = in_order(&simulation);
        let (mut switches, mut gaps) = (0, 0);
        for pair in packets.windows(2) {
            let [(before_at, before), (at, seen)] = pair else {
                continue;
            };
            assert!(at > before_at, "each packet once");
            if before.layer == seen.layer {
                // As far apart as at the source, with or without dropped pictures: references are
                // distances.
                assert_eq!(offsets(before), offsets(seen), "{before:?} {seen:?}");
                gaps += u32::from(seen.number > before.number + 1);
            } else if *at == before_at + 1 {
                let ((picture, tl0), (next, next_tl0)) = (numbers(before), numbers(seen));
                assert_eq!(
                    next,
                    picture.wrapping_add(1) & 0x7fff,
                    "{before:?} {seen:?}"
                );
                assert_eq!(next_tl0, tl0.wrapping_add(1), "{before:?} {seen:?}");
                switches += 1;
            }
        }
        assert!(gaps > 100, "pictures were left out: {gaps}");
        assert!(switches >= 4, "{switches} at {loss}");
        let lowest = packets.iter().filter(|(_, seen)| seen.layer == 0).count();
        assert!(lowest > 200 && packets.len() > 3_000, "{lowest}");
        if loss == 0.0 {
            let all = packets.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
            assert!(all, "no sequence number is missing");
        }
    }
}

#[test]
fn all_spatial_layers_of_a_picture_share_its_numbers() {
    let mut simulation = Simulation::new(1);
    let down = simulation.link(BottleneckLink::of(DataRate::kbps(8_000)));
    let camera = simulation.publish(Layering::Spatial, &[150, 500, 1_700]);
    simulation.watch(camera, down);
    let gate = |simulation: &mut Simulation, options| {
        simulation.set_options(0, options);
        simulation.run(4.0);
    };
    for (spatial, temporal) in [(2, 2), (0, 2), (2, 0), (1, 1)] {
        gate(&mut simulation, asking_for(2, spatial, temporal));
    }
    let closed = RouteOptions {
        enabled: false,
        ..asking_for(2, 2, 2)
    };
    gate(&mut simulation, closed);
    gate(&mut simulation, asking_for(2, 2, 2));
    let packets = in_order(&simulation);
    let mut pictures = HashMap::new();
    let mut pauses = 0;
    for pair in packets.windows(2) {
        let (before, seen) = (&pair[0].1, &pair[1].1);
        let picture = pictures.entry(seen.number).or_insert(numbers(seen));
        assert_eq!(*picture, numbers(seen), "{seen:?}");
        if offsets(before) != offsets(seen) {
            pauses += 1;
        }
    }
    let tops = packets.iter().filter(|(_, seen)| seen.layer == 2).count();
    assert!(tops > 500, "{tops}");
    // Only where the gate was closed.
    assert_eq!(pauses, 1);
}
