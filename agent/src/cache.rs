//! The user's cache folder: blobs by content hash, builds by key.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

use crate::protocol::{Answer, Have, Problem, Put};

#[derive(Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// `WATTWIRE_CACHE`, else `XDG_CACHE_HOME/wattwire`, else `~/.cache/wattwire`.
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

    pub fn builds(&self) -> PathBuf {
        self.folder.join("builds")
    }

    /// What compilers keep between builds, each in a folder of its own: `{cache}` in a build.
    pub fn compilers(&self) -> PathBuf {
        self.folder.join("compilers")
    }

    /// Where agents note the shared memory that their processes use.
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

    /// Keeps a blob: written beside its place, verified, then renamed.
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
            _ => return Err(Problem::usage("put: needed: either path or base64")),
        };
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let place = self.blob(&request.hash);
        let name = format!("{}.{}.{serial}.part", request.hash, std::process::id());
        let part = place.with_file_name(name);
        let found = copy_hashed(source.as_mut(), &part)
            .map_err(|error| Problem::io("put: writing", &part, &error))?;
        if found != request.hash {
            let _ = fs::remove_file(&part);
            let wanted = &request.hash;
            return Err(Problem::usage(format!("put: hash: found {found}; announced: {wanted}")));
        }
        fs::rename(&part, &place).map_err(|error| Problem::io("put: renaming", &part, &error))?;
        Ok(Value::Null)
    }

    /// Lays a blob out as a file of its own (a build may change it).
    pub fn lay(&self, hash: &str, target: &Path, mode: u32) -> Result<(), Problem> {
        check_hash(hash)?;
        let place = self.blob(hash);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(|e| Problem::io("making folder", folder, &e))?;
        }
        fs::copy(&place, target)
            .and_then(|_| fs::set_permissions(target, fs::Permissions::from_mode(mode & 0o777)))
            .map_err(|error| Problem::io("laying out blob", &place, &error))
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
        let got = source.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        digest.update(&buffer[..got]);
        file.write_all(&buffer[..got])?;
    }
    file.sync_all()?;
    Ok(hex(&digest.finalize()))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// sha256 of a whole file, as hexadecimal digits.
pub fn hash_file(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            got => digest.update(&buffer[..got]),
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
    fn a_blob_that_is_not_what_was_announced_is_refused_and_leaves_nothing() {
        let cache = scratch("refused");
        let problem = put(&cache, ABC, "YWJk").unwrap_err();
        assert!(problem.message.contains("announced"), "{}", problem.message);
        assert_eq!(fs::read_dir(cache.folder.join("blobs")).unwrap().count(), 0);
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    #[test]
    fn a_hash_cannot_be_a_path() {
        assert!(check_hash("../../../../etc/passwd").is_err());
    }
}
