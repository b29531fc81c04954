//! The metrics of tokens.

use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

use crate::{TokenTotals, Tokens};

impl MetricsSource for Tokens {
    fn write(&self, page: &mut MetricsPage) {
        let TokenTotals {
            refused,
            key_reads,
            key_failures,
        } = self.totals();
        let help = "Tokens that were refused, by reason";
        let name = "refused_tokens_total";
        page.labelled(MetricKind::Counter, name, help, "reason", refused);
        let help = "Times that jwt.jwks_file was read again because it had changed";
        page.counter("token_key_reads_total", help, key_reads);
        let help = "Times that jwt.jwks_file gave no keys, so that the former ones stayed";
        page.counter("token_key_failures_total", help, key_failures);
    }
}
