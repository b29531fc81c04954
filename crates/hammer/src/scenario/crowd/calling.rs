//! A participant who calls the far end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{JoinError, Seat, Shared};
use crate::client::{Handle, Session};
use crate::scenario::hall::STAGGER;
use crate::scenario::telephone::{Line, SIP, Sound};
use crate::source::spread;
use crate::viewer::{Hearing, PeerId, Speaking};

/// How long the server took to set a call up.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct CallSetUp {
    /// From the request to the INVITE's arrival at the far end.
    pub(in crate::scenario) asking: Duration,
    /// From the answer's leaving there to the event.
    pub(in crate::scenario) answering: Duration,
}

impl Shared {
    /// Registers, calls, and waits until the far end's sound comes.
    pub(super) async fn call(
        &self,
        session: &Session,
        line: &Line,
    ) -> Result<(PeerId, Handle), JoinError> {
        let mut handle = session.attach(SIP).await?;
        line.register(&mut handle).await?;
        let id = self.next_id();
        let hearing = match &line.sound {
            Sound::Stamped(_) => None,
            Sound::Spoken(script) => Some(Hearing {
                clock_rate: script.codec.clock_rate(),
                keeps: false,
            }),
        };
        let address = match hearing {
            None => self.address(id),
            Some(hearing) => self.load.address(id, hearing.keeps),
        };
        let (offered, offer) = self.factory.offer_voice(address, line.codec, false)?;
        let asked = Instant::now();
        let called = line.call(&mut handle, offer).await?;
        let accepted = Instant::now();
        if let Some(far) = line.far.take_call(&called.call_id) {
            self.state().joins.set_ups.push(CallSetUp {
                asking: far.came.saturating_duration_since(asked),
                answering: accepted.saturating_duration_since(far.left),
            });
        }
        let mut prepared = offered.accept(&called.answer)?;
        let phase = spread(id);
        match &line.sound {
            Sound::Stamped(config) => prepared.send(config, phase),
            Sound::Spoken(script) => prepared.speak(Speaking {
                script: Arc::clone(script),
                from: (id as usize).wrapping_mul(STAGGER),
                weather: None,
                phase,
            }),
        }
        let seat = Seat {
            hearing,
            ..Seat::of(Vec::new())
        };
        let arrival = self.run(id, prepared, seat);
        let outcome = self.wait(id, arrival, Some(&mut handle)).await;
        self.kept(id, outcome).map(|id| (id, handle))
    }
}
