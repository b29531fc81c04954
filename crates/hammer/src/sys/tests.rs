#![allow(clippy::unwrap_used)]
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::{ReceiveBatch, SendBatch};

fn pair(ip: &str) -> (UdpSocket, UdpSocket, SocketAddr) {
    let receiver = UdpSocket::bind((ip, 0)).unwrap();
    let to = receiver.local_addr().unwrap();
    (UdpSocket::bind((ip, 0)).unwrap(), receiver, to)
}

fn write(batch: &mut SendBatch, bytes: &[u8], to: SocketAddr) {
    batch.room(bytes.len()).unwrap().copy_from_slice(bytes);
    batch.commit(bytes.len(), to);
}

/// Receives `wanted` datagrams; gives up after some seconds.
fn receive(socket: &UdpSocket, wanted: usize) -> Vec<Vec<u8>> {
    let mut batch = ReceiveBatch::new(8, ReceiveBatch::WHOLE);
    let mut all = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while all.len() < wanted && Instant::now() < deadline {
        let received = batch.receive(socket).unwrap();
        for mut message in batch.iter(received) {
            assert_eq!(message.len, message.data.len());
            all.extend(message.datagrams().map(|datagram| datagram.to_vec()));
        }
    }
    all
}

#[test]
fn order_and_sizes_are_kept_joined_or_not() {
    for ip in ["127.0.0.1", "::1"] {
        for (joined, gro) in [(true, true), (true, false), (false, true), (false, false)] {
            let (sender, receiver, to) = pair(ip);
            if gro {
                assert!(ReceiveBatch::join(&receiver));
            }
            let sizes = [100, 100, 100, 40, 100, 101, 101, 7, 7, 900];
            let sent: Vec<Vec<u8>> = (0u8..).zip(sizes).map(|(n, size)| vec![n; size]).collect();
            let mut batch = SendBatch::new(1 << 16, 64, joined);
            for datagram in &sent {
                write(&mut batch, datagram, to);
            }
            let flushed = batch.flush(&sender).unwrap();
            assert_eq!((flushed.datagrams, flushed.calls), (10, 1));
            assert_eq!(flushed.bytes, sizes.iter().sum::<usize>() as u64);
            assert_eq!(receive(&receiver, sent.len()), sent, "{ip} {joined} {gro}");
        }
    }
}

#[test]
fn little_room_still_gives_the_whole_length() {
    let (sender, receiver, to) = pair("127.0.0.1");
    assert!(ReceiveBatch::join(&receiver) && ReceiveBatch::stamp(&receiver));
    let mut batch = SendBatch::new(1 << 16, 64, true);
    for n in 0..7 {
        write(&mut batch, &[n; 1_200], to);
    }
    batch.flush(&sender).unwrap();
    let mut batch = ReceiveBatch::new(4, 12);
    let (mut datagrams, mut bytes) = (0, 0);
    let deadline = Instant::now() + Duration::from_secs(10);
    while datagrams < 7 && Instant::now() < deadline {
        let received = batch.receive(&receiver).unwrap();
        for message in batch.iter(received) {
            assert_eq!(message.data.len(), 12);
            assert_eq!(message.from, Some(sender.local_addr().unwrap()));
            assert!(message.at.is_some());
            datagrams += message.count();
            bytes += message.len;
        }
    }
    assert_eq!((datagrams, bytes), (7, 8_400));
}

#[test]
fn a_full_batch_gives_no_room() {
    let to = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut batch = SendBatch::new(1_000, 2, true);
    assert!(batch.room(1_001).is_none());
    write(&mut batch, &[0; 10], to);
    write(&mut batch, &[0; 11], to);
    assert!(batch.room(1).is_none(), "two runs are the most");
    assert!(!batch.is_empty());
}

#[test]
fn what_was_parted_is_not_joined() {
    let (sender, receiver, to) = pair("127.0.0.1");
    assert!(ReceiveBatch::join(&receiver));
    let mut batch = SendBatch::new(1_000, 4, true);
    for _ in 0..2 {
        write(&mut batch, &[1; 100], to);
        write(&mut batch, &[1; 100], to);
        batch.part();
    }
    assert_eq!(batch.flush(&sender).unwrap().datagrams, 4);
    let mut batch = ReceiveBatch::new(4, ReceiveBatch::WHOLE);
    let mut lengths = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while lengths.len() < 2 && Instant::now() < deadline {
        let received = batch.receive(&receiver).unwrap();
        lengths.extend(batch.iter(received).map(|message| message.len));
    }
    assert_eq!(lengths, [200, 200]);
}
