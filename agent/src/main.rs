//! wattwire-agent runs once per host. It starts the measured processes, samples them and removes
//! everything that they leave behind. `PROTOCOL.md` describes its complete interface.

mod attempts;
mod builder;
mod cache;
mod contents;
mod device;
mod files;
mod host;
mod input;
mod lock;
mod manifest;
mod meter;
mod output;
mod processes;
mod protocol;
mod registry;
mod replay;
mod sampler;
mod samples;
mod serve;
mod stream;

// Meters and the other modules refer to these modules without their parent's name.
use host::{
    addresses, bpf, clock, clock_server, cpu_latency, cpu_times, cpus, disk, exit_records,
    fingerprint, load, others, packet_sockets, perf, ports, programs, servers, tree, tree_file,
};
use processes::{
    attach, bounded, census, cgroup, child, clean, command, guard, launch, member, members, own,
    process, pump, reaped, shm,
};

const USAGE: &str = "\
usage: wattwire-agent serve      read requests from standard input (agent/PROTOCOL.md)
       wattwire-agent with-packet-sockets COMMAND...
                                 execute COMMAND with open packet sockets, which `serve` uses
       wattwire-agent version    print the version
       wattwire-agent describe FOLDER
                                 print facts and meters of a stored tree, in FOLDER/0
       wattwire-agent meter-test METER FIXTURE [--update]
                                 compare a meter's readings with FIXTURE/expected.jsonl";

const FOREIGN_PROC: &str = "\
/proc belongs to another PID namespace, so its numbers name other processes here. Mount /proc in \
the namespace of this process (unshare: --mount-proc).";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let code = match words.as_slice() {
        ["serve"] => {
            own::call_itself(own::AGENT);
            if !own::proc_is_own() {
                eprintln!("wattwire-agent: {FOREIGN_PROC}");
                std::process::exit(1);
            }
            cgroup::enter_scope_if_needed();
            packet_sockets::adopt();
            serve::run()
        }
        ["guard"] => {
            own::call_itself(own::GUARD);
            guard::run()
        }
        ["with-packet-sockets", command @ ..] if !command.is_empty() => {
            packet_sockets::execute_with(command)
        }
        ["version"] => {
            println!("wattwire-agent {}", env!("CARGO_PKG_VERSION"));
            0
        }
        ["describe", folder] => {
            println!("{}", replay::describe(folder.as_ref()));
            0
        }
        ["meter-test", meter, folder] => replay::command(meter, folder.as_ref(), false),
        ["meter-test", meter, folder, "--update"] => replay::command(meter, folder.as_ref(), true),
        _ => {
            eprintln!("{USAGE}");
            2
        }
    };
    std::process::exit(code);
}
