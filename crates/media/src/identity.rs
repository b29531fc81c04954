//! The certificate that peers present.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs};

use portunus_rtc::Identity;

use crate::{MediaConfig, MediaError};

/// A certificate for DTLS with its key.
#[derive(Clone)]
pub struct MediaIdentity(pub(crate) Arc<Identity>);

impl MediaIdentity {
    /// Reads the certificate of the configuration. Without one, makes one. It blocks.
    pub fn read(config: &MediaConfig) -> Result<Self, MediaError> {
        Ok(MediaIdentity(Arc::new(identity(config)?)))
    }
}

/// The key is not shown.
impl fmt::Debug for MediaIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediaIdentity")
    }
}

fn identity(config: &MediaConfig) -> Result<Identity, MediaError> {
    let failed = |error: portunus_rtc::IdentityError| MediaError::Certificate(error.to_string());
    let (certificate, key) = match (&config.certificate, &config.key) {
        (None, None) => return Identity::generate().map_err(failed),
        (Some(certificate), Some(key)) => (certificate, key),
        _ => {
            let text = "media.certificate and media.key need each other";
            return Err(MediaError::Certificate(text.to_owned()));
        }
    };
    let read = |path: &Path| {
        fs::read(path)
            .map_err(|error| MediaError::Certificate(format!("{}: {error}", path.display())))
    };
    Identity::from_pem(&read(certificate)?, &read(key)?).map_err(failed)
}
