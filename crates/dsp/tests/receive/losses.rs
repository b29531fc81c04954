//! Losses, and how they sound.

use portunus_dsp::{AudioCodec, Channels, Content, Format, SampleRate};

use crate::call::{Call, Dice, Opus, PLAIN, Sent, opus};
use crate::speech::{RATE, distance, lag, speech};

const WIDEBAND: Format = Format {
    rate: SampleRate::Hz16000,
    channels: Channels::Mono,
};

/// The length that is compared at once: a syllable.
const PIECE: usize = RATE * 240 / 1_000;

/// Returns the output of a plain libopus decoder if packets are missing.
fn plain_concealment(sent: &[Sent], count: usize) -> Vec<f32> {
    let mut decoder =
        opusic_c::Decoder::new(opusic_c::Channels::Mono, opusic_c::SampleRate::Hz16000).unwrap();
    let mut heard = Vec::new();
    for index in 0..count as u32 {
        let mut frame = [0.0; 320];
        let payload = sent
            .iter()
            .find(|sent| sent.timestamp == index * 960)
            .map_or(&[][..], |sent| &sent.payload);
        decoder
            .decode_float_to_slice(payload, &mut frame, false)
            .unwrap();
        heard.extend_from_slice(&frame);
    }
    heard
}

/// Returns the distances from the audio without losses: of a receiver, and of plain concealment.
fn distances(whole: &[Sent], arrived: Vec<Sent>) -> (f32, f32) {
    let clean = plain_concealment(whole, whole.len());
    let plain = distance(&clean, &plain_concealment(&arrived, whole.len()));
    let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(arrived);
    // Aligned piece by piece, because the delay may change.
    let (mut sum, mut count) = (0.0, 0.0);
    for start in (RATE..clean.len() - 2 * RATE).step_by(PIECE) {
        let piece = &clean[start..start + PIECE];
        let late = lag(piece, &heard.samples[start..], RATE / 8);
        sum += distance(piece, &heard.samples[start + late..]);
        count += 1.0;
    }
    (sum / count, plain)
}

fn without(sent: &[Sent], mut lost: impl FnMut() -> bool) -> Vec<Sent> {
    sent.iter()
        .filter(|sent| sent.seq < 10 || !lost())
        .cloned()
        .collect()
}

#[test]
fn random_losses_sound_no_worse_than_plain_concealment() {
    let sent = opus(&speech(16.0), PLAIN);
    let mut dice = Dice(1);
    let (heard, plain) = distances(&sent, without(&sent, || dice.chance(5)));
    println!("5 % random loss: {heard:.2} dB, plain concealment {plain:.2} dB");
    assert!(
        heard < plain * 1.1,
        "{heard} dB, plain concealment {plain} dB"
    );
}

#[test]
fn with_fec_random_losses_are_hardly_heard() {
    let sent = opus(&speech(16.0), Opus { fec: true, ..PLAIN });
    let mut dice = Dice(1);
    let arrived = without(&sent, || dice.chance(5));
    let lost = sent.len() - arrived.len();
    let (heard, plain) = distances(&sent, arrived.clone());
    println!("5 % random loss with FEC: {heard:.2} dB, plain concealment {plain:.2} dB");
    assert!(
        heard < plain * 0.7,
        "{heard} dB, plain concealment {plain} dB"
    );
    let stats = Call::new(AudioCodec::Opus, WIDEBAND).play(arrived).stats;
    assert!(
        stats.recovered as usize > lost * 7 / 10,
        "{} of {lost} came back",
        stats.recovered
    );
}

#[test]
fn losses_and_jitter_together_are_borne() {
    let sent = opus(&speech(16.0), Opus { fec: true, ..PLAIN });
    let mut dice = Dice(3);
    let mut arrived = without(&sent, || dice.chance(5));
    arrived
        .iter_mut()
        .for_each(|sent| sent.arrival += dice.below(30_000));
    let lost = sent.len() - arrived.len();
    let (heard, plain) = distances(&sent, arrived.clone());
    println!(
        "5 % random loss and 30 ms jitter with FEC: {heard:.2} dB, plain concealment without jitter {plain:.2} dB"
    );
    let stats = Call::new(AudioCodec::Opus, WIDEBAND).play(arrived).stats;
    assert!(
        stats.recovered as usize > lost / 2,
        "{} of {lost} came back",
        stats.recovered
    );
    assert!(stats.late < 8, "{} late", stats.late);
}

#[test]
fn bursts_of_losses_fade_and_end() {
    let sent = opus(&speech(16.0), PLAIN);
    // Gilbert's model: bursts of four packets on average, 8 % of all.
    let (mut dice, mut bad) = (Dice(9), false);
    let arrived = without(&sent, || {
        bad = if bad { dice.chance(75) } else { dice.chance(2) };
        bad
    });
    let (heard, plain) = distances(&sent, arrived);
    println!("8 % loss in bursts: {heard:.2} dB, plain concealment {plain:.2} dB");
    assert!(
        heard < plain * 1.15,
        "{heard} dB, plain concealment {plain} dB"
    );

    // Half a second is lost: concealment fades to silence, then speech continues, no later than
    // before.
    let arrived = sent
        .iter()
        .filter(|sent| !(4_000_000..4_500_000).contains(&sent.arrival))
        .cloned()
        .collect();
    let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(arrived);
    let gap = &heard.samples[RATE * 43 / 10..RATE * 45 / 10];
    assert!(gap.iter().all(|sample| sample.abs() < 1e-3), "silence");
    assert!(
        heard.delays[250..790].iter().all(|delay| *delay <= 45),
        "{:?}",
        heard.delays.iter().max()
    );
}

/// Returns packets of redundant audio: each with the one before it.
fn redundant(sent: &[Sent]) -> Vec<Sent> {
    let mut before: Option<&Sent> = None;
    sent.iter()
        .map(|sent| {
            let mut payload = Vec::new();
            if let Some(before) = before {
                let (offset, len) = (sent.timestamp - before.timestamp, before.payload.len());
                payload.extend_from_slice(&[
                    0x80 | 111,
                    (offset >> 6) as u8,
                    ((offset & 63) << 2) as u8 | (len >> 8) as u8,
                    len as u8,
                ]);
            }
            payload.push(111);
            payload.extend(before.into_iter().flat_map(|before| &before.payload));
            payload.extend_from_slice(&sent.payload);
            before = Some(sent);
            Sent {
                payload,
                content: Content::Red,
                ..sent.clone()
            }
        })
        .collect()
}

#[test]
fn redundant_audio_brings_back_what_is_lost() {
    let sent = redundant(&opus(&speech(10.0), PLAIN));
    let mut dice = Dice(1);
    let arrived = without(&sent, || dice.chance(10));
    let lost = sent.len() - arrived.len();
    let heard = Call::new(AudioCodec::Opus, WIDEBAND).play(arrived);
    assert!(
        heard.stats.recovered as usize > lost * 8 / 10,
        "{} of {lost} came back",
        heard.stats.recovered
    );
    assert_eq!(heard.stats.invalid, 0);
}
