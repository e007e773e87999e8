//! The load of this host since boot, which a controller requests before a run.

use std::io;

use serde_json::{json, Value};

use crate::clock;
use crate::cpu_times::{tick_ns, BusyTime, CpuTimes};
use crate::meter::Tree;
use crate::others::Others;

/// Returns the CPU times since boot summed over all CPUs, the number of CPUs, and the CPU demand of
/// other processes since the first request.
pub fn since_start(
    tree: &Tree,
    others: &mut Others,
    busy_time: &mut BusyTime,
) -> io::Result<Value> {
    let other_demand_ns = others.read(clock::monotonic_ns(), &[]).demand_ns.round() as i64;
    let stat = tree.text("proc/stat")?;
    let times = CpuTimes::parse(stat.as_bytes())
        .ok_or_else(|| io::Error::other("the first line has no CPU times"))?;
    let tick_ns = tick_ns(tree);
    let ns = |ticks: u64| ticks * tick_ns;
    let busy_ns = busy_time.advance(&times);
    Ok(json!({"busy_ns": busy_ns, "steal_ns": ns(times.steal),
              "total_ns": busy_ns + ns(times.unused()), "cpus": times.cpus, "tick_ns": tick_ns,
              "other_demand_ns": other_demand_ns}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_this_host_is_plausible() {
        let mut others = Others::new(&Tree::Live);
        let load = since_start(&Tree::Live, &mut others, &mut BusyTime::new(&Tree::Live)).unwrap();
        assert_eq!(load["other_demand_ns"], 0, "the demand counts from the first request");
        assert!(load["cpus"].as_u64().unwrap() >= 1);
        assert!(load["total_ns"].as_u64().unwrap() > load["busy_ns"].as_u64().unwrap() / 2);
    }
}
