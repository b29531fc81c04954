//! Pulls in tests: the calls of the sink, and the stop.

use std::time::Duration;

use portunus_rtp::Header;
use portunus_rtsp::{Config, Medium, MediumKind, RtspError, Session, Sink, pull};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A call of the sink.
#[derive(Debug, PartialEq)]
pub enum Told {
    Connected(Vec<MediumKind>),
    Lost(String),
    Packet(usize, u8),
    Report(usize),
}

/// Passes on the calls, as many as fit.
struct Listener(mpsc::Sender<Told>);

impl Sink for Listener {
    fn connected(&mut self, media: &[Medium]) {
        let kinds = media.iter().map(|medium| medium.kind).collect();
        let _ = self.0.try_send(Told::Connected(kinds));
    }

    fn lost(&mut self, error: &RtspError) {
        let _ = self.0.try_send(Told::Lost(error.to_string()));
    }

    fn packet(&mut self, medium: usize, packet: &[u8]) {
        let pt = Header::parse(packet).unwrap().pt.0;
        let _ = self.0.try_send(Told::Packet(medium, pt));
    }

    fn report(&mut self, medium: usize, _ntp: u64, _timestamp: u32) {
        let _ = self.0.try_send(Told::Report(medium));
    }
}

/// A pull in the background, with the calls of its sink and its stop.
pub struct Pull {
    told: mpsc::Receiver<Told>,
    stop: Option<oneshot::Sender<()>>,
    done: tokio::task::JoinHandle<()>,
}

impl Pull {
    pub fn start(config: Config) -> Self {
        let (sender, told) = mpsc::channel(100_000);
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            pull(config, None, &mut Listener(sender), stopped).await;
        });
        Self {
            told,
            stop: Some(stop),
            done,
        }
    }

    /// Waits for a call for which `is_it` is true.
    pub async fn until(&mut self, what: &str, is_it: impl Fn(&Told) -> bool) -> Told {
        let mut last_error = String::new();
        let waiting = async {
            loop {
                let told = self.told.recv().await.expect("pulls on");
                if let Told::Lost(error) = &told {
                    last_error.clone_from(error);
                }
                if is_it(&told) {
                    return told;
                }
            }
        };
        let waited = timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{what} did not come: {last_error}"))
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        timeout(PATIENCE, self.done).await.expect("stops").unwrap();
    }
}

pub async fn refusal(config: &Config) -> RtspError {
    let opening = timeout(PATIENCE, Session::open(config)).await;
    opening
        .expect("every wait has an end")
        .expect_err("refused")
}
