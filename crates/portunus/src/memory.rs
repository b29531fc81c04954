//! Memory goes back to the system after many have left.

use std::convert::Infallible;
use std::time::Duration;

use portunus_media::MediaPlane;
use portunus_udp::give_back_memory;
use tokio::time::interval;

/// How often the number of peers is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Fewer than so many that have left are not worth it: about 3 MB.
const WORTHWHILE: u64 = 100;

/// Does so as long as it is polled.
pub(crate) async fn give_back(media: MediaPlane) -> Infallible {
    let mut ebb = Ebb::default();
    let mut clock = interval(LOOK);
    loop {
        clock.tick().await;
        if ebb.is_due(media.totals().peers) {
            // It takes milliseconds: not on a thread that others wait for.
            let _ = tokio::task::spawn_blocking(give_back_memory).await;
        }
    }
}

/// The number of peers as it falls.
#[derive(Debug, Default)]
struct Ebb {
    /// The most since memory was given back.
    most: u64,
    /// At the last look.
    last: u64,
}

impl Ebb {
    /// Takes a look: it is due when a quarter of them, and no fewer than is worthwhile, have left, and no more
    /// leave.
    fn is_due(&mut self, peers: u64) -> bool {
        self.most = self.most.max(peers);
        let has_settled = peers >= std::mem::replace(&mut self.last, peers);
        let left = self.most - peers;
        let is_due = has_settled && left >= WORTHWHILE.max(self.most / 4);
        if is_due {
            self.most = peers;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_when_many_have_left_and_no_more_leave() {
        let mut ebb = Ebb::default();
        let looks = [0, 500, 1_000, 900, 900, 400, 10, 10, 10, 90, 0, 0];
        let due: Vec<u64> = (0..)
            .zip(looks)
            .filter(|(_, n)| ebb.is_due(*n))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(due, [7], "when the rest of 1,000 have left, and not for 90");
    }
}
