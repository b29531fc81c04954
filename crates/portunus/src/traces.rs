//! Traces of requests, exported by OTLP over HTTP. A thread of the library sends them in batches; when it does not
//! keep up, it drops the newest and logs so.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use portunus_core::{RequestTrace, RequestTraces};
use tokio_rustls::rustls;

use crate::config::TracesConfig;

/// The time that the last batch has at the program's end.
const LAST_BATCH: Duration = Duration::from_secs(2);

/// The running export of traces; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Starts the export, if the configuration names a collector.
    pub(crate) fn start(
        config: &TracesConfig,
        server_name: &str,
    ) -> Result<Option<Self>, ExporterBuildError> {
        let Some(url) = &config.url else {
            return Ok(None);
        };
        // An error means that there is a provider already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(url.0.as_str());
        let sampler = Sampler::TraceIdRatioBased(config.share);
        let resource = Resource::builder()
            .with_service_name("portunus")
            .with_attribute(KeyValue::new("service.instance.id", server_name.to_owned()))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter.build()?)
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("portunus");
        Ok(Some(Self { provider, tracer }))
    }

    /// Sends the last batch, and ends the export.
    pub(crate) async fn end(self) {
        let shut = move || self.provider.shutdown_with_timeout(LAST_BATCH);
        match tokio::task::spawn_blocking(shut).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces are lost"),
            Err(error) => tracing::warn!(%error, "the last traces are lost"),
        }
    }
}

impl RequestTraces for Traces {
    fn answered(&self, trace: RequestTrace) {
        let name = match &trace.plugin_request {
            Some(request) => format!("{} {request}", trace.verb),
            None => trace.verb.clone(),
        };
        let span = self.tracer.span_builder(name);
        let mut span = span
            .with_kind(SpanKind::Server)
            .with_start_time(trace.began)
            .with_attributes(attributes(&trace))
            .start_with_context(&self.tracer, &parent(trace.parent));
        if let Some((code, text)) = trace.error {
            span.set_attribute(KeyValue::new("error.type", code.to_string()));
            span.set_status(Status::error(text));
        }
        span.end_with_timestamp(trace.began + trace.duration);
    }
}

fn attributes(trace: &RequestTrace) -> Vec<KeyValue> {
    let text = |key, value: &str| KeyValue::new(key, value.to_owned());
    let mut attributes = vec![
        text("rpc.system", "janus"),
        text("rpc.method", &trace.verb),
        KeyValue::new("janus.transport", trace.transport),
        text("janus.transaction", &trace.transaction),
    ];
    // As texts: collectors store integers as 64 bits with a sign, and ids in JavaScript are floats.
    attributes.extend(
        trace
            .session
            .map(|id| text("janus.session_id", &id.to_string())),
    );
    attributes.extend(
        trace
            .handle
            .map(|id| text("janus.handle_id", &id.to_string())),
    );
    attributes
}

/// Reads the client's span (W3C Trace Context). Without one, or with a broken one, the trace begins here.
fn parent(traceparent: Option<String>) -> Context {
    let headers = traceparent.map(|it| HashMap::from([("traceparent".to_owned(), it)]));
    TraceContextPropagator::new().extract(&headers.unwrap_or_default())
}
