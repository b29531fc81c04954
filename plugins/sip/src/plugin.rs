//! The plugin, its start and its tasks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{fmt, io};

use portunus_audio::AudioThreads;
use portunus_call::CallNews;
use portunus_core::{
    Asked, ConfiguredPlugin, FieldError, Fields, Handle, MissingService, Plugin, PluginContext,
    PluginCounter, PluginHandle, PluginInfo, PluginReloaded, Reply,
};
use portunus_sip::agent::{AgentEvent, CallId};
use portunus_sip::net::{Endpoint, StartError, Status};
use portunus_telephony::Telephony;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client_handle::Attached;
use crate::commands::Commands;
use crate::config::SipConfig;
use crate::counts::gauges;
use crate::media::MediaContext;
use crate::phones::Phones;
use crate::requests::Request;
use crate::shared::Shared;
use crate::switchboard::Switchboard;
use crate::trunk::{TrunkMeans, Trunks};

/// The plugin, with its SIP stack.
pub struct Sip {
    pub(crate) shared: Arc<Shared>,
    status: Box<dyn Fn() -> Status + Send + Sync>,
    /// `None` for the SIP stack of a test.
    endpoint: Option<Endpoint>,
    /// The expiry of the certificate, in s since 1970; 0 if there is none.
    expiry: AtomicU64,
}

impl fmt::Debug for Sip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sip").finish_non_exhaustive()
    }
}

/// The error that keeps the plugin from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SipError {
    /// There is no SIP stack: no sockets, or no certificate.
    #[error(transparent)]
    Stack(#[from] StartError),
    /// The prompts for callers cannot be stored for rooms to read.
    #[error("no prompts for callers: {0}")]
    Prompts(#[from] io::Error),
    /// The server lacks what calls need.
    #[error(transparent)]
    Service(#[from] MissingService),
}

impl Sip {
    /// Starts the plugin with its SIP stack and sockets, within tokio's runtime. SIP and RTP go to
    /// the networks of `context` only.
    pub fn start(config: SipConfig, context: PluginContext) -> Result<Self, SipError> {
        let PluginContext {
            media,
            outgoing,
            services,
            ..
        } = context;
        let audio = services.get::<AudioThreads>()?.clone();
        let telephony = services.get::<Telephony>()?.clone();
        let config = SipConfig {
            outgoing,
            has_reception: telephony.reception().is_some(),
            ..config
        };
        let (endpoint, events) = Endpoint::start(config.endpoint())?;
        let expiry = config.certificate_expiry();
        let (media, news) =
            MediaContext::new(&config, (media, Some(audio.clone())), config.local_ip);
        let asked = endpoint.clone();
        let commands: Commands = Arc::new(move |command| asked.command(command));
        let trunks = match config.trunks.is_empty() && !config.has_reception {
            true => None,
            false => {
                let means = TrunkMeans {
                    call: media.settings(),
                    audio,
                    telephony: telephony.clone(),
                };
                Some(Trunks::new(&config, means, commands.clone())?)
            }
        };
        let has_trunks = trunks.is_some();
        let mut sip = Sip::on(config, media, (commands.clone(), trunks), events, news);
        let asked = endpoint.clone();
        sip.status = Box::new(move || asked.status());
        sip.endpoint = Some(endpoint);
        sip.expiry = AtomicU64::new(expiry);
        if has_trunks {
            let shared = Arc::downgrade(&sip.shared);
            telephony.offer_telephone(Arc::new(Switchboard { shared, commands }));
        }
        Ok(sip)
    }

    /// Starts the plugin on a SIP stack that takes `commands` and sends `events`, within tokio's
    /// runtime.
    pub(crate) fn on(
        config: SipConfig,
        context: MediaContext,
        (commands, trunks): (Commands, Option<Trunks>),
        mut events: mpsc::Receiver<AgentEvent>,
        mut news: mpsc::Receiver<(CallId, CallNews)>,
    ) -> Self {
        let config = Arc::new(config);
        let phones = Phones::new(config, context, commands);
        let shared = Arc::new(Shared::new(phones, trunks));
        let own = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let Some(shared) = own.upgrade() else { return };
                shared.agent_event(event);
            }
        });
        let own = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some((call, news)) = news.recv().await {
                let Some(shared) = own.upgrade() else { return };
                shared.phones().media_event(call, news);
            }
        });
        tokio::spawn(ticks(Arc::downgrade(&shared)));
        let status = Box::new(Status::default);
        Sip {
            shared,
            status,
            endpoint: None,
            expiry: AtomicU64::new(0),
        }
    }
}

impl ConfiguredPlugin for Sip {
    const NAME: &'static str = "sip";
    type Config = SipConfig;
    type Error = SipError;

    async fn from_config(config: SipConfig, context: PluginContext) -> Result<Self, SipError> {
        Sip::start(config, context)
    }

    fn check_reload(&self, new: &SipConfig) -> Result<(), SipError> {
        Ok(new.endpoint().tls.check()?)
    }

    async fn reload(&self, _: &SipConfig, new: &SipConfig) -> PluginReloaded {
        let mut reloaded = PluginReloaded::default();
        if let Some(endpoint) = self.endpoint.clone() {
            let new = new.clone();
            let read = tokio::task::spawn_blocking(move || {
                let is_new = endpoint.reload_tls(&new.endpoint().tls)?;
                Ok::<_, StartError>((is_new, new.certificate_expiry()))
            });
            let read = read.await;
            if let Ok(Ok((_, expiry))) = &read {
                self.expiry.store(*expiry, Relaxed);
            }
            match read {
                Ok(Ok((true, _))) => reloaded.changed.push("another certificate".to_owned()),
                Ok(Ok((false, _))) => {}
                Ok(Err(error)) => reloaded.warnings.push(error.to_string()),
                Err(error) => reloaded.warnings.push(error.to_string()),
            }
        }
        reloaded
    }
}

/// Does the periodic work every second, while the plugin exists.
async fn ticks(shared: Weak<Shared>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.phones().tick(Instant::now());
    }
}

impl Plugin for Sip {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: "janus.plugin.sip",
            name: "SIP plugin",
            description: "Web pages as SIP telephones.",
            version: 10,
            version_string: "0.0.10",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Request>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(Attached::new(handle, self.shared.clone()))
    }

    fn set_draining(&self, is_on: bool) {
        self.shared.phones().set_draining(is_on);
        if let Some(mut trunks) = self.shared.trunks() {
            trunks.draining = is_on;
        }
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let answer = match request.as_object().map(Fields) {
            None => Err(FieldError::Missing("request".to_owned()).into()),
            Some(fields) => self.shared.admin(fields),
        };
        let answer = answer.unwrap_or_else(|refusal| refusal.to_json(None));
        Some(Reply::Success(answer))
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.counts.counters(&(self.status)())
    }

    fn gauges(&self) -> Vec<PluginCounter> {
        let unregistered = self.shared.trunks().map(|trunks| trunks.unregistered());
        let mut gauges = gauges(&(self.status)(), unregistered.unwrap_or_default());
        let expiry = self.expiry.load(Relaxed);
        if expiry > 0 {
            gauges.push(PluginCounter {
                name: "certificate_expiry_timestamp_seconds",
                help: "When the certificate for SIP expires, since 1970",
                value: expiry,
            });
        }
        gauges
    }
}
