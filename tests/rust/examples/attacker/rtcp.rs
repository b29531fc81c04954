//! A storm of RTCP by a legitimate caller.

use std::time::{Duration, Instant};

use rand::Rng;

use crate::call::Call;
use crate::{Options, Tally, address};

/// RTCP packets per second at most, since each is sealed anew.
const RATE: u32 = 10_000;

/// Sends requests for keyframes and packets, rates, ends and random bytes about all that the server
/// sends.
pub async fn storm(options: &Options) -> Tally {
    let mut call = Call::connect(address(0), options.http).await;
    let rate = options.rate.min(RATE);
    let ssrcs = call.ssrcs();
    let begin = Instant::now();
    let (mut sent, mut n) = (0_u64, 0_u32);
    while begin.elapsed() < options.time() {
        // Packets for which retransmissions can be requested.
        call.peer.send(0, n * 960, &[7; 100]).await;
        call.peer.send(1, n * 1_800, &[0x10, 0, 0, 1, 2, 3]).await;
        n += 1;
        let due = begin.elapsed().as_secs_f64() * f64::from(rate);
        while (sent as f64) < due {
            let about = ssrcs.get(sent as usize % ssrcs.len().max(1));
            let rtcp = packet(sent, about.copied().unwrap_or(1), n);
            call.peer.send_rtcp(&rtcp).await;
            sent += 1;
        }
        call.peer.run_for(Duration::from_millis(5)).await;
    }
    // A caller that said goodbye may still talk: BYE ends only a stream.
    let before = call.peer.packets.len();
    call.peer.send(0, n * 960, &[7; 100]).await;
    call.peer
        .run_until(|peer| peer.packets.len() > before)
        .await;
    Tally {
        sent,
        held: 1,
        ..Tally::default()
    }
}

/// Returns a kind of RTCP about the stream `about`.
fn packet(n: u64, about: u32, packets: u32) -> Vec<u8> {
    let head = |count: u8, kind: u8, words: usize| {
        let [high, low] = (words as u16).to_be_bytes();
        vec![0x80 | count, kind, high, low, 0, 0, 0, 1]
    };
    let about = about.to_be_bytes();
    let numbered = (packets as u16).to_be_bytes();
    match n % 7 {
        // PLI, FIR.
        0 => [head(1, 206, 2), about.to_vec()].concat(),
        1 => [
            head(4, 206, 4),
            vec![0; 4],
            about.to_vec(),
            vec![n as u8, 0, 0, 0],
        ]
        .concat(),
        // NACK of about a thousand packets.
        2 => {
            let asked = (0..250_u16).flat_map(|at| {
                let from = u16::from_be_bytes(numbered).wrapping_sub(at * 17);
                [from.to_be_bytes(), [0xFF; 2]].concat()
            });
            [head(1, 205, 252), about.to_vec(), asked.collect()].concat()
        }
        // REMB of 1 bit/s.
        3 => {
            let remb = [b"REMB", &[1, 0, 0, 1][..], &about].concat();
            [head(15, 206, 5), vec![0; 4], remb].concat()
        }
        // BYE of the stream that the server sends.
        4 => {
            let mut bye = head(1, 203, 1);
            bye[4..].copy_from_slice(&about);
            bye
        }
        // A compound of reports about unknown streams.
        5 => {
            let report = [head(1, 201, 7), rand::rng().random::<[u8; 24]>().to_vec()].concat();
            report.repeat(30)
        }
        // Invalid lengths and types.
        _ => {
            let mut rubbish = head(31, 200 + (n % 12) as u8, (n % 300) as usize);
            rubbish.extend(rand::rng().random::<[u8; 32]>());
            rubbish
        }
    }
}
