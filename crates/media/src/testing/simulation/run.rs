//! The passing of time in a simulation: datagrams arrive, and clients and workers have their turns.

use std::time::Duration;

use super::{Simulation, TICK, UP, Who, worker_of};
use crate::Event;
use crate::testing::bare::Bare;

impl Simulation {
    /// Runs for some seconds of virtual time.
    pub fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.now += TICK;
            self.deliver_down();
            self.serve_clients();
            for index in 0..self.workers.len() {
                self.turn(index);
            }
            self.hear_events();
            for link in &mut self.links {
                let delay = link.bottleneck.queue_delay(self.now);
                link.queue.push((self.now, delay));
            }
        }
    }

    /// Runs a turn of a worker.
    fn turn(&mut self, index: usize) {
        self.collect_up(index);
        self.take_turn(index);
        self.take_of_node(index);
        let worker = &mut self.workers[index].worker;
        for (to, datagram) in worker.take_kept() {
            if let Some(client) = self.clients.get(&to) {
                let link = &mut self.links[client.link];
                let bytes = bytes_on_link(&datagram);
                link.bottleneck.send(self.now, bytes, (to, datagram));
            }
        }
    }

    fn take_turn(&mut self, index: usize) {
        let Bare { worker, .. } = &mut self.workers[index];
        let now = self.now;
        (self.at_work)(true);
        let passed = worker.count_passed();
        worker.take_commands(now);
        let _ = worker.take_passed(&passed, now);
        worker.take_handshakes(now);
        (self.at_work)(false);
        self.deliver_to_node(index);
        let Bare { worker, local, .. } = &mut self.workers[index];
        for (from, datagram) in self.due.iter_mut().filter(|(_, data)| is_check(data)) {
            worker.take_datagram(now, *local, *from, datagram);
        }
        (self.at_work)(true);
        for (from, datagram) in self.due.iter_mut().filter(|(_, data)| !is_check(data)) {
            worker.take_datagram(now, *local, *from, datagram);
        }
        worker.relay_fresh(now);
        worker.run_timers(now);
        worker.poll_touched(now);
        (self.at_work)(false);
    }

    fn deliver_down(&mut self) {
        for link in &mut self.links {
            while let Some((to, mut datagram)) = link.bottleneck.receive(self.now) {
                let server = self.workers[worker_of(to)].local;
                match self.clients.get(&to).map(|client| client.who) {
                    Some(Who::Camera(index)) => {
                        self.cameras[index].receive(self.now, server, &mut datagram);
                    }
                    Some(Who::Watcher(index)) => {
                        self.watchers[index].receive(self.now, server, &mut datagram);
                    }
                    None => {}
                }
            }
        }
    }

    fn serve_clients(&mut self) {
        let (now, arrives) = (self.now, self.now + UP);
        let mut buf = [0; 2_048];
        for camera in &mut self.cameras {
            let address = camera.side.config.candidates[0].base;
            let transport = &mut camera.side.transport;
            if transport.poll_timeout().is_some_and(|at| at <= now) {
                transport.handle_timeout(now);
            }
            while let Some(transmit) = transport.poll_transmit(&mut buf) {
                let datagram = buf[..transmit.len].to_vec();
                self.up.push_back((arrives, address, datagram));
            }
            while transport.poll_event().is_some() {}
            if transport.is_connected() {
                let filmed = camera.film(now);
                self.up
                    .extend(filmed.into_iter().map(|d| (arrives, address, d)));
            }
        }
        for watcher in &mut self.watchers {
            let connection = &mut watcher.connection;
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(transmit) = connection.poll_transmit(now, &mut buf) {
                if !watcher.mute {
                    let datagram = buf[..transmit.len].to_vec();
                    self.up.push_back((arrives, watcher.address, datagram));
                }
            }
            while connection.poll_feedback().is_some() {}
            while connection.transport.poll_event().is_some() {}
        }
    }

    /// Collects the datagrams that have arrived for a worker.
    fn collect_up(&mut self, index: usize) {
        self.due.clear();
        let arrived = self.up.partition_point(|(at, ..)| *at <= self.now);
        self.up.make_contiguous()[..arrived].sort_by_key(|(_, from, _)| worker_of(*from) != index);
        while let Some((at, from, _)) = self.up.front()
            && *at <= self.now
            && worker_of(*from) == index
            && let Some((_, from, datagram)) = self.up.pop_front()
        {
            self.due.push((from, datagram));
        }
    }

    fn hear_events(&mut self) {
        for bare in &mut self.workers {
            while let Ok(event) = bare.events.try_recv() {
                let (route, layer) = match event.event {
                    Event::Layer { route, layer, .. } => (route, layer),
                    Event::Media { .. } | Event::SlowLink { .. } | Event::Paused { .. } => {
                        self.heard.push((self.now, event.event));
                        continue;
                    }
                    _ => continue,
                };
                let watcher = self.watchers.iter_mut();
                for watcher in watcher.filter(|w| w.routes[0] == route) {
                    watcher.told.push((self.now, layer));
                }
            }
        }
    }
}

/// Whether a datagram is a check of ICE, by its first byte (RFC 7983).
fn is_check(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| *first < 4)
}

/// The size of a datagram on a link. Signatures vary in length from run to run, so handshakes of
/// DTLS count as the longest datagram: the same seed gives the same simulation.
fn bytes_on_link(datagram: &[u8]) -> usize {
    const HANDSHAKE: usize = 1_000;
    let is_dtls = datagram
        .first()
        .is_some_and(|first| (20..64).contains(first));
    if is_dtls { HANDSHAKE } else { datagram.len() }
}
