//! Passes TCP connections to the worker of their peer: one worker accepts for all that share a
//! port.

use std::time::Instant;

use portunus_rtc::framing::frame_head;
use portunus_rtc::stun_username;

use super::Worker;
use super::pipe::{Pipe, PipeKey};
use super::pipes::Refused;
use crate::command::{Command, NetworkCommand, PassedConnection};

impl Worker {
    /// Returns the other worker whose peer a check names.
    pub(super) fn other_worker_of(&self, frame: &[u8]) -> Option<u16> {
        let ufrag = stun_username(frame)?;
        match self.peers.by_ufrag(ufrag) {
            Some(_) => None,
            None => self.peers.other_worker(ufrag),
        }
    }

    /// Passes a connection to another worker, with its first frame and what was read after that.
    pub(super) fn pass_pipe(&mut self, key: PipeKey, worker: u16, (frame, rest): (&[u8], &[u8])) {
        let registry = self.poller.registry();
        let head = frame_head(frame.len()).unwrap_or_default();
        match self.network.pipes.take_out(key, registry) {
            Ok(pipe) => {
                let passed = PassedConnection {
                    remote: pipe.path.remote,
                    stream: pipe.stream,
                    bytes: [&head, frame, rest].concat(),
                };
                let passed = Command::Network(NetworkCommand::TakePipe(Box::new(passed)));
                self.others.send(worker, passed);
            }
            Err(error) => {
                tracing::debug!(worker = self.others.index(), %error, "cannot pass a TCP connection on");
                self.network.pipes.refused(Refused::System);
            }
        }
    }

    /// Takes a connection that another worker has accepted.
    pub(in crate::worker) fn take_passed_pipe(&mut self, passed: PassedConnection, now: Instant) {
        let PassedConnection {
            stream,
            remote,
            mut bytes,
        } = passed;
        if let Some(key) = self.add_pipe(Pipe::new(stream, remote, now), remote) {
            // The rest is read in this turn.
            let _ = self.take_bytes(key, &mut bytes, now);
        }
    }
}
