//! The control of a sender that is being recorded: its bitrate, and its keyframes.

use std::time::Duration;

use portunus_core::{Handle, Mid};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::requests::Settings;

/// The steps up to the highest bitrate, as divisors of it.
const RAMP: [u64; 4] = [4, 3, 2, 1];

/// The duration of a step.
const STEP: Duration = Duration::from_millis(100);

/// Controls a sender until it is dropped.
#[derive(Debug)]
pub(crate) struct Director(AbortHandle);

impl Director {
    /// Controls the video that the client of `handle` sends on m-line `video`, by the present
    /// settings.
    pub(crate) fn start(handle: Handle, video: Mid, settings: watch::Receiver<Settings>) -> Self {
        Self(tokio::spawn(direct(handle, video, settings)).abort_handle())
    }
}

impl Drop for Director {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn direct(handle: Handle, video: Mid, mut settings: watch::Receiver<Settings>) {
    for share in RAMP {
        let bitrate = settings.borrow_and_update().bitrate;
        limit(&handle, bitrate / share);
        sleep(STEP).await;
    }
    loop {
        let Settings { bitrate, keyframes } = *settings.borrow_and_update();
        limit(&handle, bitrate);
        let asks = async {
            match keyframes.is_zero() {
                true => std::future::pending().await,
                false => sleep(keyframes).await,
            }
        };
        tokio::select! {
            changed = settings.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = asks => handle.request_keyframe_on(video),
        }
    }
}

fn limit(handle: &Handle, bitrate: u64) {
    handle.set_bitrate((bitrate > 0).then_some(bitrate));
}
