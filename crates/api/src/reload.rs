//! Changes the certificate and the connection limits of running transports.

use portunus_core::{Budget, BudgetLimits};

use crate::tls::{self, Certificate, Tls};
use crate::{ApiConfig, StartError};

/// Changes running transports. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TransportsReload {
    /// `None` if nothing is served by TLS.
    tls: Option<Tls>,
    http: Vec<Budget>,
    websocket: Vec<Budget>,
}

/// New settings for running transports.
#[derive(Debug)]
pub struct PreparedTransports {
    certificate: Option<Certificate>,
    http: BudgetLimits,
    websocket: BudgetLimits,
}

impl TransportsReload {
    pub(crate) fn new(tls: Option<Tls>, http: Vec<Budget>, websocket: Vec<Budget>) -> Self {
        TransportsReload {
            tls,
            http,
            websocket,
        }
    }

    /// Reads the settings of a configuration. An error changes nothing. Blocks.
    pub fn prepare(&self, config: &ApiConfig) -> Result<PreparedTransports, StartError> {
        let is_used = self.tls.is_some();
        let certificate = is_used.then(|| tls::read(&config.tls, "tls.certificate"));
        let (http, websocket) = (&config.http, &config.websocket);
        Ok(PreparedTransports {
            certificate: certificate.transpose()?,
            http: limits(http.max_connections, http.max_connections_per_address),
            websocket: limits(
                websocket.max_connections,
                websocket.max_connections_per_address,
            ),
        })
    }

    /// Applies the new settings to new connections. Returns `true` if the certificate has changed.
    pub fn apply(&self, prepared: PreparedTransports) -> bool {
        for (budgets, limits) in [
            (&self.http, prepared.http),
            (&self.websocket, prepared.websocket),
        ] {
            for budget in budgets {
                budget.set_limits(limits);
            }
        }
        let pair = self.tls.as_ref().zip(prepared.certificate);
        pair.is_some_and(|(tls, certificate)| tls.set(certificate))
    }
}

/// Returns the limits of connections: `most` in all. 0 for `of_address` means no limit for one
/// address.
pub(crate) fn limits(most: usize, of_address: usize) -> BudgetLimits {
    BudgetLimits {
        whole: most,
        address: match of_address {
            0 => most,
            of_address => of_address,
        },
        reserve: 0,
    }
}
