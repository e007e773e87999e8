//! A learning switch: it remembers behind which port each sender's address is, and sends frames to
//! unknown addresses and to groups to all other ports.

use std::collections::HashMap;

const ADDRESS_BYTES: usize = 6;
/// A host that invents addresses must not fill the memory.
const ADDRESSES_MAX: usize = 4096;

pub struct Switch {
    ports: usize,
    learned: HashMap<[u8; ADDRESS_BYTES], usize>,
}

impl Switch {
    pub fn new(ports: usize) -> Switch {
        Switch { ports, learned: HashMap::new() }
    }

    /// Learn the sender of a frame from `port` and return the set of receivers, a bit per port.
    pub fn receivers(&mut self, port: usize, frame: &[u8]) -> u64 {
        let others = ((1u128 << self.ports) - 1) as u64 & !(1 << port);
        let (Some(to), Some(from)) = (address(frame, 0), address(frame, ADDRESS_BYTES)) else {
            return 0; // shorter than two addresses: not an Ethernet frame
        };
        let is_group = |address: [u8; ADDRESS_BYTES]| address[0] & 1 == 1;
        if !is_group(from)
            && (self.learned.len() < ADDRESSES_MAX || self.learned.contains_key(&from))
        {
            self.learned.insert(from, port);
        }
        match self.learned.get(&to) {
            _ if is_group(to) => others,
            Some(&receiver) => (1 << receiver) & others,
            None => others,
        }
    }
}

fn address(frame: &[u8], at: usize) -> Option<[u8; ADDRESS_BYTES]> {
    frame.get(at..at + ADDRESS_BYTES)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> Vec<u8> {
        [vec![2, 0, 0, 0, 0, to], vec![2, 0, 0, 0, 0, from], vec![0; 48]].concat()
    }

    #[test]
    fn a_frame_to_a_known_address_has_one_receiver() {
        let mut switch = Switch::new(3);
        assert_eq!(switch.receivers(0, &frame(9, 1)), 0b110);
        assert_eq!(switch.receivers(1, &frame(1, 9)), 0b001);
        assert_eq!(switch.receivers(0, &frame(9, 1)), 0b010);
    }

    #[test]
    fn a_group_is_sent_to_all_others_and_is_no_sender() {
        let mut switch = Switch::new(3);
        let mut group = frame(9, 1);
        group[0] = 0xff;
        assert_eq!(switch.receivers(2, &group), 0b011);
        let mut odd = frame(9, 7);
        odd[6] = 3;
        switch.receivers(0, &odd);
        assert!(switch.learned.len() == 1);
    }

    #[test]
    fn a_frame_to_its_own_port_or_a_fragment_has_no_receiver() {
        let mut switch = Switch::new(2);
        switch.receivers(0, &frame(9, 1));
        assert_eq!(switch.receivers(0, &frame(1, 2)), 0);
        assert_eq!(switch.receivers(0, &[1, 2, 3]), 0);
    }

    #[test]
    fn invented_addresses_do_not_fill_the_memory() {
        let mut switch = Switch::new(2);
        for number in 0..10_000u32 {
            let mut invented = frame(1, 1);
            invented[8..12].copy_from_slice(&number.to_be_bytes());
            switch.receivers(0, &invented);
        }
        assert_eq!(switch.learned.len(), ADDRESSES_MAX);
    }
}
