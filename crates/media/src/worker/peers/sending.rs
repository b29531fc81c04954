//! What is sent to a peer, and when: its pacer, its catching up, and how its layers adapt to the
//! link.

use std::time::Instant;

use super::adaptation::Adaptation;
use super::catch_up::CatchUp;
use super::pacing::Pacing;

/// What is sent to a peer, and when.
#[derive(Default)]
#[repr(C)]
pub(in crate::worker) struct Sending {
    /// Delays packets until the link can take them.
    pacer: Option<Box<Pacing>>,
    /// Sent packets are recorded, so that feedback tells what the link carries.
    is_recorded: bool,
    /// What the peer has yet to get of the packets that sources keep for new sinks.
    catch_up: Option<Box<CatchUp>>,
    /// Layers are chosen by what the link carries.
    adaptation: Option<Box<Adaptation>>,
    /// The link has paused routes, or has let them go on, since the last event of that.
    pub(in crate::worker) has_pauses: bool,
}

impl Sending {
    #[inline]
    pub(in crate::worker) fn pacer(&self) -> Option<&Pacing> {
        self.pacer.as_deref()
    }

    #[inline]
    pub(in crate::worker) fn pacer_mut(&mut self) -> Option<&mut Pacing> {
        self.pacer.as_deref_mut()
    }

    pub(in crate::worker) fn start_pacing(&mut self, pacer: Pacing) {
        self.pacer = Some(Box::new(pacer));
    }

    pub(in crate::worker) fn stop_pacing(&mut self) {
        self.pacer = None;
    }

    #[inline]
    pub(in crate::worker) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    pub(in crate::worker) fn set_recorded(&mut self, is_recorded: bool) {
        self.is_recorded = is_recorded;
    }

    pub(in crate::worker) fn catch_up(&self) -> Option<&CatchUp> {
        self.catch_up.as_deref()
    }

    pub(in crate::worker) fn catch_up_mut(&mut self) -> Option<&mut CatchUp> {
        self.catch_up.as_deref_mut()
    }

    /// Returns the catching up, which starts now if the peer has none.
    pub(in crate::worker) fn start_catching_up(&mut self, now: Instant) -> &mut CatchUp {
        self.catch_up
            .get_or_insert_with(|| Box::new(CatchUp::new(now)))
    }

    /// Takes the catching up out, if it is due.
    pub(in crate::worker) fn take_due_catch_up(&mut self, now: Instant) -> Option<Box<CatchUp>> {
        self.catch_up.take_if(|catch_up| catch_up.pace.is_due(now))
    }

    /// Puts the catching up back.
    pub(in crate::worker) fn put_catch_up(&mut self, catch_up: Box<CatchUp>) {
        self.catch_up = Some(catch_up);
    }

    pub(in crate::worker) fn adaptation(&self) -> Option<&Adaptation> {
        self.adaptation.as_deref()
    }

    pub(in crate::worker) fn adaptation_mut(&mut self) -> Option<&mut Adaptation> {
        self.adaptation.as_deref_mut()
    }

    /// Takes the adaptation out.
    pub(in crate::worker) fn take_adaptation(&mut self) -> Option<Box<Adaptation>> {
        self.adaptation.take()
    }

    pub(in crate::worker) fn set_adaptation(&mut self, adaptation: Box<Adaptation>) {
        self.adaptation = Some(adaptation);
    }

    /// Drops what waits for a route.
    pub(in crate::worker) fn forget_waiting(&mut self, route: usize) {
        if let Some(pacer) = &mut self.pacer {
            pacer.retain(|queued| queued.route != route);
        }
        if let Some(catch_up) = &mut self.catch_up {
            catch_up.forget(route);
        }
    }

    /// When something is due, if nothing happens before.
    pub(in crate::worker) fn poll_timeout(&self) -> Option<Instant> {
        let adaptation = self.adaptation().and_then(Adaptation::poll_timeout);
        let catch_up = self.catch_up();
        let catch_up = catch_up.and_then(|it| it.poll_timeout(self.pacer()));
        let pacer = self.pacer().and_then(|pacer| pacer.poll_timeout());
        [adaptation, catch_up, pacer].into_iter().flatten().min()
    }
}
