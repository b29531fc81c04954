//! Floods of the media plane's UDP sockets.

use std::time::{Duration, Instant};

use rand::Rng;

use crate::call::Call;
use crate::flood::Flood;
use crate::{Options, Tally, address, stun};

/// Different datagrams of a flood.
const KINDS: usize = 1_024;
/// The delay of a caller's own ClientHello after a forged one: between two answers to the forged
/// one.
const LATER: Duration = Duration::from_millis(200);

/// Sends checks with unknown user fragments, with a wrong password for a caller's, and truncated
/// ones.
pub async fn stun(options: &Options) -> Tally {
    let call = Call::negotiate(address(0), options.http).await.unwrap();
    let (name, password) = call.ice();
    let checks = (0..KINDS).map(|n| match n % 4 {
        0 => stun::check(&format!("wrong{n}:{n}"), &password),
        1 => stun::check(&name, &format!("wrong{n}")),
        2 => {
            let check = stun::check(&name, &password);
            check[..check.len() - 1 - n % 60].to_vec()
        }
        _ => {
            let mut damaged = stun::check(&name, &password);
            let at = 28 + n % (damaged.len() - 28);
            damaged[at] ^= 0x40;
            damaged
        }
    });
    let checks: Vec<_> = checks.collect();
    Flood::new().run(call.media(), &checks, options.rate, options.time())
}

/// Sends a caller's valid checks from many addresses, each of which the server must answer and
/// check.
pub async fn checks(options: &Options) -> Tally {
    let call = Call::negotiate(address(0), options.http).await.unwrap();
    let (name, password) = call.ice();
    let checks: Vec<_> = (0..KINDS).map(|_| stun::check(&name, &password)).collect();
    Flood::new().run(call.media(), &checks, options.rate, options.time())
}

/// Sends ClientHellos from addresses that ICE has not verified.
pub fn client_hello(options: &Options) -> Tally {
    let hellos: Vec<_> = (0..KINDS).map(|_| hello()).collect();
    Flood::new().run(options.media, &hellos, options.rate, options.time())
}

/// Connects callers one after the other, with a forged ClientHello for each.
pub async fn forged_hello(options: &Options) -> Tally {
    let (media, rate, time) = (options.media, options.rate, options.time());
    let flood = std::thread::spawn(move || {
        let hellos: Vec<_> = (0..KINDS).map(|_| hello()).collect();
        Flood::new().run(media, &hellos, rate / 2, time)
    });
    let begin = Instant::now();
    let (mut held, mut refused) = (0, 0);
    while begin.elapsed() < time {
        let mut call = Call::negotiate(address(0), options.http).await.unwrap();
        call.peer.forge_hello(hello(), LATER);
        let connecting = tokio::time::timeout(Duration::from_secs(5), call.peer.connect());
        match connecting.await {
            Ok(()) => held += 1,
            Err(_) => refused += 1,
        }
    }
    Tally {
        held,
        refused,
        ..flood.join().unwrap()
    }
}

/// Repeats a caller's packets, damages them, and sends them from another address.
pub async fn srtp(options: &Options) -> Tally {
    let mut call = Call::connect(address(0), options.http).await;
    call.peer.recorded = Some(Vec::new());
    for n in 0..50 {
        for media in 0..2 {
            call.peer.send(media, n * 960, &[7; 200]).await;
        }
        call.peer.run_for(Duration::from_millis(2)).await;
    }
    let recorded = call.peer.recorded.take().unwrap();
    let mut random = rand::rng();
    let damaged = recorded.iter().map(|packet| {
        let mut packet = packet.clone();
        let at = random.random_range(2..packet.len());
        packet[at] ^= 1 << random.random_range(0..8);
        packet
    });
    let both: Vec<_> = damaged.chain(recorded.iter().cloned()).collect();
    let (server, elsewhere, rate, time) =
        (call.media(), both.clone(), options.rate / 2, options.time());
    let flood = std::thread::spawn(move || Flood::new().run(server, &elsewhere, rate, time));
    let begin = Instant::now();
    let (mut sent, mut n) = (0_usize, 50);
    while begin.elapsed() < time {
        let due = begin.elapsed().as_secs_f64() * f64::from(rate);
        while (sent as f64) < due {
            call.peer.send_datagram(&both[sent % both.len()]).await;
            sent += 1;
        }
        // Sound sent meanwhile comes back.
        call.peer.send(0, n * 960, &[7; 200]).await;
        n += 1;
        call.peer.run_for(Duration::from_millis(5)).await;
    }
    let before = call.peer.packets.len();
    call.peer.send(0, n * 960, &[7; 200]).await;
    call.peer
        .run_until(|peer| peer.packets.len() > before)
        .await;
    let mut tally = flood.join().unwrap();
    tally.sent += sent as u64;
    tally.held = 1;
    tally
}

/// Returns an acceptable ClientHello of DTLS 1.2 with a random of its own.
fn hello() -> Vec<u8> {
    let mut body = vec![0xFE, 0xFD];
    body.extend(rand::rng().random::<[u8; 32]>());
    // Neither session nor cookie. ECDHE with ECDSA and AES-128-GCM. No compression.
    body.extend([0, 0, 0, 2, 0xC0, 0x2B, 1, 0]);
    let extensions: [&[u8]; 5] = [
        // supported_groups: secp256r1, and ec_point_formats.
        &[0, 10, 0, 4, 0, 2, 0, 23],
        &[0, 11, 0, 2, 1, 0],
        // signature_algorithms: ecdsa_secp256r1_sha256.
        &[0, 13, 0, 4, 0, 2, 4, 3],
        // extended_master_secret.
        &[0, 23, 0, 0],
        // use_srtp: AEAD_AES_128_GCM.
        &[0, 14, 0, 5, 0, 2, 0, 7, 0],
    ];
    let extensions = extensions.concat();
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let length = (body.len() as u32).to_be_bytes();
    let length = &length[1..];
    let mut message = [&[1], length, &[0, 0, 0, 0, 0], length].concat();
    message.extend(body);
    let mut record = vec![22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0];
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    record
}
