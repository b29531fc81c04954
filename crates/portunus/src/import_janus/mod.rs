//! `portunus import-janus`: converts a folder of Janus's configuration. No server runs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use portunus_core::configuration::Table;
use portunus_janus_config::{Draft, Folder, FolderError, Mistake, Unsettled, Weight, import};
use tempfile::NamedTempFile;

use crate::config::Config;

/// The exit status when nothing was written.
const FAILED: u8 = 1;
/// The exit status when the configuration lacks the content of a broken file.
const BROKEN: u8 = 3;

/// What is imported, and where to.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ImportJanus {
    /// The folder of Janus's configuration, such as /etc/janus
    folder: PathBuf,

    /// Write the configuration to this file instead of the standard output; only its owner may read
    /// it
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    /// Write over a file that is there
    #[arg(long, requires = "output")]
    force: bool,
}

const HELP: &str = "\
Reads janus.jcfg and all janus.*.jcfg of the folder with the files that they include, and .cfg files of versions before
1.0 where there is no .jcfg of that name. Files need not all be there. The folder is not changed.

The configuration that is written has no mistakes (--check-config). Keys that have our defaults are left out. Each key that
could not be taken is named on the standard error with its line, the reason and what to do instead; the end of the
configuration has the same list. Comments stay at the keys that were taken.

  portunus import-janus /etc/janus --output portunus.toml
  portunus --config portunus.toml

Exit status: 0 the configuration was written; 1 it was not: janus.jcfg is broken, the folder cannot be read, or FILE.toml is
there already; 2 wrong command line; 3 it was written without another file, which is broken. Janus takes nothing of such a
file either.";

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Folder(#[from] FolderError),
    #[error("cannot make a configuration of {}: {error}", folder.display())]
    Unsettled { folder: PathBuf, error: Unsettled },
    #[error("{}: it is there already (--force writes over it)", .0.display())]
    Taken(PathBuf),
    #[error("cannot write {file}: {error}")]
    Write { file: String, error: io::Error },
}

impl ImportJanus {
    /// Imports the folder, and reports what was not imported.
    pub(crate) fn run(&self) -> ExitCode {
        match self.import() {
            Ok(draft) => {
                self.report(&draft);
                match draft.broken() {
                    0 => ExitCode::SUCCESS,
                    _ => ExitCode::from(BROKEN),
                }
            }
            Err(failure) => {
                eprintln!("portunus: {failure}");
                ExitCode::from(FAILED)
            }
        }
    }

    fn import(&self) -> Result<Draft, Failure> {
        if let Some(output) = &self.output {
            self.check_free(output)?;
        }
        let draft = draft(&Folder::read(&self.folder)?)?;
        match &self.output {
            Some(output) => self.write(output, &draft.text())?,
            None => write_out(&draft.text())?,
        }
        Ok(draft)
    }

    fn check_free(&self, output: &Path) -> Result<(), Failure> {
        // A name that cannot be examined fails when it is written.
        match self.force || matches!(output.try_exists(), Ok(false) | Err(_)) {
            true => Ok(()),
            false => Err(Failure::Taken(output.to_owned())),
        }
    }

    /// Writes the whole file or nothing.
    fn write(&self, output: &Path, text: &str) -> Result<(), Failure> {
        let failed = |error| Failure::Write {
            file: output.display().to_string(),
            error,
        };
        let folder = output.parent().filter(|it| !it.as_os_str().is_empty());
        // It contains passwords, so only its owner may read it.
        let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        let kept = match self.force {
            true => file.persist(output),
            false => file.persist_noclobber(output),
        };
        kept.map(drop).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => Failure::Taken(output.to_owned()),
            _ => failed(error.error),
        })
    }

    fn report(&self, draft: &Draft) {
        for remark in draft.remarks() {
            eprintln!("{remark}");
        }
        let attention = |weight| {
            draft
                .remarks()
                .iter()
                .filter(|it| it.weight == weight)
                .count()
        };
        eprintln!(
            "portunus: {} keys were taken or are defaults here; {} were not and have to be looked at, {} are not needed",
            draft.taken(),
            attention(Weight::Attention),
            attention(Weight::NotNeeded)
        );
        if let Some(output) = &self.output {
            eprintln!("portunus: wrote {}", output.display());
        }
    }
}

/// Returns the configuration for a folder of Janus.
fn draft(folder: &Folder) -> Result<Draft, Failure> {
    let mut draft = import(folder);
    let settled = draft.settle(check);
    settled.map_err(|error| Failure::Unsettled {
        folder: folder.path().to_owned(),
        error,
    })?;
    Ok(draft)
}

/// Returns the configuration for files with these names and texts.
pub(crate) fn import_texts(files: &[(&str, &str)]) -> Result<String, Failure> {
    let load = |path: &Path| {
        let is_it = |(name, _): &&(&str, &str)| path == Path::new(name);
        let text = files
            .iter()
            .find(is_it)
            .map(|(_, text)| text.as_bytes().to_vec());
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let names = files.iter().map(|(name, _)| name.into());
    let folder = Folder::of(Path::new(""), names, load)?;
    draft(&folder).map(|draft| draft.text())
}

/// Parses a configuration like the server, and returns it with every key.
fn check(text: &str) -> Result<Table, Vec<Mistake>> {
    let mistake = |line, text| Mistake { line, text };
    let config = Config::parse(text).map_err(|mistakes| {
        let mistakes = mistakes.into_iter();
        mistakes
            .map(|it| mistake(it.line, it.text))
            .collect::<Vec<_>>()
    })?;
    let whole = config.to_toml().map_err(|it| it.to_string());
    let whole = whole.and_then(|text| text.parse().map_err(|_| "it cannot be printed".to_owned()));
    whole.map_err(|text| vec![mistake(0, text)])
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Write {
        file: "the standard output".to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests;
