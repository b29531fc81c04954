//! Formats numbers.

use std::time::Duration;

use portunus_files::mjr::UnixMicros;

/// `1:02:03.4`, `2:03.4`.
pub(super) fn duration(duration: Duration) -> String {
    let tenths = (duration.as_millis() + 50) / 100;
    let (hours, minutes) = (tenths / 36_000, tenths / 600 % 60);
    let seconds = format!("{:02}.{}", tenths / 10 % 60, tenths % 10);
    match hours {
        0 => format!("{minutes}:{seconds}"),
        _ => format!("{hours}:{minutes:02}:{seconds}"),
    }
}

/// `730 bytes`, `12.3 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Formats a time in UTC (RFC 3339). Empty if it is unknown.
pub(super) fn time(at: UnixMicros) -> Option<String> {
    (at.0 > 0).then(|| portunus_files::manifest::rfc3339(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(duration(Duration::from_millis(3_723_449)), "1:02:03.4");
        assert_eq!(duration(Duration::from_millis(59_960)), "1:00.0");
        assert_eq!(duration(Duration::ZERO), "0:00.0");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(12_345_678), "12.3 MB");
    }
}
