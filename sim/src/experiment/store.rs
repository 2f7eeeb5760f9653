//! A folder of results. Each run has a folder of its own in it, whose name ends with the run's key:
//! BLAKE3 of everything that the run depends on. So a result is found again, and one that depends
//! on something else is never taken for it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::Value;

use crate::results::document;
use crate::results::estimates::{self, Sampling};
use crate::results::index::index;
use crate::results::parquet;
use crate::results::provenance::Provenance;
use crate::results::table::Table;

/// Letters of a key in a folder's name; the whole key is in the result.
const KEY_LETTERS: usize = 16;
/// The result as JSON. It is written last: a folder that has it is whole.
const RESULT: &str = "result.json";
/// How long the index may be in the works elsewhere, and the time between two looks.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Why a result cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("{}: the results cannot be written or read: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// What is there already is no folder.
    #[error("{}: this is no folder; results are written to a folder", path.display())]
    NoFolder {
        /// Where it is.
        path: PathBuf,
    },
    /// A file is not what it is called.
    #[error("{}: this is no result of casemate sim ({what})", path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Another process has the lock.
    #[error(
        "{}: another process has been making the index of these results for a minute; \
         all results are written, and the same command makes the index",
        path.display()
    )]
    Locked {
        /// The file with the lock.
        path: PathBuf,
    },
    /// The library of the Parquet format refused.
    #[error("a Parquet file cannot be made: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

impl Store {
    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let is_other = |error: &io::Error| error.kind() == ErrorKind::AlreadyExists;
        fs::create_dir_all(folder).map_err(|error| match is_other(&error) {
            true => StoreError::NoFolder { path: folder.to_owned() },
            false => io_error(folder)(error),
        })?;
        Ok(Store { folder: folder.to_owned() })
    }

    /// The result of a run that depends on just this, and its folder, if it is there and whole.
    #[must_use]
    pub fn find(&self, scheme: &str, provenance: &Provenance) -> Option<(Value, PathBuf)> {
        let key = provenance.key()?;
        let path = self.result_path(scheme, provenance)?;
        let result = result(&path).ok()?;
        (result["inputs_blake3"] == key.as_str()).then_some((result, path))
    }

    /// Writes a result: JSON, CSV, Parquet, and the configuration to be given to `--config`. The
    /// folder.
    ///
    /// # Errors
    /// The system refused.
    pub fn write(
        &self,
        scheme: &str,
        provenance: &Provenance,
        result: &Value,
        config_toml: &str,
    ) -> Result<PathBuf, StoreError> {
        let path = self.result_path(scheme, provenance);
        let path = path.unwrap_or_else(|| self.folder.join(label(scheme, provenance)));
        fs::create_dir_all(&path).map_err(io_error(&path))?;
        // First out and last in: while it is missing, `find` takes no old parts for new ones.
        let _ = fs::remove_file(path.join(RESULT));
        replace(&path.join("config.toml"), config_toml.as_bytes())?;
        write_table(&path, "result", &document::table([result]))?;
        if Sampling::read(result).is_some() {
            write_table(&path, "intervals", &estimates::counters(result))?;
        }
        let samples = document::samples(result);
        if samples.rows > 0 {
            write_table(&path, "samples", &samples)?;
        }
        let text = serde_json::to_string_pretty(result).unwrap_or_default() + "\n";
        replace(&path.join(RESULT), text.as_bytes())?;
        Ok(path)
    }

    /// Makes the index anew from all results in the folder: `runs.csv` and `runs.parquet` with what
    /// people quote, `runs-all.*` with all columns. Of several processes that write results here,
    /// one at a time does so; the last one sees all. Returns which results it could not read.
    ///
    /// # Errors
    /// The system refused, or another process has been at it for a minute.
    pub fn write_index(&self) -> Result<Vec<StoreError>, StoreError> {
        let _lock = self.lock()?;
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        for file in result_files(&self.folder)? {
            let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
            match read(&file) {
                Ok(result) => found.push((folder.to_string_lossy().into_owned(), result)),
                // Its writer has taken it away again, and makes the index after us.
                Err(StoreError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => unreadable.push(error),
            }
        }
        let all = document::table(found.iter().map(|(_, result)| result));
        for (name, table) in [("runs", &index(&found)), ("runs-all", &all)] {
            write_table(&self.folder, name, table)?;
        }
        Ok(unreadable)
    }

    /// Keeps other processes from making the index, as long as the file is open.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.folder.join(".runs.lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(io_error(&path))?;
        let since = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if since.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(StoreError::Locked { path }),
                Err(error) => return Err(io_error(&path)(error.into())),
            }
        }
    }

    /// Where the result of a run belongs; `None` for a program that ran while it was simulated.
    fn result_path(&self, scheme: &str, provenance: &Provenance) -> Option<PathBuf> {
        let key = provenance.key()?;
        Some(self.folder.join(format!("{}-{}", label(scheme, provenance), &key[..KEY_LETTERS])))
    }
}

/// A table as NAME.csv and NAME.parquet.
fn write_table(folder: &Path, name: &str, table: &Table) -> Result<(), StoreError> {
    replace(&folder.join(format!("{name}.csv")), table.csv().as_bytes())?;
    replace(&folder.join(format!("{name}.parquet")), &parquet::bytes(table)?)
}

/// All results below a folder, or the one in a file, in the order of their folders' names.
///
/// # Errors
/// There is none, or one cannot be read.
pub fn results(path: &Path) -> Result<Vec<Value>, StoreError> {
    if path.is_file() {
        return Ok(vec![read(path)?]);
    }
    let direct = Some(path.join(RESULT)).filter(|file| file.is_file());
    let found: Vec<PathBuf> = direct.into_iter().chain(result_files(path)?).collect();
    if found.is_empty() {
        let what = format!("neither it nor a folder in it has a {RESULT}");
        return Err(StoreError::NotAResult { path: path.to_owned(), what });
    }
    found.iter().map(|file| read(file)).collect()
}

/// The result in a run's folder.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn result(folder: &Path) -> Result<Value, StoreError> {
    read(&folder.join(RESULT))
}

/// The results in the folders of a folder, in the order of their names.
fn result_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        files.push(entry.map_err(io_error(folder))?.path().join(RESULT));
    }
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Value, StoreError> {
    let bytes = fs::read(path).map_err(io_error(path))?;
    let wrong = |what: String| StoreError::NotAResult { path: path.to_owned(), what };
    let result: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if !result["statistics"].is_object() {
        return Err(wrong("it has no statistics".to_owned()));
    }
    match result["schema"].as_u64() {
        Some(schema) if schema == u64::from(document::SCHEMA) => Ok(result),
        schema => Err(wrong(format!(
            "its schema is {schema:?}, and this Casemate reads {}",
            document::SCHEMA
        ))),
    }
}

/// What people see of a run in a folder's name.
fn label(scheme: &str, provenance: &Provenance) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || "+-_.".contains(c) { c } else { '_' };
    let name: String = provenance.trace.name.chars().take(64).map(clean).collect();
    let scheme: String = scheme.chars().map(clean).collect();
    format!("{name}-{scheme}")
}

/// Replaces a file in one step: an interrupted process leaves the old one or the new one.
///
/// # Errors
/// The system refused.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(format!(".{}.tmp", std::process::id()));
    let neighbour = Path::new(&neighbour);
    let written = fs::write(neighbour, bytes).and_then(|()| fs::rename(neighbour, path));
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(neighbour);
    }
    written.map_err(io_error(path))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |error| StoreError::Io { path, error }
}
