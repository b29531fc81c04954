//! Send and receive batches over loopback.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use portunus_udp::*;

fn receive_all(socket: &impl AsFd, local: SocketAddr, wanted: usize) -> Vec<Vec<u8>> {
    let mut batch = ReceiveBatch::new(32, ReceiveBatch::WHOLE);
    let mut got = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(5);
    while got.len() < wanted && Instant::now() < deadline {
        let received = batch.receive(socket).unwrap();
        for message in batch.iter(received) {
            if let Some(ip) = message.local.filter(|_| !local.ip().is_unspecified()) {
                assert_eq!(ip, local.ip());
            }
            got.extend(message.data.chunks(message.stride).map(<[u8]>::to_vec));
        }
        std::thread::yield_now();
    }
    got
}

fn exchange(bind: &str, gso: bool, gro: bool) {
    let bind: SocketAddr = bind.parse().unwrap();
    let (a, b) = (Socket::bind(bind).unwrap(), Socket::bind(bind).unwrap());
    if gro {
        enable_gro(&b);
    }
    let mut target = b.local();
    if target.ip().is_unspecified() {
        target.set_ip("127.0.0.1".parse().unwrap());
    }
    let from = target.ip();
    let mut out = SendBatch::new(192 << 10, 256, gso && a.probe_gso());
    let sizes = [1200usize, 1200, 1200, 700, 1200, 1200, 30, 30, 1400];
    for (n, size) in sizes.iter().enumerate() {
        out.room(&a)[..*size].fill(n as u8);
        let destination = out.destination(from, target);
        out.commit(*size, &destination);
    }
    out.flush(&a);
    assert_eq!(out.counters().datagrams, sizes.len() as u64);
    let got = receive_all(&b, b.local(), sizes.len());
    let seen: Vec<(usize, u8)> = got.iter().map(|d| (d.len(), d[0])).collect();
    let sent: Vec<(usize, u8)> = sizes
        .iter()
        .enumerate()
        .map(|(n, s)| (*s, n as u8))
        .collect();
    assert_eq!(seen, sent, "order and sizes are kept");
}

#[test]
fn order_is_kept_with_and_without_segmentation() {
    for gso in [false, true] {
        for gro in [false, true] {
            exchange("127.0.0.1:0", gso, gro);
            exchange("[::]:0", gso, gro);
        }
    }
}

#[test]
fn an_arena_full_of_datagrams_flushes_itself() {
    let a = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let b = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut out = SendBatch::new(192 << 10, 256, true);
    for _ in 0..2_000 {
        out.room(&a)[..1_200].fill(7);
        let destination = out.destination(b.local().ip(), b.local());
        out.commit(1_200, &destination);
    }
    out.flush(&a);
    let counters = out.counters();
    assert_eq!(
        counters.datagrams + counters.dropped + counters.refused,
        2_000
    );
    assert!(counters.calls > 1);
}

#[test]
fn an_unreachable_peer_costs_the_others_nothing() {
    let a = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let b = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut out = SendBatch::new(192 << 10, 256, true);
    for to in ["255.255.255.255:9".parse().unwrap(), b.local()] {
        out.room(&a)[..100].fill(1);
        let destination = out.destination(b.local().ip(), to);
        out.commit(100, &destination);
    }
    out.flush(&a);
    assert_eq!(receive_all(&b, b.local(), 1).len(), 1);
    assert_eq!(out.counters().refused, 1);
    assert!(out.take_error().is_some() && out.take_error().is_none());
}

fn write(batch: &mut SendBatch, bytes: &[u8], to: SocketAddr, socket: &UdpSocket) {
    batch.room(socket)[..bytes.len()].copy_from_slice(bytes);
    let destination = batch.destination(None, to);
    batch.commit(bytes.len(), &destination);
}

fn plain_pair(ip: &str) -> (UdpSocket, UdpSocket, SocketAddr) {
    let receiver = UdpSocket::bind((ip, 0)).unwrap();
    let to = receiver.local_addr().unwrap();
    (UdpSocket::bind((ip, 0)).unwrap(), receiver, to)
}

#[test]
fn plain_sockets_do_as_well_and_the_kernel_chooses_the_address() {
    for ip in ["127.0.0.1", "::1"] {
        let (sender, receiver, to) = plain_pair(ip);
        let sizes = [100, 100, 100, 40, 100, 101, 101, 7, 7, 900];
        let sent: Vec<Vec<u8>> = (0u8..).zip(sizes).map(|(n, size)| vec![n; size]).collect();
        let mut out = SendBatch::new(1 << 16, 64, true);
        for datagram in &sent {
            write(&mut out, datagram, to, &sender);
        }
        assert!(!out.is_empty());
        out.flush(&sender);
        let counters = out.counters();
        assert_eq!((counters.datagrams, counters.calls), (10, 1));
        assert_eq!(counters.bytes, sizes.iter().sum::<usize>() as u64);
        assert_eq!(receive_all(&receiver, to, sent.len()), sent);
    }
}

#[test]
fn a_cut_message_keeps_its_length_and_its_time() {
    let (sender, receiver, to) = plain_pair("127.0.0.1");
    assert!(enable_gro(&receiver) && enable_timestamps(&receiver));
    let mut out = SendBatch::new(1 << 16, 64, true);
    for n in 0..7 {
        write(&mut out, &[n; 1_200], to, &sender);
    }
    out.flush(&sender);
    let mut batch = ReceiveBatch::cutting(4, 12);
    let (mut datagrams, mut bytes) = (0, 0);
    let deadline = Instant::now() + Duration::from_secs(10);
    while datagrams < 7 && Instant::now() < deadline {
        let received = batch.receive(&receiver).unwrap();
        for message in batch.iter(received) {
            assert_eq!(message.data.len(), 12);
            assert_eq!(message.remote, sender.local_addr().unwrap());
            assert!(message.at.is_some());
            datagrams += message.count();
            bytes += message.len;
        }
    }
    assert_eq!((datagrams, bytes), (7, 8_400));
}

#[test]
fn what_there_is_no_room_for_is_left_out() {
    let (sender, receiver, to) = plain_pair("127.0.0.1");
    sender.send_to(&[1; 300], to).unwrap();
    sender.send_to(&[2; 100], to).unwrap();
    let mut batch = ReceiveBatch::new(4, 200);
    let mut got = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while got.is_empty() && Instant::now() < deadline {
        let received = batch.receive(&receiver).unwrap();
        got.extend(batch.iter(received).map(|message| message.data.to_vec()));
    }
    assert_eq!(got, [vec![2; 100]]);
}

#[test]
fn a_batch_is_full_at_its_bytes_and_at_its_messages() {
    let (sender, _receiver, to) = plain_pair("127.0.0.1");
    let mut out = SendBatch::new(2 * DATAGRAM_BYTES, 8, true);
    write(&mut out, &[0; DATAGRAM_BYTES], to, &sender);
    assert!(!out.is_full());
    write(&mut out, &[0; 10], to, &sender);
    assert!(out.is_full());
    let mut out = SendBatch::new(1 << 16, 2, true);
    write(&mut out, &[0; 10], to, &sender);
    write(&mut out, &[0; 11], to, &sender);
    assert!(out.is_full());
    write(&mut out, &[0; 12], to, &sender);
    assert_eq!(out.counters().calls, 1, "room was made");
}

#[test]
fn what_was_parted_is_not_joined() {
    let (sender, receiver, to) = plain_pair("127.0.0.1");
    assert!(enable_gro(&receiver));
    let mut out = SendBatch::new(1 << 16, 4, true);
    for _ in 0..2 {
        write(&mut out, &[1; 100], to, &sender);
        write(&mut out, &[1; 100], to, &sender);
        out.part();
    }
    out.flush(&sender);
    assert_eq!(out.counters().datagrams, 4);
    let mut batch = ReceiveBatch::new(4, ReceiveBatch::WHOLE);
    let mut lengths = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while lengths.len() < 2 && Instant::now() < deadline {
        let received = batch.receive(&receiver).unwrap();
        lengths.extend(batch.iter(received).map(|message| message.len));
    }
    assert_eq!(lengths, [200, 200]);
}
