//! Facts about this host, each with its unit and the check that applies when runs are combined.

use serde_json::{json, Map, Value};

use crate::cgroup::{Cgroups, Rung};
use crate::meter::Tree;

pub fn boot_id(tree: &Tree) -> String {
    tree.text("proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Returns the identity of the time namespace, or an empty text on a kernel without them.
pub fn time_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// Returns the rights of this agent beyond those of an ordinary user.
pub fn rights(cgroups: &Cgroups) -> Value {
    // SAFETY: plain system call.
    let root = unsafe { libc::geteuid() } == 0;
    json!({"root": root, "own_cgroups": cgroups.rung != Rung::None})
}

/// The check of a fact when runs are combined.
#[derive(Clone, Copy)]
enum Check {
    Equal,
    Report,
}

/// Collects facts and omits those that the host does not provide.
struct Facts(Vec<Value>);

impl Facts {
    fn add(&mut self, key: &str, value: Option<Value>, unit: &str, check: Check) {
        let check = match check {
            Check::Equal => "equal",
            Check::Report => "report",
        };
        if let Some(value) = value.filter(|value| *value != json!("")) {
            self.0.push(json!({"key": key, "value": value, "unit": unit, "check": check}));
        }
    }

    fn text(&mut self, key: &str, tree: &Tree, path: &str, check: Check) {
        self.add(key, tree.text(path).ok().map(Value::from), "", check);
    }
}

pub fn facts(tree: &Tree) -> Vec<Value> {
    let mut facts = Facts(Vec::new());
    software(&mut facts, tree);
    facts.add("board", board(tree).map(Value::from), "", Check::Report);
    processor(&mut facts, tree);
    power(&mut facts, tree);
    facts.0
}

/// Returns the name of the board: from the device tree, else vendor and product of the firmware.
fn board(tree: &Tree) -> Option<String> {
    if let Ok(model) = tree.text("proc/device-tree/model") {
        return Some(model.trim_end_matches('\0').to_string());
    }
    let text = |name: &str| tree.text(&format!("sys/class/dmi/id/{name}")).ok();
    let names = [text("sys_vendor")?, text("product_name")?];
    Some(names.join(" "))
}

fn software(facts: &mut Facts, tree: &Tree) {
    facts.text("kernel", tree, "proc/sys/kernel/osrelease", Check::Equal);
    facts.text("kernel_build", tree, "proc/sys/kernel/version", Check::Report);
    facts.add("architecture", Some(std::env::consts::ARCH.into()), "", Check::Equal);
    facts.add("libc", Some(libc_version().into()), "", Check::Equal);
    facts.add("boot_id", Some(boot_id(tree).into()), "", Check::Report);
    let clocksource = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    facts.text("clocksource", tree, clocksource, Check::Equal);
    let os = tree.text("etc/os-release").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(Value::from(line.trim_matches('"')))
    });
    facts.add("operating_system", os, "", Check::Report);
    facts.add("virtualisation", Some(virtualisation(tree).into()), "", Check::Equal);
    let memory = tree.text("proc/meminfo").ok().and_then(|text| {
        let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(Value::from(kib.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024))
    });
    facts.add("memory_total", memory, "bytes", Check::Equal);
}

/// Returns the processor's model name or, on boards without a model name, the name of the board.
pub fn cpu_name(cpuinfo: &str) -> Option<&str> {
    field(cpuinfo, &["model name", "Model", "Hardware"])
}

fn field<'a>(cpuinfo: &'a str, names: &[&str]) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        names.contains(&key.trim()).then(|| value.trim())
    })
}

fn processor(facts: &mut Facts, tree: &Tree) {
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    facts.add("cpu_name", cpu_name(&cpuinfo).map(Value::from), "", Check::Equal);
    let microcode = field(&cpuinfo, &["microcode"]).map(Value::from);
    facts.add("cpu_microcode", microcode, "", Check::Report);
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    facts.add("cpus", Some(cpus.into()), "count", Check::Equal);
    let cpu = "sys/devices/system/cpu";
    facts.text("smt", tree, &format!("{cpu}/smt/control"), Check::Equal);
    facts.text("cpus_isolated", tree, &format!("{cpu}/isolated"), Check::Report);
    let frequency = format!("{cpu}/cpu0/cpufreq");
    facts.text("governor", tree, &format!("{frequency}/scaling_governor"), Check::Equal);
    facts.text("frequency_driver", tree, &format!("{frequency}/scaling_driver"), Check::Equal);
    let maximum = tree.text(&format!("{frequency}/scaling_max_freq")).ok();
    let maximum = maximum.and_then(|text| text.parse::<u64>().ok()).map(|khz| khz * 1000);
    facts.add("frequency_max", maximum.map(Value::from), "hz", Check::Equal);
    facts.add("turbo", turbo(tree).map(Value::from), "", Check::Equal);
    facts.text("idle_driver", tree, &format!("{cpu}/cpuidle/current_driver"), Check::Report);
}

fn turbo(tree: &Tree) -> Option<&'static str> {
    let no_turbo = tree.text("sys/devices/system/cpu/intel_pstate/no_turbo").ok();
    let boost = tree.text("sys/devices/system/cpu/cpufreq/boost").ok();
    match (no_turbo.as_deref(), boost.as_deref()) {
        (Some("0"), _) | (None, Some("1")) => Some("on"),
        (Some(_), _) | (None, Some(_)) => Some("off"),
        (None, None) => None,
    }
}

fn power(facts: &mut Facts, tree: &Tree) {
    let folder = "sys/class/power_supply";
    let mut supplies = Map::new();
    for name in tree.list(folder).unwrap_or_default() {
        let kind = tree.text(&format!("{folder}/{name}/type")).unwrap_or_default();
        let state = match kind.as_str() {
            "Battery" => tree.text(&format!("{folder}/{name}/status")),
            _ => tree.text(&format!("{folder}/{name}/online")),
        };
        supplies.insert(format!("{kind} {name}"), state.unwrap_or_default().into());
    }
    let known = (!supplies.is_empty()).then_some(Value::Object(supplies));
    facts.add("power_supplies", known, "", Check::Report);
    facts.text("thermal_zone_type", tree, "sys/class/thermal/thermal_zone0/type", Check::Report);
}

/// Returns the vendor of the hypervisor, "hypervisor" for an unknown vendor, or "none".
pub fn virtualisation(tree: &Tree) -> String {
    let vendor = tree.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = tree.text("sys/class/dmi/id/product_name").unwrap_or_default();
    for known in ["QEMU", "VMware", "innotek", "Microsoft", "Amazon EC2", "Google", "Xen"] {
        let matches = vendor.contains(known) || product.contains(known);
        if matches && !product.contains("metal") {
            return known.to_string();
        }
    }
    let flags = tree.text("proc/cpuinfo").unwrap_or_default();
    let hypervisor = flags
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    if hypervisor { "hypervisor" } else { "none" }.into()
}

/// Returns the C library of the host. A static agent asks its program `getconf`.
fn libc_version() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function returns a constant, zero-terminated string.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    {
        let answer = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output();
        let text = answer.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_string());
        text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "not glibc".into())
    }
}
