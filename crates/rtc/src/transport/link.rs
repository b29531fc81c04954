//! DTLS and its data, between ICE below and SRTP and data channels above.

use std::time::Instant;

use super::{
    DropReason, Dtls, DtlsState, FailReason, MAX_DATAGRAM, MAX_EARLY, Received, Srtp, Transport,
    TransportError, TransportEvent,
};
use crate::data::{Data, DataError, DataEvent};
use crate::dtls::{Done, Handshakes, Incoming, Progress};
use crate::ice::Datagram;
use crate::{DtlsError, Path};

impl Transport {
    pub(super) fn receive_dtls(
        &mut self,
        now: Instant,
        path: Path,
        datagram: &mut [u8],
    ) -> Received {
        if !self.ice.is_verified(path) {
            // The peer may start once its own check succeeds, while ours is on its way.
            if self.early.len() < MAX_EARLY && self.ice.is_source(path) && self.remote.is_some() {
                self.early.push((path, datagram.to_vec()));
                return Received::Consumed;
            }
            return Received::Dropped(DropReason::UnverifiedDtls);
        }
        self.dtls_path = Some(path);
        self.start_dtls(now);
        let mut out = Vec::new();
        match &mut self.dtls {
            Dtls::Handshaking(handshake) => {
                let result = handshake.receive(now, datagram, &mut out);
                self.send_dtls(out);
                match result {
                    Ok(Progress::Pending) => {}
                    Ok(Progress::Done(done)) => self.connected(now, *done),
                    Err(error) => self.fail_dtls(error),
                }
                Received::Consumed
            }
            Dtls::Established(established) => {
                let data = &mut self.data;
                let incoming = established.receive(now, datagram, &mut out, |packet| {
                    if let Some(data) = data {
                        data.receive(now, packet);
                    }
                });
                let is_malformed = data.as_mut().is_some_and(|data| data.take_malformed());
                self.send_dtls(out);
                self.flush_data(now);
                match incoming {
                    Incoming::Open { accepted: true } if is_malformed => {
                        Received::Dropped(DropReason::MalformedData)
                    }
                    Incoming::Open { accepted: true } => Received::Consumed,
                    Incoming::Open { accepted: false } => {
                        Received::Dropped(DropReason::RefusedDtls)
                    }
                    Incoming::Closed(_) => {
                        self.end();
                        self.events.push_back(TransportEvent::Closed);
                        Received::Consumed
                    }
                }
            }
            Dtls::Waiting => Received::Dropped(DropReason::UnverifiedDtls),
            Dtls::Ended => Received::Dropped(DropReason::Closed),
        }
    }

    /// Takes the early DTLS datagrams whose senders have been verified meanwhile.
    pub(super) fn take_early(&mut self, now: Instant) {
        if !self
            .early
            .iter()
            .any(|(path, _)| self.ice.is_verified(*path))
        {
            return;
        }
        for (path, mut datagram) in std::mem::take(&mut self.early) {
            self.receive_dtls(now, path, &mut datagram);
        }
    }

    pub(super) fn start_dtls(&mut self, now: Instant) {
        let (Dtls::Waiting, Some(remote)) = (&self.dtls, &self.remote) else {
            return;
        };
        let mut out = Vec::new();
        let fingerprints = remote.fingerprints.clone();
        let context = self.identity.context();
        match Handshakes::start(context, remote.role, fingerprints, now, &mut out) {
            Ok(handshake) => {
                self.handshake.started = Some(now);
                self.dtls = Dtls::Handshaking(Box::new(handshake));
                self.events
                    .push_back(TransportEvent::Dtls(DtlsState::Trying));
                self.send_dtls(out);
            }
            Err(error) => self.fail_dtls(error),
        }
    }

    fn connected(&mut self, now: Instant, done: Done) {
        self.dtls = Dtls::Established(Box::new(done.established));
        self.handshake.connected = Some(now);
        let srtp = done.srtp;
        let srtp = srtp.map(|(sealer, opener)| Box::new(Srtp { sealer, opener }));
        match &mut self.observed {
            Some(observed) => observed.srtp = srtp,
            None => self.srtp = srtp,
        }
        self.events
            .push_back(TransportEvent::Dtls(DtlsState::Connected));
        self.events.push_back(TransportEvent::Connected {
            profile: self.profile(),
        });
        self.start_data(now);
        if let Some(path) = self.dtls_path {
            for mut datagram in done.early {
                self.receive_dtls(now, path, &mut datagram);
            }
        }
    }

    pub(super) fn fail_dtls(&mut self, error: DtlsError) {
        self.end();
        self.events
            .push_back(TransportEvent::Dtls(DtlsState::Failed));
        self.events
            .push_back(TransportEvent::Failed(FailReason::Dtls(error)));
    }

    pub(super) fn end(&mut self) {
        self.dtls = Dtls::Ended;
        self.srtp = None;
        if let Some(observed) = &mut self.observed {
            observed.srtp = None;
        }
        self.data = None;
        self.early = Vec::new();
    }

    /// Sends on the selected pair. Before there is one, sends back on the path of the peer's DTLS.
    pub(super) fn send_dtls(&mut self, datagrams: Vec<Vec<u8>>) {
        let selected = self.ice.selected().map(Path::from);
        let Some(path) = selected.or(self.dtls_path) else {
            return;
        };
        for bytes in datagrams {
            debug_assert!(bytes.len() <= MAX_DATAGRAM);
            self.handshake.sent.add(bytes.len());
            self.out.push_back(Datagram { path, bytes });
        }
    }

    pub(super) fn data(&mut self) -> Result<&mut Data, TransportError> {
        self.check_open()?;
        let missing = match self.data_config {
            Some(_) => DataError::NotConnected,
            None => DataError::NotNegotiated,
        };
        Ok(self.data.as_deref_mut().ok_or(missing)?)
    }

    pub(super) fn start_data(&mut self, now: Instant) {
        if let (Dtls::Established(_), None, Some(config), Some(remote)) =
            (&self.dtls, &self.data, self.data_config, &self.remote)
        {
            self.data = Some(Box::new(Data::new(remote.role, config)));
            self.flush_data(now);
        }
    }

    /// Takes the output and the events of the data channels.
    pub(super) fn flush_data(&mut self, now: Instant) {
        let (Some(data), Dtls::Established(established)) = (&mut self.data, &mut self.dtls) else {
            return;
        };
        let mut out = Vec::new();
        data.transmit(now, |packet| out.extend(established.seal(packet)));
        while let Some(event) = data.poll_event() {
            self.events.push_back(event.into());
        }
        self.send_dtls(out);
    }
}

impl From<DataEvent> for TransportEvent {
    fn from(event: DataEvent) -> Self {
        match event {
            DataEvent::Open { label, protocol } => {
                TransportEvent::DataChannelOpen { label, protocol }
            }
            DataEvent::Message {
                label,
                protocol,
                message,
            } => TransportEvent::Data {
                label,
                protocol,
                message,
            },
            DataEvent::Closed { label } => TransportEvent::DataChannelClosed { label },
            DataEvent::Writable => TransportEvent::DataWritable,
        }
    }
}
