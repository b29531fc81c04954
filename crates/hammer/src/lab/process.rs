//! Processes of the lab, which never outlive it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::machine::Namespace;

/// The interval of checks whether a process has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A process with its descendants in a process group, which ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    status: Option<ExitStatus>,
}

/// The end of waiting for a process.
#[derive(Debug)]
pub(crate) enum Ended {
    WithStatus(ExitStatus),
    Interrupted,
}

/// Makes a command that starts its arguments in `namespace`, on `cores`.
pub(crate) fn inside(namespace: &Namespace, cores: &[usize]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
    command.arg("inside").arg("--netns").arg(namespace.path());
    command.args(["--cores", &cores.join(","), "--"]);
    Ok(command)
}

impl Process {
    /// Starts `command` in its own process group, so that Ctrl-C reaches only the lab, which ends
    /// it in order.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self {
            child,
            status: None,
        })
    }

    /// Returns its id, which is also that of its group.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its exit status if it has ended.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Waits until it ends or the user interrupts.
    pub(crate) fn wait(&mut self, interrupted: &AtomicBool) -> io::Result<Ended> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Ended::WithStatus(status));
            }
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            thread::sleep(LOOK);
        }
    }

    /// Asks it to end, and kills it after `patience`. Returns its status if it had already ended.
    pub(crate) fn stop(&mut self, patience: Duration) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.ended() {
            self.signal(Signal::SIGKILL);
            return Some(status);
        }
        self.signal(Signal::SIGTERM);
        let start = Instant::now();
        while start.elapsed() < patience && matches!(self.ended(), Ok(None)) {
            thread::sleep(LOOK);
        }
        // Also kills the rest of the group.
        self.signal(Signal::SIGKILL);
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
        None
    }

    /// Kills it without asking.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
    }

    /// Stops it until it is resumed.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // It has already ended.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(2));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn the_whole_group_ends() {
        let mut process = shell("trap '' TERM; sleep 1000 & wait; sleep 1000");
        let group = Pid::from_raw(process.pid().try_into().unwrap());
        assert!(process.stop(Duration::from_millis(50)).is_none());
        // A killed process may exist until it is reaped.
        let deadline = Instant::now() + Duration::from_secs(10);
        while killpg(group, None).is_ok() && Instant::now() < deadline {
            thread::yield_now();
        }
        assert!(killpg(group, None).is_err());
    }

    #[test]
    fn an_early_end_is_told() {
        let mut process = shell("exit 3");
        let never = AtomicBool::new(false);
        let Ended::WithStatus(status) = process.wait(&never).unwrap() else {
            unreachable!("nobody interrupts");
        };
        assert_eq!(status.code(), Some(3));
        assert_eq!(
            process
                .stop(Duration::ZERO)
                .and_then(|status| status.code()),
            Some(3)
        );
    }

    #[test]
    fn an_interruption_ends_the_waiting() {
        let mut process = shell("sleep 1000");
        let ended = process.wait(&AtomicBool::new(true)).unwrap();
        assert!(matches!(ended, Ended::Interrupted));
    }
}
