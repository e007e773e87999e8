//! Frames with RTPS messages that arrive on each interface except loopback. A filter in the kernel
//! selects them, and the kernel counts them.

#[path = "packets.rs"]
mod packets;

use std::io;

use crate::meter::{Absent, Meter, Opened, Place, Samples, SeriesId, Tree, TreeFile};
use packets::FilteredPackets;

const GRANT: &str = "run as root, or: setcap cap_net_raw=ep target/release/wattwire-agent";
/// Folder of a fixture with a file per interface, which contains the increase of its count.
const REPLAYED: &str = "packets";

struct RtpsLink {
    tree: Tree,
    interfaces: Vec<Interface>,
}

struct Interface {
    packets: Packets,
    frames: u64,
    series: SeriesId,
}

enum Packets {
    Live(FilteredPackets),
    Replay(TreeFile),
}

impl Packets {
    /// Returns the number of frames since the last call; None if the interface has vanished.
    fn take(&self) -> Option<u64> {
        match self {
            Packets::Live(packets) => packets.take(),
            Packets::Replay(file) => file.number(),
        }
    }
}

pub fn open(tree: &Tree) -> Result<Opened, Absent> {
    let permitted = match tree {
        Tree::Live => FilteredPackets::permitted(),
        Tree::Replay(_) => tree.list(REPLAYED).map(|_| ()),
    };
    permitted.map_err(|error| Absent {
        reason: format!("packet sockets need CAP_NET_RAW in the network namespace ({error})"),
        grant: GRANT.into(),
    })?;
    Ok(Opened::new(RtpsLink { tree: tree.clone(), interfaces: Vec::new() }))
}

/// Returns the interfaces with their names. An interface that vanishes meanwhile is omitted.
fn interfaces(tree: &Tree) -> io::Result<Vec<(String, Packets)>> {
    match tree {
        Tree::Live => {
            let live = packets::interfaces()?.into_iter().filter_map(|(name, index)| {
                Some((name, Packets::Live(FilteredPackets::open(index).ok()?)))
            });
            Ok(live.collect())
        }
        Tree::Replay(_) => {
            let open = |name: String| {
                let file = tree.open(&format!("{REPLAYED}/{name}"))?;
                Ok((name, Packets::Replay(file)))
            };
            tree.list(REPLAYED)?.into_iter().map(open).collect()
        }
    }
}

impl Meter for RtpsLink {
    /// Opens the sockets, because `hello` opens meters without sampling them.
    fn declare(&mut self, samples: &mut Samples) {
        for (name, packets) in interfaces(&self.tree).unwrap_or_default() {
            let series = samples.declare("rtps_frames", Place::of(&name));
            self.interfaces.push(Interface { packets, frames: 0, series });
        }
    }

    fn read(&mut self, samples: &mut Samples) {
        samples.begin();
        for interface in &mut self.interfaces {
            match interface.packets.take() {
                Some(frames) => {
                    interface.frames += frames;
                    samples.counter(interface.series, interface.frames);
                }
                None => samples.lost(interface.series),
            }
        }
    }
}
