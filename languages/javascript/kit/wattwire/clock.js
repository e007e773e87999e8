'use strict';

/** ns of CLOCK_MONOTONIC as a Number: exact for 104 days of uptime, then within 2 ns. */
function now() {
  const [seconds, ns] = process.hrtime();
  return seconds * 1e9 + ns;
}

module.exports = { now };
