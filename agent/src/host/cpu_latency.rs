//! The maximum wake-up latency of idle CPUs (PM QoS). The kernel chooses only idle states with at
//! most the requested latency while a process holds the file open.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{json, Value};

use crate::protocol::{Answer, Hold, Kind, Problem};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// The request of this agent. The kernel drops it when the file is closed, also if the agent dies.
pub struct CpuLatency {
    path: PathBuf,
    held: Option<File>,
}

impl CpuLatency {
    /// Finds the device. For tests, WATTWIRE_CPU_LATENCY names another file.
    pub fn find() -> CpuLatency {
        let path = std::env::var_os("WATTWIRE_CPU_LATENCY").unwrap_or_else(|| DEVICE.into());
        CpuLatency { path: path.into(), held: None }
    }

    /// Returns the path, and the reason that it cannot be written or null. Requests nothing, as
    /// an open file without a value has the kernel's default.
    pub fn describe(&self) -> Value {
        let reason = self.open().err().map(|problem| problem.message);
        json!({"path": self.path, "absent": reason})
    }

    /// Requests a latency, which replaces the current request.
    pub fn hold(&mut self, request: &Hold) -> Answer {
        if request.us < 0 {
            let message = format!("cpu_latency: us: found {}; allowed: 0 or more", request.us);
            return Err(Problem::new(Kind::Usage, message));
        }
        drop(self.held.take());
        let mut file = self.open()?;
        file.write_all(&request.us.to_ne_bytes())
            .map_err(|error| Problem::io("cpu_latency: writing", &self.path, &error))?;
        self.held = Some(file);
        Ok(json!({"path": self.path, "us": request.us}))
    }

    /// Drops the request. Without a request, this has no effect.
    pub fn release(&mut self) -> Answer {
        Ok(json!({"released": self.held.take().is_some()}))
    }

    fn open(&self) -> Result<File, Problem> {
        // The descriptor is closed on exec, so that no node can hold the request.
        File::options()
            .write(true)
            .open(&self.path)
            .map_err(|error| Problem::io("opening", &self.path, &error))
    }
}
