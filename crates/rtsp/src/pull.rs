//! Keeps a stream coming.

use std::pin::pin;

use tokio::time::{Instant, sleep};

use crate::{Config, Session, Sink, Transport};

/// Pulls until `stop` completes: from `session` first, if there is one, and from a new session
/// after each end. Closes the last session.
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
                    // A transport that worked stays. One without packets is replaced by the other.
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
