// SPDX-License-Identifier: GPL-2.0-only
/*
 * Register powercap zones whose energy follows a stated law of busy time, for wattwire's test
 * machine. Nothing measures anything here: the sysfs is real, the energy is invented, and the names
 * of the zones say so.
 *
 * The law. Each package has the cores with its number modulo `packages`. After t seconds, of which
 * its cores were busy for b core seconds, a package has used
 *     package_idle_mw * t + package_busy_mw * b + shallow_mw * s   (mJ)
 * where s is the time during which the CPU latency limit (/dev/cpu_dma_latency) was at most
 * `shallow_us`: an idle core of real hardware then does not sleep deeply. s grows in steps of
 * `log_ms`.
 * and the memory of package 0 has used, with the busy core seconds B of all cores,
 *     dram_idle_mw * t + dram_busy_mw * B   (mJ).
 * A core is busy while it is not idle. Its idle time comes from the kernel's tick (exact to its
 * clock, not a count of ticks), so the module runs nothing between two readings but its log.
 *
 * The truth. /proc/invented_energy has a line with the law, a line with the numbers of the cores,
 * and one line every `log_ms`: CLOCK_MONOTONIC, s and the busy time of each core, all in ns.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/powercap.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/tick.h>
#include <linux/vmalloc.h>

#define PACKAGES_MAX 4
#define CORES_MAX 8

static uint packages = 2;
module_param(packages, uint, 0444);
MODULE_PARM_DESC(packages, "number of packages, 1 to 4");
static ulong package_idle_mw = 10000;
module_param(package_idle_mw, ulong, 0444);
static ulong package_busy_mw = 12000;
module_param(package_busy_mw, ulong, 0444);
static ulong shallow_mw = 6000;
module_param(shallow_mw, ulong, 0444);
static int shallow_us = 100;
module_param(shallow_us, int, 0444);
static ulong dram_idle_mw = 1500;
module_param(dram_idle_mw, ulong, 0444);
static ulong dram_busy_mw = 800;
module_param(dram_busy_mw, ulong, 0444);
static ulong range_uj = 2000000000;
module_param(range_uj, ulong, 0444);
MODULE_PARM_DESC(range_uj, "energy (uJ) at which a counter wraps");
static uint log_ms = 20;
module_param(log_ms, uint, 0444);
static uint log_lines = 1 << 17;
module_param(log_lines, uint, 0444);
MODULE_PARM_DESC(log_lines, "lines of the log; after them it stops and says so");

struct moment {
  u64 at_ns;
  u64 shallow_ns;
  u64 busy_ns[CORES_MAX];
};

static struct powercap_control_type *control;
static struct powercap_zone zones[PACKAGES_MAX];
static struct powercap_zone dram;
static struct proc_dir_entry *truth;
static struct moment *log;
static uint logged;
static struct hrtimer timer;
static u64 begin_ns;
static u64 shallow_ns;
static s32 (*latency_limit_us)(void);
static DEFINE_SPINLOCK(lock);
static u64 largest_busy_ns[CORES_MAX];

/*
 * Returns the time during which a core was not idle, in ns since the start of the machine. The
 * kernel counts the end of an idle time twice if another core reads it at that moment. Busy time
 * would then run backwards, and a reader would take that for a wrap, so the largest value counts.
 */
static u64 busy_ns(int core, u64 at_ns) {
  u64 idle_us = get_cpu_idle_time_us(core, NULL) + get_cpu_iowait_time_us(core, NULL);
  u64 idle_ns = idle_us * 1000, busy = at_ns > idle_ns ? at_ns - idle_ns : 0;
  unsigned long flags;

  spin_lock_irqsave(&lock, flags);
  busy = max(busy, largest_busy_ns[core]);
  largest_busy_ns[core] = busy;
  spin_unlock_irqrestore(&lock, flags);
  return busy;
}

static u64 busy_of_package_ns(uint package, u64 at_ns) {
  u64 sum = 0;
  int core;

  for_each_online_cpu(core) {
    if (package == packages || core % packages == package) sum += busy_ns(core, at_ns);
  }
  return sum;
}

/* Returns energy in uJ: mW x us is nJ. */
static u64 law_uj(u64 idle_mw, u64 busy_mw, u64 time_ns, u64 busy) {
  return (idle_mw * (time_ns / 1000) + busy_mw * (busy / 1000)) / 1000;
}

static u64 shallow_uj(void) { return shallow_mw * (READ_ONCE(shallow_ns) / 1000) / 1000; }

static int read_package(struct powercap_zone *zone, u64 *energy_uj) {
  u64 now_ns = ktime_get_ns();
  u64 busy = busy_of_package_ns(zone - zones, now_ns);

  u64 uj = law_uj(package_idle_mw, package_busy_mw, now_ns - begin_ns, busy) + shallow_uj();

  *energy_uj = uj % range_uj;
  return 0;
}

static int read_dram(struct powercap_zone *zone, u64 *energy_uj) {
  u64 now_ns = ktime_get_ns();
  u64 busy = busy_of_package_ns(packages, now_ns);

  *energy_uj = law_uj(dram_idle_mw, dram_busy_mw, now_ns - begin_ns, busy) % range_uj;
  return 0;
}

static int read_range(struct powercap_zone *zone, u64 *max_uj) {
  *max_uj = range_uj;
  return 0;
}

static int release(struct powercap_zone *zone) { return 0; }

static const struct powercap_zone_ops package_ops = {
    .get_max_energy_range_uj = read_range,
    .get_energy_uj = read_package,
    .release = release,
};
static const struct powercap_zone_ops dram_ops = {
    .get_max_energy_range_uj = read_range,
    .get_energy_uj = read_dram,
    .release = release,
};

/* A zone needs a constraint, or the kernel refuses it (EINVAL). It limits nothing here. */
static int set_limit(struct powercap_zone *zone, int id, u64 limit) { return -EINVAL; }

static int get_limit(struct powercap_zone *zone, int id, u64 *limit) {
  *limit = 0;
  return 0;
}

static const struct powercap_zone_constraint_ops no_limits = {
    .set_power_limit_uw = set_limit,
    .get_power_limit_uw = get_limit,
    .set_time_window_us = set_limit,
    .get_time_window_us = get_limit,
};

static enum hrtimer_restart log_moment(struct hrtimer *of) {
  struct moment *moment = &log[logged];
  int core;

  moment->at_ns = ktime_get_ns();
  if (logged && latency_limit_us() <= shallow_us)
    WRITE_ONCE(shallow_ns, shallow_ns + moment->at_ns - log[logged - 1].at_ns);
  moment->shallow_ns = shallow_ns;
  for_each_online_cpu(core) moment->busy_ns[core] = busy_ns(core, moment->at_ns);
  smp_wmb(); /* A reader sees the moment before it sees the count. */
  WRITE_ONCE(logged, logged + 1);
  if (logged == log_lines) {
    pr_err("invented_energy: the log is full, and there is no truth from now on\n");
    return HRTIMER_NORESTART;
  }
  hrtimer_forward_now(of, ms_to_ktime(log_ms));
  return HRTIMER_RESTART;
}

/* Position 0 is the head, position n the moment n - 1. */
static void *truth_at(struct seq_file *file, loff_t *position) {
  return *position <= READ_ONCE(logged) ? (void *)(*position + 1) : NULL;
}

static void *truth_next(struct seq_file *file, void *line, loff_t *position) {
  ++*position;
  return truth_at(file, position);
}

static void truth_stop(struct seq_file *file, void *line) {}

static int truth_show(struct seq_file *file, void *line) {
  ulong number = (ulong)line - 1;
  int core;

  if (!number) {
    seq_printf(file, "packages %u package_mw %lu %lu %lu dram_mw %lu %lu range_uj %lu\n", packages,
               package_idle_mw, package_busy_mw, shallow_mw, dram_idle_mw, dram_busy_mw, range_uj);
    seq_puts(file, "at_ns shallow_ns");
    for_each_online_cpu(core) seq_printf(file, " %d", core);
  } else {
    smp_rmb();
    seq_printf(file, "%llu %llu", log[number - 1].at_ns, log[number - 1].shallow_ns);
    for_each_online_cpu(core) seq_printf(file, " %llu", log[number - 1].busy_ns[core]);
  }
  seq_putc(file, '\n');
  return 0;
}

static const struct seq_operations truth_lines = {
    .start = truth_at,
    .next = truth_next,
    .stop = truth_stop,
    .show = truth_show,
};

static void leave(void) {
  uint package;

  if (truth) proc_remove(truth);
  if (log) {
    hrtimer_cancel(&timer);
    vfree(log);
  }
  if (dram.name) powercap_unregister_zone(control, &dram);
  for (package = 0; package < PACKAGES_MAX; package++) {
    if (zones[package].name) powercap_unregister_zone(control, &zones[package]);
  }
  if (control) powercap_unregister_control_type(control);
}

static int register_zones(void) {
  struct powercap_zone *zone;
  char name[32];
  uint package;

  control = powercap_register_control_type(NULL, "intel-rapl", NULL);
  if (IS_ERR(control)) {
    zone = ERR_CAST(control);
    control = NULL;
    return PTR_ERR(zone);
  }
  for (package = 0; package < packages; package++) {
    snprintf(name, sizeof(name), "package-%u-invented", package);
    zone =
        powercap_register_zone(&zones[package], control, name, NULL, &package_ops, 1, &no_limits);
    if (IS_ERR(zone)) return PTR_ERR(zone);
  }
  zone = powercap_register_zone(&dram, control, "dram", &zones[0], &dram_ops, 1, &no_limits);
  return PTR_ERR_OR_ZERO(zone);
}

/* The kernel exports no function that reads the limit. A probe of it knows its address. */
static int find_latency_limit(void) {
  struct kprobe probe = {.symbol_name = "cpu_latency_qos_limit"};
  int error = register_kprobe(&probe);

  if (error) return error;
  latency_limit_us = (s32(*)(void))probe.addr;
  unregister_kprobe(&probe);
  return 0;
}

static int __init enter(void) {
  int error;

  if (packages < 1 || packages > PACKAGES_MAX || !range_uj || nr_cpu_ids > CORES_MAX || !log_ms ||
      !log_lines)
    return -EINVAL;
  begin_ns = ktime_get_ns();
  error = find_latency_limit();
  if (error) return error;
  error = register_zones();
  if (error) goto failed;
  error = -ENOMEM;
  log = vzalloc(array_size(log_lines, sizeof(*log)));
  if (!log) goto failed;
  hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
  timer.function = log_moment;
  hrtimer_start(&timer, ms_to_ktime(log_ms), HRTIMER_MODE_REL);
  truth = proc_create_seq("invented_energy", 0444, NULL, &truth_lines);
  if (!truth) goto failed;
  return 0;
failed:
  leave();
  return error;
}

module_init(enter);
module_exit(leave);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Powercap zones with invented energy, for the tests of wattwire");
