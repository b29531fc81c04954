//! The receiver of the servers' webhooks, which counts events.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde::de::IgnoredAny;

use crate::machine::{LOAD_IP, Link, in_thread, pin_to};
use crate::record::Webhook;

/// The port for events.
pub(super) const PORT: u16 = 9_099;

/// The port on which requests are read but never answered.
pub(super) const HANGING_PORT: u16 = 9_098;

/// The longest request: a webhook of Portunus sends at most about 1 MiB.
const MOST_BYTES: u64 = 16 << 20;

/// A backend for webhooks, which runs until the program ends.
pub(super) struct Sink {
    taken: Arc<Mutex<Webhook>>,
}

impl Sink {
    /// Listens on the load's side, and runs on its cores.
    pub(super) fn start(link: &Link, cores: &[usize]) -> io::Result<Self> {
        let taken = Arc::default();
        for (port, answers) in [(PORT, true), (HANGING_PORT, false)] {
            let listener = in_thread(|| {
                link.load.enter()?;
                TcpListener::bind((LOAD_IP, port))
            })?;
            let (taken, cores) = (Arc::clone(&taken), cores.to_vec());
            thread::spawn(move || accept(&listener, &cores, answers, &taken));
        }
        Ok(Sink { taken })
    }

    /// Returns the events since the last call.
    pub(super) fn take(&self) -> Webhook {
        std::mem::take(&mut self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn accept(listener: &TcpListener, cores: &[usize], answers: bool, taken: &Arc<Mutex<Webhook>>) {
    // On other cores the figures are slightly better, and still valid.
    let _ = pin_to(cores);
    for stream in listener.incoming().flatten() {
        let taken = Arc::clone(taken);
        // The server reconnects after a broken connection.
        thread::spawn(move || serve(stream, answers, &taken));
    }
}

/// Takes one request after the other until the connection ends.
fn serve(stream: TcpStream, answers: bool, taken: &Mutex<Webhook>) -> io::Result<()> {
    let mut answer = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    while let Some(body) = request(&mut requests)? {
        let events = serde_json::from_slice::<Vec<IgnoredAny>>(&body);
        {
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.requests += 1;
            taken.bytes += body.len() as u64;
            taken.events += events.map_or(1, |events| events.len() as u64);
        }
        if answers {
            answer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        }
    }
    Ok(())
}

/// Returns the body of the next request, or `None` at the end.
fn request(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length: u64 = 0;
    loop {
        let mut line = String::new();
        if from.by_ref().take(MOST_BYTES).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = Vec::new();
    from.take(length.min(MOST_BYTES)).read_to_end(&mut body)?;
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn requests_are_read_one_after_the_other() {
        let text = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n[1,2]POST / HTTP/1.1\r\n\r\n";
        let mut from = &text[..];
        assert_eq!(request(&mut from).unwrap().unwrap(), b"[1,2]");
        assert_eq!(request(&mut from).unwrap().unwrap(), b"");
        assert_eq!(request(&mut from).unwrap(), None);
        let wrong = b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n";
        assert!(request(&mut &wrong[..]).is_err());
    }
}
