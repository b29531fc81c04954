//! Skipped frames.

use portunus_dsp::{AudioCodec, Channels, Format, IncomingPacket, Played, Receiver, SampleRate};

use crate::call::{Call, PLAIN, opus};
use crate::speech::{RATE, distance, lag, largest_step, speech};

const WIDEBAND: Format = Format {
    rate: SampleRate::Hz16000,
    channels: Channels::Mono,
};

/// Half a second is skipped and half a second played in turn. The played audio equals the original,
/// without a click.
#[test]
fn what_is_played_after_skipping_is_on_time_and_does_not_click() {
    let said = speech(8.0);
    let sent = opus(&said, PLAIN);
    let whole = Call::new(AudioCodec::Opus, WIDEBAND).play(sent.clone());
    let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
    let mut coming = sent.into_iter().peekable();
    let mut heard = Vec::new();
    for tick in 0..400_u64 {
        let now = 7_000 + tick * 20_000;
        while let Some(sent) = coming.next_if(|sent| sent.arrival <= now) {
            call.push(&sent);
        }
        let mut frame = [0.0; 320];
        if tick / 25 % 2 == 1 {
            let played = call.receiver.play(call.at(now), &mut frame);
            assert_eq!(played, Played::Sound { concealed: false }, "tick {tick}");
        } else {
            call.receiver.skip(call.at(now));
        }
        heard.extend_from_slice(&frame);
    }
    let most = largest_step(&whole.samples);
    for start in (25..400).step_by(50) {
        let played = &heard[start * 320..(start + 25) * 320];
        // From the silence before it on.
        let from = start * 320 - 1;
        assert!(
            largest_step(&heard[from..from + 25 * 320]) <= 1.05 * most,
            "a click at {start}"
        );
        let reference = &said[start * 320..];
        let late = lag(&reference[..RATE / 4], played, RATE / 10);
        assert!(late < RATE * 45 / 1_000, "{late} samples late");
        // The first 20 ms fade in.
        let apart = distance(&reference[320..5_000], &played[late + 320..]);
        let apart_whole = distance(
            &reference[320..5_000],
            &whole.samples[start * 320 + late + 320..],
        );
        assert!(
            apart < apart_whole + 1.5,
            "{apart} dB off, {apart_whole} dB without skipping"
        );
    }
}

#[test]
fn the_level_that_is_due_is_that_of_what_is_played() {
    let sent = opus(&speech(4.0), PLAIN);
    let mut call = Call::new(AudioCodec::Opus, WIDEBAND);
    let mut coming = sent.iter().peekable();
    let mut right = 0;
    assert_eq!(call.receiver.due_level(call.start), None);
    for tick in 0..190_u64 {
        let now = 7_000 + tick * 20_000;
        while let Some(sent) = coming.next_if(|sent| sent.arrival <= now) {
            call.receiver.push(&IncomingPacket {
                seq: sent.seq,
                timestamp: sent.timestamp,
                payload: &sent.payload,
                content: sent.content,
                // The number of the packet, so that it can be recognized.
                level: Some((sent.seq % 100) as u8),
                arrival: call.start + std::time::Duration::from_micros(sent.arrival),
            });
        }
        let due = call.receiver.due_level(call.at(now));
        if tick % 40 < 20 {
            call.receiver.play(call.at(now), &mut [0.0; 320]);
        } else {
            call.receiver.skip(call.at(now));
        }
        // The packet that is played now came one or two ticks ago.
        let expected = [tick, tick.wrapping_sub(1)].map(|seq| Some((seq % 100) as u8));
        right += usize::from(expected.contains(&due));
    }
    assert!(right > 180, "{right} of 190");
}

#[test]
fn who_is_never_heard_takes_little() {
    assert!(
        size_of::<Receiver>() < 1_024,
        "{} bytes",
        size_of::<Receiver>()
    );
}
