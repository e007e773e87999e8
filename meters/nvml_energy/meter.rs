//! The energy counters of NVIDIA GPUs, from NVML, the library of their driver. It is loaded while
//! the agent runs, because only machines with the driver have it.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void, CStr};

use serde_json::{json, Map};

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree};

const LIBRARY: &CStr = c"libnvidia-ml.so.1";
const SUCCESS: c_int = 0;
/// NVML_DEVICE_NAME_V2_BUFFER_SIZE.
const NAME_BYTES: usize = 96;
const UJ_PER_MJ: u64 = 1000;

type Device = *mut c_void;
type Call = unsafe extern "C" fn() -> c_int;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_int;
type Handle = unsafe extern "C" fn(c_uint, *mut Device) -> c_int;
type Name = unsafe extern "C" fn(Device, *mut c_char, c_uint) -> c_int;
type Energy = unsafe extern "C" fn(Device, *mut c_ulonglong) -> c_int;

/// The initialized library. Dropping it ends and unloads it.
struct Nvml {
    library: Library,
    energy: Energy,
}

/// The loaded library.
struct Library(*mut c_void);

struct Gpu {
    device: Device,
    subject: String,
    name: String,
    series: Option<SeriesId>,
}

struct NvmlEnergy {
    nvml: Nvml,
    gpus: Vec<Gpu>,
}

// SAFETY: NVML may be called from any thread, and its handles belong to no thread.
unsafe impl Send for NvmlEnergy {}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    if matches!(tree, Tree::Replay(_)) {
        return Err(Absent::because("a tree of files has no library of a driver"));
    }
    let (nvml, count) = Nvml::open()?;
    let (mut gpus, mut refused) = (Vec::new(), Map::new());
    for index in 0..count {
        let subject = format!("gpu-{index}");
        match nvml.gpu(index, &subject)? {
            Ok(gpu) => gpus.push(gpu),
            Err(code) => _ = refused.insert(subject, json!(described(code))),
        }
    }
    if gpus.is_empty() {
        return Err(Absent::because(match count {
            0 => "the NVIDIA driver has no GPU".to_string(),
            _ => format!("no GPU with a counter: {}", json!(refused)),
        }));
    }
    let names: Map<_, _> =
        gpus.iter().map(|gpu| (gpu.subject.clone(), gpu.name.as_str().into())).collect();
    let info = Map::from_iter([("gpus".into(), names.into()), ("refused".into(), json!(refused))]);
    Ok(Opened { meter: Box::new(NvmlEnergy { nvml, gpus }), info })
}

impl Nvml {
    /// Loads and initializes the library. Returns it with its number of GPUs.
    fn open() -> Result<(Nvml, c_uint), Absent> {
        let library = Library::load()?;
        // SAFETY: these are the signatures of nvml.h.
        let (start, count, energy) = unsafe {
            let start: Call = library.function(c"nvmlInit_v2")?;
            let count: Count = library.function(c"nvmlDeviceGetCount_v2")?;
            let energy: Energy = library.function(c"nvmlDeviceGetTotalEnergyConsumption")?;
            (start, count, energy)
        };
        // SAFETY: takes no argument.
        succeeded("nvmlInit_v2", unsafe { start() })?;
        let nvml = Nvml { library, energy };
        let mut gpus = 0;
        // SAFETY: `gpus` outlives the call.
        succeeded("nvmlDeviceGetCount_v2", unsafe { count(&mut gpus) })?;
        Ok((nvml, gpus))
    }

    /// Returns a GPU with an energy counter, or the code with which NVML refuses it.
    fn gpu(&self, index: c_uint, subject: &str) -> Result<Result<Gpu, c_int>, Absent> {
        // SAFETY: these are the signatures of nvml.h.
        let (handle, name) = unsafe {
            let handle: Handle = self.library.function(c"nvmlDeviceGetHandleByIndex_v2")?;
            let name: Name = self.library.function(c"nvmlDeviceGetName")?;
            (handle, name)
        };
        let mut device: Device = std::ptr::null_mut();
        // SAFETY: `device` outlives the call.
        let code = unsafe { handle(index, &mut device) };
        if code != SUCCESS {
            return Ok(Err(code));
        }
        if let Err(code) = self.energy_uj(device) {
            return Ok(Err(code));
        }
        let mut text = [0 as c_char; NAME_BYTES];
        // SAFETY: the library writes at most this many bytes. The last one remains 0.
        let code = unsafe { name(device, text.as_mut_ptr(), NAME_BYTES as c_uint - 1) };
        let name = match code {
            // SAFETY: the text ends with 0.
            SUCCESS => unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        Ok(Ok(Gpu { device, subject: subject.into(), name, series: None }))
    }

    fn energy_uj(&self, device: Device) -> Result<u64, c_int> {
        let mut energy_mj = 0;
        // SAFETY: the handle is the library's, which is loaded; `energy_mj` outlives the call.
        match unsafe { (self.energy)(device, &mut energy_mj) } {
            SUCCESS => Ok(energy_mj.saturating_mul(UJ_PER_MJ)),
            code => Err(code),
        }
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: this is the signature of nvml.h, and the library was initialized.
        unsafe {
            if let Ok(end) = self.library.function::<Call>(c"nvmlShutdown") {
                end();
            }
        }
    }
}

impl Library {
    fn load() -> Result<Library, Absent> {
        // SAFETY: loading executes the library's own initialization only.
        let handle = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: the error is null, or a text that lives until the next such call.
            let error = unsafe {
                let text = libc::dlerror();
                match text.is_null() {
                    true => c"",
                    false => CStr::from_ptr(text),
                }
            };
            let error = error.to_string_lossy();
            return Err(Absent::because(format!("the NVIDIA driver is not installed: {error}")));
        }
        Ok(Library(handle))
    }

    /// Returns a function of the library.
    ///
    /// # Safety
    /// `F` is the type of this function.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, Absent> {
        let function = libc::dlsym(self.0, name.as_ptr());
        if function.is_null() {
            let (library, name) = (LIBRARY.to_string_lossy(), name.to_string_lossy());
            return Err(Absent::because(format!(
                "{library} has no {name}; install a newer NVIDIA driver"
            )));
        }
        Ok(std::mem::transmute_copy(&function))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is from dlopen.
        unsafe { libc::dlclose(self.0) };
    }
}

fn succeeded(function: &str, code: c_int) -> Result<(), Absent> {
    match code {
        SUCCESS => Ok(()),
        code => Err(Absent::because(format!("{function}: {}", described(code)))),
    }
}

/// Returns what an error of NVML means (enum nvmlReturn_t).
fn described(code: c_int) -> String {
    let text = match code {
        3 => "this GPU has no energy counter; Volta and newer ones have",
        4 => "no right to the GPU",
        9 => "the NVIDIA driver is not loaded",
        15 => "the GPU has fallen off the bus",
        18 => "the library and the loaded driver have different versions; restart the machine",
        _ => "NVML refuses",
    };
    format!("{text} (error {code})")
}

impl Meter for NvmlEnergy {
    fn declare(&mut self, samples: &mut Samples) {
        for gpu in &mut self.gpus {
            let info = Map::from_iter([("name".into(), gpu.name.as_str().into())]);
            let place = Place { info, ..Place::of(&gpu.subject) };
            gpu.series = Some(samples.declare("energy_gpu", place));
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        for gpu in &self.gpus {
            let Some(series) = gpu.series else { continue };
            samples.begin();
            match self.nvml.energy_uj(gpu.device) {
                Ok(energy_uj) => samples.counter(series, energy_uj),
                Err(_) => samples.lost(series),
            }
        }
    }
}
