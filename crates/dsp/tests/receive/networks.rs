//! Delays and gaps.

use portunus_dsp::{AudioCodec, Channels, Format, Played, SampleRate};

use crate::call::{Call, Dice, Opus, PLAIN, Sent, opus, pcmu};
use crate::speech::{RATE, lag, speech};

const WIDEBAND: Format = Format {
    rate: SampleRate::Hz16000,
    channels: Channels::Mono,
};
const NARROWBAND: Format = Format {
    rate: SampleRate::Hz8000,
    channels: Channels::Mono,
};

#[test]
fn on_a_clean_link_speech_is_late_by_less_than_40_ms_and_whole() {
    let said = speech(6.0);
    let sent = opus(&said, PLAIN);
    for phase in [0, 500, 5_000, 10_000, 19_500] {
        let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
        call.phase = phase;
        let heard = call.play(sent.clone());
        assert!(heard.median_delay() < 40, "{} ms", heard.median_delay());
        assert_eq!(heard.concealed(), 10, "but for the end");
        // The measured delay includes 6.5 ms of the codec.
        let ms = lag(&said[RATE..2 * RATE], &heard.samples[RATE..], RATE / 5) as u64 * 1_000
            / RATE as u64
            + phase / 1_000;
        assert!(ms < 48, "heard {ms} ms after it came");
        assert_eq!(heard.stats.shortened + heard.stats.lengthened, 0);
    }
}

/// The packets of a minute, repeated for an hour, by a clock that is off by `ppm`.
fn drifting(ppm: i64) -> Vec<Sent> {
    let said: Vec<f32> = speech(10.0).chunks_exact(2).map(|pair| pair[0]).collect();
    let minute = pcmu(&said, 20);
    (0..180_000_u64)
        .map(|index| {
            let sent = &minute[index as usize % minute.len()];
            let arrival =
                (index * 20_000).saturating_add_signed(index as i64 * 20_000 * ppm / 1_000_000);
            Sent {
                seq: index,
                timestamp: index as u32 * 160,
                arrival,
                ..sent.clone()
            }
        })
        .collect()
}

#[test]
fn an_hour_of_drifting_clocks_leaves_no_gap_and_no_delay() {
    for ppm in [-200, 200] {
        let heard = Call::new(AudioCodec::Pcmu, NARROWBAND).play(drifting(ppm));
        let during = &heard.played[10..heard.played.len() - 110];
        assert!(
            during
                .iter()
                .all(|played| *played == Played::Sound { concealed: false }),
            "{ppm} ppm"
        );
        let most = heard.delays[..heard.delays.len() - 110]
            .iter()
            .max()
            .unwrap();
        assert!(*most < 65, "{ppm} ppm: {most} ms");
        assert!(
            heard.median_delay() < 40,
            "{ppm} ppm: {} ms",
            heard.median_delay()
        );
        let moved = heard.stats.lengthened.max(heard.stats.shortened) as f32 / 8_000.0;
        assert!(
            (0.6..1.0).contains(&moved),
            "{ppm} ppm: {moved} s in an hour"
        );
    }
}

#[test]
fn delay_returns_within_two_seconds_after_a_stall() {
    for stall in [100, 300, 450, 900] {
        let mut sent = opus(&speech(10.0), PLAIN);
        for packet in &mut sent {
            if (4_000_000..4_000_000 + stall * 1_000).contains(&packet.arrival) {
                packet.arrival = 4_000_000 + stall * 1_000;
            }
        }
        let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(sent);
        let back = 4_000 + stall as usize + 2_000;
        let most = heard.delays[back / 20..480].iter().max().unwrap();
        assert!(*most <= 45, "{stall} ms: {most} ms late");
        // A short stall loses nothing.
        if stall <= 450 {
            assert_eq!(
                (heard.stats.late, heard.stats.overflow),
                (0, 0),
                "{stall} ms"
            );
        }
    }
}

#[test]
fn jitter_of_30_ms_is_borne_by_waiting_that_long() {
    let mut dice = Dice(5);
    let mut sent = opus(&speech(20.0), PLAIN);
    for packet in &mut sent {
        packet.arrival += dice.below(30_000);
    }
    let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(sent);
    assert!(heard.median_delay() <= 60, "{} ms", heard.median_delay());
    assert!(
        heard.concealed() < 10 + 15,
        "{} of 1000 frames made up",
        heard.concealed()
    );
    assert!(heard.stats.late < 5, "{} late", heard.stats.late);
}

#[test]
fn packets_out_of_order_and_twice_are_played_once_in_order() {
    let said = speech(6.0);
    let mut sent = opus(&said, PLAIN);
    let whole = Call::new(AudioCodec::Opus, WIDEBAND).play(sent.clone());
    for pair in sent[10..].chunks_exact_mut(2) {
        pair[0].arrival += 21_000;
        pair[1].arrival -= 1_000;
    }
    let twice: Vec<Sent> = sent
        .iter()
        .cloned()
        .chain(sent.iter().map(|sent| Sent {
            arrival: sent.arrival + 500,
            ..sent.clone()
        }))
        .collect();
    let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(twice);
    assert_eq!(heard.concealed(), whole.concealed(), "nothing made up");
    assert_eq!(heard.stats.duplicate + heard.stats.late, sent.len() as u64);
}

#[test]
fn pauses_of_dtx_are_silence_and_no_jitter() {
    let mut said = speech(12.0);
    // Two pauses of three seconds.
    for pause in [2, 7] {
        said[pause * RATE..(pause + 3) * RATE].fill(0.0);
    }
    let sent = opus(&said, Opus { dtx: true, ..PLAIN });
    let whole = opus(&said, PLAIN).len();
    assert!(
        sent.len() < whole - 200,
        "{} of {whole} packets: the encoder does pause",
        sent.len()
    );
    let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(sent);
    assert!(heard.targets.iter().all(|target| *target == 20));
    assert!(heard.silent() > 200, "{} silent frames", heard.silent());
    // Each pause ends with a faded frame. At the end of the call it is not counted.
    assert!(heard.concealed() <= 10 + 6, "{} made up", heard.concealed());
    // The first syllable after a pause sounds as without a pause.
    let onset = |samples: &[f32], at: usize| {
        samples[at..at + RATE / 4]
            .iter()
            .map(|sample| sample * sample)
            .sum::<f32>()
    };
    let late = lag(
        &said[5 * RATE..6 * RATE],
        &heard.samples[5 * RATE..],
        RATE / 5,
    );
    let (first, first_heard) = (
        onset(&said, 5 * RATE),
        onset(&heard.samples, 5 * RATE + late),
    );
    assert!(
        (0.7..1.4).contains(&(first_heard / first)),
        "{first} said, {first_heard} heard"
    );
}

#[test]
fn after_minutes_of_silence_the_delay_is_what_it_was() {
    let said = speech(3.0);
    let first = opus(&said, PLAIN);
    let count = first.len() as u64;
    // Ten minutes later, by a clock that has drifted by 120 ms, in a burst of ten packets.
    let second = first.iter().map(|sent| Sent {
        seq: sent.seq + count,
        timestamp: sent.timestamp + 600 * 48_000,
        arrival: 600_120_000 + sent.arrival.max(200_000),
        ..sent.clone()
    });
    let heard =
        Call::new(AudioCodec::Opus, WIDEBAND).play(first.iter().cloned().chain(second).collect());
    let end = heard.delays.len() - 110;
    assert!(
        heard.delays[end - 20..end].iter().all(|delay| *delay <= 45),
        "{:?}",
        &heard.delays[end - 140..end]
    );
    assert!(heard.delays[100] <= 40);
}
