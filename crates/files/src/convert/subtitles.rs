//! Conversion of text messages to subtitles (SubRip).

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use super::{ConvertError, Converted, Recordings};
use crate::mjr::Medium;

/// The time for which a message is shown, unless the next one comes.
const SHOWN: Duration = Duration::from_secs(5);

/// Writes the messages of `recordings`, which must contain text. Times count from the first frame
/// of all.
pub fn to_subtitles(
    recordings: &mut Recordings,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(f32),
) -> Result<Converted, ConvertError> {
    let text = recordings.infos().enumerate();
    let text = text.filter(|(_, info)| info.medium == Medium::Data && info.codec == "text");
    let text: Vec<_> = text.map(|(index, _)| index).collect();
    let text = match *text {
        [] => return Err(ConvertError::Nothing("recording of text")),
        [index] => index,
        _ => return Err(ConvertError::TooMany("recording of text")),
    };
    let mut converted = Converted {
        parts: 1,
        ..Converted::default()
    };
    // The last message, whose end is unknown, and its arrival.
    let mut open: Option<(Duration, String)> = None;
    while let Some(frame) = recordings.next()? {
        if frame.index != text {
            continue;
        }
        let (at, message) = (frame.at, String::from_utf8_lossy(frame.bytes).into_owned());
        if let Some((from, message)) = open.replace((at, message)) {
            let to = from.saturating_add(SHOWN).min(at);
            put(out, &mut converted, from, to, &message)?;
        }
    }
    if let Some((from, message)) = open {
        put(
            out,
            &mut converted,
            from,
            from.saturating_add(SHOWN),
            &message,
        )?;
    }
    progress(1.0);
    match converted.frames {
        0 => Err(ConvertError::Nothing("message")),
        _ => Ok(converted),
    }
}

fn put(
    out: &mut dyn Write,
    converted: &mut Converted,
    from: Duration,
    to: Duration,
    message: &str,
) -> Result<(), ConvertError> {
    converted.frames += 1;
    converted.duration = to;
    let mut entry = format!("{}\n{} --> {}\n", converted.frames, time(from), time(to));
    // An empty line would end the entry.
    for line in message.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(entry, "{}", line.trim_end());
    }
    entry.push('\n');
    Ok(out.write_all(entry.as_bytes())?)
}

/// Formats hours, minutes, seconds and milliseconds.
fn time(at: Duration) -> String {
    let seconds = at.as_secs();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!(
        "{hours:02}:{minutes:02}:{:02},{:03}",
        seconds % 60,
        at.subsec_millis()
    )
}
