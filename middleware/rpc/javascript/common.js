'use strict';
// What client and server share.

const { version } = require('jayson/package.json');

/** READY; `effective` are the settings as they were asked for, but for what is known better. */
function ready(kit, known, discovery_ns = null) {
  const asked = Object.entries(kit.spec).filter(([key]) => key.startsWith('settings.'));
  kit.ready({
    matched: discovery_ns === null ? null : 1,
    discovery_ns,
    library: { name: 'jayson', version, build: `Node.js ${process.version}` },
    effective: {
      ...Object.fromEntries(asked.map(([key, value]) => [key.slice(9), value])),
      tcp_nodelay: kit.spec['settings.tcp_nodelay'] !== 'off', // Node.js sets it by itself
      transport: 'tcp/ipv4',
      ...known,
    },
    guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' },
  });
}

module.exports = { ready, version };
