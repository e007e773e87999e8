//! The user's cache folder, with blobs by content hash and builds by key.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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
///
/// There is no fixed folder in /tmp, because any user could create it first.
fn default_folder() -> Option<PathBuf> {
    let set = |key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("WATTWIRE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("wattwire")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/wattwire")))
}

/// Refuses a folder that another user can write to, because builds in it are executed.
fn check_owner(folder: &Path) -> Result<(), String> {
    let Ok(status) = fs::metadata(folder) else { return Ok(()) };
    // SAFETY: a plain system call.
    let own = unsafe { libc::geteuid() };
    match (status.uid() == own || status.uid() == 0) && status.mode() & 0o002 == 0 {
        true => Ok(()),
        false => Err(format!(
            "{}: the cache folder belongs to user {} (mode {:o}), who could put programs into it; \
             set WATTWIRE_CACHE to a folder that only this user can write to",
            folder.display(),
            status.uid(),
            status.mode() & 0o777
        )),
    }
}

impl Cache {
    /// Returns the user's cache, which it creates for this user only.
    pub fn find() -> Result<Cache, String> {
        let Some(folder) = default_folder() else {
            return Err(
                "the environment has no HOME, so there is no folder for the build cache; set \
                        WATTWIRE_CACHE to a folder that only this user can write to"
                    .into(),
            );
        };
        if let Some(parent) = folder.parent() {
            let _ = fs::create_dir_all(parent);
        }
        // A folder that cannot be created is reported by the first request that needs it.
        let _ = fs::DirBuilder::new().mode(0o700).create(&folder);
        check_owner(&folder)?;
        // Builds and nodes start in other folders, in which a relative path leads elsewhere.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        Ok(Cache { folder })
    }

    #[cfg(test)]
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// Returns the absolute path of the cache folder.
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

    /// Returns whether the blob has the content that its name states; removes another content.
    fn is_intact(&self, hash: &str) -> bool {
        let blob = self.blob(hash);
        match hash_file(&blob) {
            Ok(actual_hash) if actual_hash == hash => true,
            Ok(_) => {
                let _ = fs::remove_file(&blob);
                false
            }
            Err(_) => false,
        }
    }

    pub fn have(&self, request: &Have) -> Answer {
        let mut missing = Vec::new();
        for hash in &request.hashes {
            check_hash(hash)?;
            if !self.is_intact(hash) {
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
            .and_then(|hash| fs::File::open(&part)?.sync_all().map(|()| hash))
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
        let actual_hash = fs::File::open(&blob)
            .and_then(|mut source| copy_hashed(&mut source, target))
            .and_then(|actual_hash| {
                fs::set_permissions(target, fs::Permissions::from_mode(mode & 0o777))?;
                Ok(actual_hash)
            })
            .map_err(|error| Problem::io("copying blob", &blob, &error))?;
        if actual_hash == hash {
            return Ok(());
        }
        let _ = (fs::remove_file(&blob), fs::remove_file(target));
        Err(Problem::failed(format!(
            "{}: damaged: its content has the hash {actual_hash}; it was removed; the next build \
             sends it again",
            blob.display()
        )))
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
    fn a_changed_blob_is_not_used_and_is_put_again() {
        let cache = scratch("changed");
        let have = Have { hashes: vec![ABC.into()] };
        let target = cache.folder.join("target");
        for check_first in [true, false] {
            put(&cache, ABC, "YWJj").unwrap();
            fs::write(cache.blob(ABC), "abd").unwrap();
            if check_first {
                assert_eq!(cache.have(&have).unwrap(), json!({"missing": [ABC]}));
            } else {
                let problem = cache.copy_to(ABC, &target, 0o644).unwrap_err();
                assert!(problem.message.contains("damaged"), "{}", problem.message);
            }
            assert!(!cache.blob(ABC).exists() && !target.exists());
        }
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let cache = scratch("owner");
        fs::create_dir_all(&cache.folder).unwrap();
        let set = |mode| fs::set_permissions(&cache.folder, fs::Permissions::from_mode(mode));
        set(0o755).unwrap();
        assert_eq!(check_owner(&cache.folder), Ok(()));
        set(0o777).unwrap();
        assert!(check_owner(&cache.folder).unwrap_err().contains("mode 777"));
        set(0o700).unwrap();
        // SAFETY: plain system calls; only root can give a folder away.
        let name = std::ffi::CString::new(cache.folder.to_str().unwrap()).unwrap();
        if unsafe { libc::chown(name.as_ptr(), 12345, 12345) } == 0 {
            assert!(check_owner(&cache.folder).unwrap_err().contains("user 12345"));
        }
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    #[test]
    fn a_path_is_not_a_valid_hash() {
        assert!(check_hash("../../../../etc/passwd").is_err());
    }
}
