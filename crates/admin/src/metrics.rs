//! `metrics`: figures of `/metrics` by their names, for the dashboard. Janus has no such request.

use std::sync::Arc;

use portunus_core::{ApiError, Fields, Object};
use portunus_metrics::{MetricsPage, MetricsSource};
use serde_json::Value;
use tokio::task::spawn_blocking;

/// The limit of names in a request.
const MAX_NAMES: usize = 100;

/// Returns the samples with the names of the member `names`, or all.
pub(super) async fn read(
    sources: Vec<Arc<dyn MetricsSource>>,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let names: Option<Vec<&str>> = fields.member("names")?;
    if names.as_ref().is_some_and(|names| names.len() > MAX_NAMES) {
        let text = format!("Invalid element type (names should be {MAX_NAMES} at most)");
        return Err(ApiError::InvalidElement(text));
    }
    // Some sources read files.
    let text = spawn_blocking(move || {
        let mut page = MetricsPage::default();
        sources.iter().for_each(|source| source.write(&mut page));
        page.into_text()
    });
    let text = text
        .await
        .map_err(|error| ApiError::Unknown(error.to_string()))?;
    let is_wanted = |sample: &Sample<'_>| {
        let names = names.as_deref();
        names.is_none_or(|names| names.contains(&sample.name))
    };
    let samples = text.lines().filter_map(Sample::read).filter(is_wanted);
    let samples: Vec<Value> = samples.map(Sample::told).collect();
    Ok(Object::new().with("metrics", samples))
}

/// A line of the page of metrics.
struct Sample<'a> {
    name: &'a str,
    /// Such as `use="tls"`, or empty.
    labels: &'a str,
    value: f64,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (what, value) = line.rsplit_once(' ')?;
        let value = value.parse().ok()?;
        let (name, labels) = match what.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}')?),
            None => (what, ""),
        };
        (!line.starts_with('#')).then_some(Sample {
            name,
            labels,
            value,
        })
    }

    fn told(self) -> Value {
        let labels = Some(self.labels).filter(|labels| !labels.is_empty());
        Object::new()
            .with("name", self.name)
            .with_some("labels", labels)
            .with("value", self.value)
            .into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_the_page_are_read() {
        let told = |line| Sample::read(line).map(Sample::told);
        assert_eq!(told("# HELP a_total A 1"), None);
        let plain = json!({ "name": "a_total", "value": 7.0 });
        assert_eq!(told("a_total 7"), Some(plain));
        let labelled = json!({ "name": "a", "labels": "use=\"tls\"", "value": 1.5 });
        assert_eq!(told("a{use=\"tls\"} 1.5"), Some(labelled));
    }
}
