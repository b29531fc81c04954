#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::os::fd::AsFd;

use super::*;
use crate::socket::set_option;
use crate::{ReceiveBatch, Socket};

/// Does what sendmmsg does with a header, through its pointers: Miri checks them.
fn play_kernel(header: &libc::mmsghdr) -> (SocketAddr, Vec<u8>) {
    let message = &header.msg_hdr;
    // SAFETY: the header was prepared just before, and its buffers live.
    unsafe {
        let address = &*message.msg_name.cast::<RawAddress>();
        let iovec = &*message.msg_iov;
        let data = std::slice::from_raw_parts(iovec.iov_base.cast::<u8>(), iovec.iov_len);
        let control =
            std::slice::from_raw_parts(message.msg_control.cast::<u8>(), message.msg_controllen);
        assert_eq!(control.is_empty(), iovec.iov_len < 8);
        (address::read(address).unwrap(), data.to_vec())
    }
}

/// An outlet with any open file.
struct Open(io::Stdin);

impl Outlet for Open {
    fn exit(&self, _: Option<IpAddr>) -> Exit<'_> {
        Exit {
            fd: self.0.as_fd(),
            dual: false,
            is_bound: false,
        }
    }
}

#[test]
fn headers_point_to_what_was_committed() {
    let mut batch = SendBatch::new(4 << 10, 8, true);
    let to: [SocketAddr; 2] = [
        "192.0.2.1:7".parse().unwrap(),
        "[2001:db8::1]:8".parse().unwrap(),
    ];
    for _ in 0..2 {
        // Two that are joined, and one to another address.
        for (n, to) in [to[0], to[0], to[1]].into_iter().enumerate() {
            let used = batch.used;
            batch.arena[used..used + 5].fill(n as u8);
            let destination = batch.destination(None, to);
            batch.commit(5, &destination);
        }
        let open = Open(io::stdin());
        assert_eq!(batch.prepare(0, open.exit(None), &open), 2);
        let joined = play_kernel(&batch.headers[0]);
        assert_eq!(joined, (to[0], vec![0, 0, 0, 0, 0, 1, 1, 1, 1, 1]));
        assert_eq!(play_kernel(&batch.headers[1]), (to[1], vec![2; 5]));
        batch.runs.clear();
        batch.used = 0;
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs the network")]
fn what_the_kernel_refuses_to_join_leaves_one_by_one_and_in_order() {
    let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (a, b) = (bind(), bind());
    // It seems to join at first, but Linux has no UDP_SEGMENT with checksums off.
    let mut out = SendBatch::new(64 << 10, 64, true);
    set_option(&a, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    let sizes = [500_usize, 500, 500, 20, 700, 700, 10];
    for round in 0..2 {
        for (n, size) in sizes.iter().enumerate() {
            out.room(&a)[..*size].fill((round * 10 + n) as u8);
            let destination = out.destination(None, b.local());
            out.commit(*size, &destination);
        }
        out.flush(&a);
    }
    let counters = out.counters();
    assert_eq!(
        (counters.datagrams, counters.refused, counters.dropped),
        (14, 0, 0)
    );
    let mut batch = ReceiveBatch::new(32, ReceiveBatch::WHOLE);
    let mut got = Vec::new();
    while got.len() < 14 {
        let received = batch.receive(&b).unwrap();
        for message in batch.iter(received) {
            got.push((message.data.len(), usize::from(message.data[0])));
        }
    }
    let sent = (0..2).flat_map(|round| (0..7).map(move |n| (sizes[n], round * 10 + n)));
    assert!(got.into_iter().eq(sent));
}

/// Sends two datagrams that can be joined. Returns the number of runs.
fn send_two(out: &mut SendBatch, socket: &Socket, to: SocketAddr) -> u64 {
    let before = out.counters().calls;
    for _ in 0..2 {
        out.room(socket)[..100].fill(7);
        let destination = out.destination(None, to);
        out.commit(100, &destination);
    }
    let runs = out.runs.len();
    out.flush(socket);
    assert_eq!(out.counters().calls - before, 1);
    runs as u64
}

#[test]
#[cfg_attr(miri, ignore = "needs the network")]
fn a_few_refusals_end_no_joining_and_many_end_it_for_a_while() {
    let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (a, b) = (bind(), bind());
    let mut out = SendBatch::new(64 << 10, 64, true);
    let refuse = |refuse| {
        set_option(&a, libc::SOL_SOCKET, libc::SO_NO_CHECK, i32::from(refuse)).unwrap();
    };
    for _ in 0..3 {
        refuse(true);
        for _ in 1..REFUSALS {
            assert_eq!(send_two(&mut out, &a, b.local()), 1, "still joined");
        }
        refuse(false);
        assert_eq!(send_two(&mut out, &a, b.local()), 1);
    }
    refuse(true);
    for _ in 0..REFUSALS {
        send_two(&mut out, &a, b.local());
    }
    refuse(false);
    for _ in 1..RETRY {
        assert_eq!(send_two(&mut out, &a, b.local()), 2, "each by itself");
    }
    assert_eq!(send_two(&mut out, &a, b.local()), 1, "tried again");
    let counters = out.counters();
    assert_eq!((counters.refused, counters.dropped), (0, 0));
}

#[test]
#[cfg_attr(miri, ignore = "needs the network")]
fn a_destination_without_a_path_ends_no_joining() {
    let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (a, b) = (bind(), bind());
    let mut out = SendBatch::new(64 << 10, 64, true);
    // Nothing leaves the machine from a loopback address.
    let nowhere = "192.0.2.1:7".parse().unwrap();
    let rounds = u64::from(2 * REFUSALS);
    for _ in 0..rounds {
        for _ in 0..2 {
            out.room(&a)[..100].fill(7);
            let destination = out.destination(None, nowhere);
            out.commit(100, &destination);
        }
        out.flush(&a);
    }
    assert_eq!(out.counters().refused, 2 * rounds);
    assert_eq!(send_two(&mut out, &a, b.local()), 1, "still joined");
}

#[test]
fn only_runs_of_the_destination_that_was_refused_are_cut_up() {
    let mut batch = SendBatch::new(4 << 10, 8, true);
    let to: [SocketAddr; 2] = [
        "192.0.2.1:7".parse().unwrap(),
        "192.0.2.2:7".parse().unwrap(),
    ];
    for to in [to[0], to[0], to[1], to[1], to[0], to[0]] {
        let destination = batch.destination(None, to);
        batch.commit(5, &destination);
    }
    assert_eq!(batch.runs.len(), 3);
    batch.split(0, Some(batch.runs[0].destination));
    let runs: Vec<_> = batch
        .runs
        .iter()
        .map(|r| (r.start, r.len, r.count))
        .collect();
    assert_eq!(
        runs,
        [(0, 5, 1), (5, 5, 1), (10, 10, 2), (20, 5, 1), (25, 5, 1)]
    );
}

#[test]
#[cfg_attr(miri, ignore = "needs the network")]
fn what_belongs_together_leaves_together() {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let other = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut batch = SendBatch::new(16 << 10, 8, true);
    let to = batch.destination(None, other.local());
    let fill = |batch: &mut SendBatch, count| {
        for _ in 0..count {
            batch.room(&socket)[..1_000].fill(1);
            batch.commit(1_000, &to);
        }
    };
    fill(&mut batch, 10);
    batch.keep_together(4_000, &socket);
    assert!(!batch.is_empty(), "they fit beside the others");
    batch.keep_together(5_000, &socket);
    assert!(batch.is_empty());
    fill(&mut batch, 2);
    batch.keep_together(1 << 20, &socket);
    assert!(!batch.is_empty(), "no arena is large enough for these");
}
