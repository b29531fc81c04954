//! A progress bar, on terminals only.

use indicatif::{ProgressBar, ProgressStyle};

/// The steps of a bar.
const STEPS: u64 = 1_000;

/// The progress of a command.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// The library draws nothing if the standard error is no terminal.
    pub fn new(what: &str) -> Self {
        let bar = ProgressBar::new(STEPS);
        let style = "{msg:.bold} {wide_bar} {percent:>3} %  {eta}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self(bar)
    }

    /// From 0 to 1.
    pub fn set(&self, done: f32) {
        self.0
            .set_position((done.clamp(0.0, 1.0) * STEPS as f32) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
