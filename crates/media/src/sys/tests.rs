//! The batches against each other over loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;

fn receive_all(socket: &impl AsFd, local: SocketAddr, wanted: usize) -> Vec<Vec<u8>> {
    let mut batch = ReceiveBatch::new();
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
    let (a, b) = (
        MediaSocket::bind(bind).unwrap(),
        MediaSocket::bind(bind).unwrap(),
    );
    if gro {
        enable_gro(&b);
    }
    let mut target = b.local();
    if target.ip().is_unspecified() {
        target.set_ip("127.0.0.1".parse().unwrap());
    }
    let from = target.ip();
    let mut out = SendBatch::new(gso && a.probe_gso());
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
    let a = MediaSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let b = MediaSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut out = SendBatch::new(true);
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
    let a = MediaSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let b = MediaSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut out = SendBatch::new(true);
    for to in ["255.255.255.255:9".parse().unwrap(), b.local()] {
        out.room(&a)[..100].fill(1);
        let destination = out.destination(b.local().ip(), to);
        out.commit(100, &destination);
    }
    out.flush(&a);
    assert_eq!(receive_all(&b, b.local(), 1).len(), 1);
    assert_eq!(out.counters().refused, 1);
}

#[test]
fn an_ingest_socket_gets_what_was_sent_at_once_one_by_one_and_in_order() {
    for (gso, gro) in [(false, false), (true, false), (false, true), (true, true)] {
        let a = MediaSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let bind = crate::IngestBind {
            interface: Some("lo".to_owned()),
            ..crate::IngestBind::new(0)
        };
        let b = crate::IngestSocket::bind(bind).unwrap();
        if gro {
            enable_gro(&b);
        }
        let mut out = SendBatch::new(gso && a.probe_gso());
        for n in 0..100u8 {
            let size = if n % 10 == 9 { 300 } else { 1_200 };
            out.room(&a)[..size].fill(n);
            let destination = out.destination(b.local().ip(), b.local());
            out.commit(size, &destination);
        }
        out.flush(&a);
        let got = receive_all(&b, b.local(), 100);
        let order: Vec<u8> = got.iter().map(|datagram| datagram[0]).collect();
        assert_eq!(order, (0..100).collect::<Vec<u8>>(), "gso {gso}, gro {gro}");
    }
}
