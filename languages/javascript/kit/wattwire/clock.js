'use strict';

/** Returns ns of CLOCK_MONOTONIC: exact during 104 days of uptime, then within 2 ns. */
function now() {
  const [seconds, ns] = process.hrtime();
  return seconds * 1e9 + ns;
}

module.exports = { now };
