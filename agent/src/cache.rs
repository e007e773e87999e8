//! The user's cache folder, with blobs by content hash and builds by key.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

use crate::own::Identity;
use crate::protocol::{Answer, Have, Problem, Put};

#[derive(Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// Returns `WATTWIRE_CACHE`, else `XDG_CACHE_HOME/wattwire`, else `~/.cache/wattwire`.
fn default_folder() -> PathBuf {
    let set = |key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("WATTWIRE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("wattwire")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/wattwire")))
        .unwrap_or_else(|| PathBuf::from("/tmp/wattwire-cache"))
}

impl Cache {
    pub fn find() -> Cache {
        Cache { folder: default_folder() }
    }

    #[cfg(test)]
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// Returns the path of the cache folder, which is absolute unless a variable of the environment
    /// is relative.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn builds(&self) -> PathBuf {
        self.folder.join("builds")
    }

    /// The folder that replaces `{cache}` in a build. Each compiler has its cache in a subfolder.
    pub fn compilers(&self) -> PathBuf {
        self.folder.join("compilers")
    }

    /// The folder below which a controller writes the files of runs.
    pub fn attempts(&self) -> PathBuf {
        self.folder.join("attempts")
    }

    /// The folder in which agents record the shared memory that their processes use.
    pub fn shared_memory(&self) -> PathBuf {
        self.folder.join("shared-memory")
    }

    fn blob(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(hash)
    }

    pub fn have(&self, request: &Have) -> Answer {
        let mut missing = Vec::new();
        for hash in &request.hashes {
            check_hash(hash)?;
            if !self.blob(hash).exists() {
                missing.push(hash);
            }
        }
        Ok(json!({"missing": missing}))
    }

    /// Stores a blob: writes a temporary file, verifies its hash and renames it.
    pub fn put(&self, request: &Put) -> Answer {
        check_hash(&request.hash)?;
        let mut source: Box<dyn Read> = match (&request.path, &request.base64) {
            (Some(path), None) => Box::new(
                fs::File::open(path).map_err(|error| Problem::io("put: opening", path, &error))?,
            ),
            (None, Some(text)) => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(text);
                Box::new(io::Cursor::new(
                    decoded.map_err(|error| Problem::usage(format!("put: base64: {error}")))?,
                ))
            }
            _ => return Err(Problem::usage("put: exactly one of path and base64 is required")),
        };
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let blob = self.blob(&request.hash);
        let name = format!("{}.{}.{serial}.part", request.hash, Identity::own());
        let part = blob.with_file_name(name);
        let actual_hash = copy_hashed(source.as_mut(), &part)
            .map_err(|error| Problem::io("put: writing", &part, &error))?;
        if actual_hash != request.hash {
            let _ = fs::remove_file(&part);
            return Err(Problem::usage(format!(
                "put: hash: the request announces {}; the content has {actual_hash}",
                request.hash
            )));
        }
        fs::rename(&part, &blob).map_err(|error| Problem::io("put: renaming", &part, &error))?;
        Ok(Value::Null)
    }

    /// Copies a blob to `target`. A build may change the copy.
    pub fn copy_to(&self, hash: &str, target: &Path, mode: u32) -> Result<(), Problem> {
        check_hash(hash)?;
        let blob = self.blob(hash);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(|e| Problem::io("making folder", folder, &e))?;
        }
        fs::copy(&blob, target)
            .and_then(|_| fs::set_permissions(target, fs::Permissions::from_mode(mode & 0o777)))
            .map_err(|error| Problem::io("copying blob", &blob, &error))
    }
}

pub fn check_hash(hash: &str) -> Result<(), Problem> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match hash.len() == 64 && hash.bytes().all(hex) {
        true => Ok(()),
        false => Err(Problem::usage(format!(
            "hash: found {hash:?}; allowed: a sha256 as 64 lower-case hexadecimal digits"
        ))),
    }
}

fn copy_hashed(source: &mut dyn Read, target: &Path) -> io::Result<String> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create(target)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let length = source.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        digest.update(&buffer[..length]);
        file.write_all(&buffer[..length])?;
    }
    file.sync_all()?;
    Ok(hex(&digest.finalize()))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the sha256 of a file as hexadecimal digits.
pub fn hash_file(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            length => digest.update(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn scratch(name: &str) -> Cache {
        let name = format!("wattwire-cache-{name}-{}", std::process::id());
        Cache::at(std::env::temp_dir().join(name))
    }

    fn put(cache: &Cache, hash: &str, base64: &str) -> Answer {
        cache.put(&Put { hash: hash.into(), path: None, base64: Some(base64.into()) })
    }

    #[test]
    fn a_blob_is_missing_until_it_is_put() {
        let cache = scratch("put");
        let have = Have { hashes: vec![ABC.into()] };
        assert_eq!(cache.have(&have).unwrap(), json!({"missing": [ABC]}));
        put(&cache, ABC, "YWJj").unwrap();
        assert_eq!(cache.have(&have).unwrap(), json!({"missing": []}));
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    #[test]
    fn put_rejects_content_with_another_hash_and_leaves_no_file() {
        let cache = scratch("rejected");
        let problem = put(&cache, ABC, "YWJk").unwrap_err();
        assert!(problem.message.contains("announces"), "{}", problem.message);
        assert_eq!(fs::read_dir(cache.folder.join("blobs")).unwrap().count(), 0);
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    #[test]
    fn a_path_is_not_a_valid_hash() {
        assert!(check_hash("../../../../etc/passwd").is_err());
    }
}
