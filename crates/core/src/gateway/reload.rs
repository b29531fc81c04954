//! The configuration is read again while the server runs.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_config::{PrintError, with_live};

use super::Gateway;
use crate::{ApiError, CoreConfig, JwtVerifier};

/// Reads the configuration again and applies it: what only the program as a whole can do.
pub trait Reloader: Send + Sync + 'static {
    /// Applies what has changed. The error is for people, and says what is wrong: then everything is as it was.
    fn reload(&self) -> Reloading<'_>;
}

/// A configuration that is being applied.
pub type Reloading<'a> = Pin<Box<dyn Future<Output = Result<Reloaded, String>> + Send + 'a>>;

/// What came of reading the configuration again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// What took effect: keys with their sections, such as `log.filter`, and rooms.
    pub changed: Vec<String>,
    /// Keys that have changed and need a restart.
    pub restart: Vec<String>,
    /// What could not be done, or has to wait.
    pub warnings: Vec<String>,
}

impl Gateway {
    /// Says what reads the configuration again. Only the first one counts. The caller keeps it alive.
    pub fn set_reloader(&self, reloader: &Arc<impl Reloader>) {
        let reloader: Weak<dyn Reloader> = Arc::downgrade(&(reloader.clone() as Arc<dyn Reloader>));
        // A second one changes nothing.
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
        // Administrators may have set these since the start.
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

    /// Changes how long a medium may be silent before clients are told, in ms. 0 means that they never are.
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
