//! A serial line at 115200 baud.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::thread;
use std::time::{Duration, Instant};

use crate::meter::Absent;

const SPEED: libc::speed_t = libc::B115200;
/// The time that the line has to send what is written, before its settings are restored.
const SENT_MAX: Duration = Duration::from_millis(100);
/// Lists the major numbers of all terminals and serial lines, in the third column.
const DRIVERS: &str = "/proc/tty/drivers";

/// An open line. Dropping it restores the settings that it had.
pub struct Serial {
    file: File,
    before: libc::termios,
}

impl Serial {
    pub fn open(path: &str) -> Result<Serial, Absent> {
        if !may_be_tty(path) {
            let text = format!("{path} is no serial device, but a file or another device");
            return Err(Absent::because(text));
        }
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let file = opened.map_err(|error| refusal(path, &error))?;
        let descriptor = file.as_raw_fd();
        // SAFETY: a termios is plain data, and the kernel fills it.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: `before` outlives the call.
        if unsafe { libc::tcgetattr(descriptor, &mut before) } != 0 {
            let text = format!("{path} is no serial device, but a file or another device");
            return Err(Absent::because(text));
        }
        // The lock ends with this process, however it ends.
        // SAFETY: plain system call.
        if unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let text = format!("{path}: another program reads this meter; end it first");
            return Err(Absent::because(text));
        }
        let mut settings = before;
        // SAFETY: `settings` outlives the calls.
        let is_set = unsafe {
            libc::cfmakeraw(&mut settings);
            libc::cfsetspeed(&mut settings, SPEED);
            settings.c_cflag |= libc::CLOCAL | libc::CREAD;
            settings.c_cflag &= !libc::CSTOPB;
            libc::tcflush(descriptor, libc::TCIOFLUSH);
            libc::tcsetattr(descriptor, libc::TCSANOW, &settings)
        };
        if is_set != 0 {
            let error = io::Error::last_os_error();
            return Err(Absent::because(format!("{path}: cannot be set to 115200 baud: {error}")));
        }
        Ok(Serial { file, before })
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Returns the bytes that the line has not sent yet; 0 if the device is gone.
    fn unsent_bytes(&self) -> libc::c_int {
        let mut bytes = 0;
        // SAFETY: `bytes` outlives the call.
        match unsafe { libc::ioctl(self.descriptor(), libc::TIOCOUTQ, &mut bytes) } {
            0 => bytes,
            _ => 0,
        }
    }

    /// Writes a command, which fits into the buffer of the line.
    pub fn write(&self, command: &[u8]) -> io::Result<()> {
        (&self.file).write_all(command)
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        // TCSADRAIN would wait for a device that does not read.
        let until = Instant::now() + SENT_MAX;
        while self.unsent_bytes() > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        // The device may be gone.
        // SAFETY: `before` came from this descriptor.
        unsafe { libc::tcsetattr(self.file.as_raw_fd(), libc::TCSANOW, &self.before) };
    }
}

/// Returns whether a path may be a serial line, without opening it: opening a watchdog restarts the
/// machine later. Opening a path that is not there says so.
fn may_be_tty(path: &str) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return true };
    let drivers = std::fs::read_to_string(DRIVERS).unwrap_or_default();
    let mut majors = drivers.lines().filter_map(|line| line.split_ascii_whitespace().nth(2));
    let major = libc::major(metadata.rdev()).to_string();
    metadata.file_type().is_char_device() && majors.any(|known| known == major)
}

fn refusal(path: &str, error: &io::Error) -> Absent {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let present = devices();
            let present = if present.is_empty() { "none".into() } else { present.join(", ") };
            Absent::because(format!(
                "{path}: no such device; serial devices over USB here: {present}. Plug the meter \
                 in, and see `dmesg | tail`."
            ))
        }
        io::ErrorKind::PermissionDenied => {
            let group = group_of(path);
            Absent {
                reason: format!("no right to {path}, which belongs to the group {group}"),
                grant: format!("sudo usermod -aG {group} $USER, then log in again"),
            }
        }
        _ => Absent::because(format!("{path}: {error}")),
    }
}

fn devices() -> Vec<String> {
    let names = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut devices: Vec<String> = names
        .filter(|name| name.starts_with("ttyUSB") || name.starts_with("ttyACM"))
        .map(|name| format!("/dev/{name}"))
        .collect();
    devices.sort();
    devices
}

/// Returns the name or the number of the group that a device belongs to.
fn group_of(path: &str) -> String {
    let Ok(metadata) = std::fs::metadata(path) else { return "of the device".into() };
    let mut buffer = [0 as libc::c_char; 4096];
    // SAFETY: a group is plain data, and the C library fills it.
    let mut group: libc::group = unsafe { std::mem::zeroed() };
    let mut found: *mut libc::group = std::ptr::null_mut();
    // SAFETY: all pointers outlive the call.
    let code = unsafe {
        libc::getgrgid_r(
            metadata.gid(), &mut group, buffer.as_mut_ptr(), buffer.len(), &mut found,
        )
    };
    if code != 0 || found.is_null() {
        return metadata.gid().to_string();
    }
    // SAFETY: the name points into `buffer`.
    let name: CString = unsafe { CStr::from_ptr(group.gr_name) }.into();
    name.to_string_lossy().into_owned()
}
