//! The cost of sending from a dedicated socket ([`Socket::send_apart`]), compared with sending from
//! the socket that is polled for input: both in turn, for four seconds each. Messages are four
//! datagrams of 1,041 bytes, to 2,000 addresses on the loopback interface.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use portunus_udp::{SendBatch, Socket};

/// The time of each before the other's turn.
const TURN: Duration = Duration::from_millis(20);
const ROUNDS: u32 = 210;
/// The rounds that do not count.
const WARM_UP: u32 = 10;

struct Way {
    name: &'static str,
    socket: Socket,
    poll: Poll,
    out: SendBatch,
    spent: Duration,
    messages: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    // Its buffer fills up, and the kernel drops the rest.
    let receiver = Socket::bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let port = receiver.local().port();
    let address = |n: u8| move |m: u8| SocketAddr::from(([127, 1, n, m], port));
    let to: Vec<SocketAddr> = (0..10).flat_map(|n| (1..=200).map(address(n))).collect();
    let mut ways = [way("the same", false)?, way("apart", true)?];
    for round in 0..ROUNDS {
        for way in &mut ways {
            take_turn(way, &to, round >= WARM_UP)?;
        }
    }
    let costs = ways.each_ref().map(|way| way.spent / way.messages.max(1));
    for (way, cost) in ways.iter().zip(costs) {
        println!("{:>8}: {cost:?} a message", way.name);
    }
    let [same, apart] = costs.map(|cost| cost.as_secs_f64());
    println!("   ratio: {:.3}", apart / same);
    Ok(())
}

fn way(name: &'static str, apart: bool) -> Result<Way, Box<dyn Error>> {
    let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    if apart && socket.send_apart([Ipv4Addr::LOCALHOST.into()]) == 0 {
        return Err("the kernel gives no second socket".into());
    }
    let poll = Poll::new()?;
    let fd = socket.raw_fd();
    let mut source = SourceFd(&fd);
    poll.registry()
        .register(&mut source, Token(0), Interest::READABLE)?;
    Ok(Way {
        name,
        out: SendBatch::new(192 << 10, 256, socket.probe_gso()),
        socket,
        poll,
        spent: Duration::ZERO,
        messages: 0,
    })
}

fn take_turn(way: &mut Way, to: &[SocketAddr], counts: bool) -> Result<(), Box<dyn Error>> {
    let mut ready = Events::with_capacity(1);
    let (began, mut messages) = (Instant::now(), 0);
    while began.elapsed() < TURN {
        for to in to {
            let destination = way.out.destination(way.socket.local().ip(), *to);
            for _ in 0..4 {
                way.out.room(&way.socket);
                way.out.commit(1_041, &destination);
            }
            messages += 1;
        }
        way.out.flush(&way.socket);
        way.poll.poll(&mut ready, Some(Duration::ZERO))?;
    }
    if counts {
        way.spent += began.elapsed();
        way.messages += messages;
    }
    Ok(())
}
