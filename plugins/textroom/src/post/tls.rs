//! TLS to back-ends: rustls with AWS-LC, and the certificates that the system trusts.

use std::sync::Arc;

use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore, crypto};

/// Returns the options of a client.
pub(super) fn client() -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
