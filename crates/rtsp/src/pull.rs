//! Keeps a stream coming.

use std::pin::pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, sleep};

use crate::{Config, Medium, RtspError, Session, Transport};

/// Takes what comes from a server. Media are counted as in what [`Sink::connected`] was told last.
pub trait Sink: Send {
    /// A session plays these.
    fn connected(&mut self, media: &[Medium]);

    /// The session is over, or none came about; it is tried again.
    fn lost(&mut self, error: &RtspError);

    /// An RTP packet, as it came.
    fn packet(&mut self, medium: usize, packet: &[u8]);

    /// What the server's clocks say: NTP time (32.32 bits) and the RTP timestamp at that time.
    fn report(&mut self, medium: usize, ntp: u64, timestamp: u32);

    /// What the server is to be told next of a medium by RTCP: a compound packet (RFC 3550 section 6.1), with keyframe
    /// requests (RFC 4585 section 6.3.1) for example. It is asked for while a session plays.
    fn poll_rtcp(&mut self, _context: &mut Context<'_>) -> Poll<(usize, Vec<u8>)> {
        Poll::Pending
    }
}

/// Pulls until `stop` comes true: `session` to begin with, if there is one, and a new one each time that one ends. Says
/// good-bye to the server at the end.
pub async fn pull<S: Sink + ?Sized>(
    mut config: Config,
    mut session: Option<Session>,
    sink: &mut S,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let wanted = config.transport;
    loop {
        let started = Instant::now();
        let opened = match session.take() {
            Some(session) => Ok(session),
            None => tokio::select! {
                opened = Session::open(&config) => opened,
                () = &mut stop => return,
            },
        };
        match opened {
            Ok(mut session) => {
                sink.connected(session.media());
                let error = tokio::select! {
                    error = session.receive(sink) => error,
                    () = &mut stop => {
                        session.close().await;
                        return;
                    }
                };
                sink.lost(&error);
                if wanted == Transport::UdpThenTcp {
                    // What worked goes on; where nothing came through it is tried the other way.
                    config.transport = match session.is_tcp() == session.was_heard() {
                        true => Transport::Tcp,
                        false => Transport::UdpThenTcp,
                    };
                }
                session.close().await;
            }
            Err(error) => {
                sink.lost(&error);
                config.transport = wanted;
            }
        }
        // A session that held gets its successor at once.
        let pause = config.reconnect_delay.saturating_sub(started.elapsed());
        tokio::select! {
            () = sleep(pause) => {}
            () = &mut stop => return,
        }
    }
}
