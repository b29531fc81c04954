//! Reloads of the configuration while the server runs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_config::{PrintError, with_live};

use super::Gateway;
use crate::{ApiError, CoreConfig, JwtVerifier, Reloaded, Reloader};

impl Gateway {
    /// Sets what reloads the configuration. Only the first call has an effect. The caller keeps it
    /// alive.
    pub fn set_reloader(&self, reloader: &Arc<impl Reloader>) {
        let reloader: Weak<dyn Reloader> = Arc::downgrade(&(reloader.clone() as Arc<dyn Reloader>));
        // A second call has no effect.
        let _ = self.context().reloader.set(reloader);
    }

    /// Reads the configuration again and applies it. See [`Reloader::reload`].
    pub async fn reload(&self) -> Result<Reloaded, ApiError> {
        let reloader = self.context().reloader.get().and_then(Weak::upgrade);
        let reloader = reloader.ok_or_else(|| {
            ApiError::Unknown("This server has no configuration to read again".to_owned())
        })?;
        reloader.reload().await.map_err(ApiError::Unknown)
    }

    /// Applies the values of `new` that can change while the server runs.
    pub fn configure(&self, new: &CoreConfig) -> Result<(), PrintError> {
        let context = self.context();
        let running = context.config();
        let merged = with_live(&**running, new)?;
        // Operators may have changed these since the start.
        if merged.session_timeout != running.session_timeout {
            context.settings.set_session_timeout(merged.session_timeout);
        }
        if merged.accept_new_sessions != running.accept_new_sessions {
            self.accept_new_sessions(merged.accept_new_sessions);
        }
        context.rate.set(merged.request_rate, merged.request_burst);
        context.memory.set_limits(merged.client_memory_limits());
        context
            .admin_memory
            .set_limits(merged.admin_memory_limits());
        context.config.store(Arc::new(merged));
        Ok(())
    }

    /// Verifies JSON Web Tokens by `verifier` from now on.
    pub fn set_jwt(&self, verifier: JwtVerifier) {
        self.tokens().set_jwt(verifier);
    }

    /// Sets how long a medium may be silent before clients are notified, in ms. 0 disables it.
    pub fn set_no_media_ms(&self, ms: u32) {
        let context = self.context();
        context.media.set_no_media(Duration::from_millis(ms.into()));
        context.settings.set_no_media_ms(ms);
    }

    /// How long calls may go on after SIGTERM.
    pub fn drain_timeout(&self) -> Duration {
        self.context().config().drain_timeout
    }
}
