//! The certificate that peers present.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs};

use portunus_rtc::Identity;

use crate::MediaError;

/// A certificate for DTLS, and its key.
#[derive(Clone)]
pub struct MediaIdentity(pub(crate) Arc<Identity>);

impl MediaIdentity {
    /// Reads a certificate and its key from PEM files. Without paths, generates one. It blocks.
    pub fn read(certificate: Option<&Path>, key: Option<&Path>) -> Result<Self, MediaError> {
        Ok(MediaIdentity(Arc::new(identity(certificate, key)?)))
    }
}

/// The key is not shown.
impl fmt::Debug for MediaIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediaIdentity")
    }
}

fn identity(certificate: Option<&Path>, key: Option<&Path>) -> Result<Identity, MediaError> {
    let failed = |error: portunus_rtc::IdentityError| MediaError::Certificate(error.to_string());
    let (certificate, key) = match (certificate, key) {
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
