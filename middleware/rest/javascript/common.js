'use strict';
// What client and server share.

/** What a run's bodies are: bytes, text or record. */
function bodyOf(spec) {
  return spec['payload.literal'] ? 'text' : spec['payload.encoding'];
}

/** READY; `effective` are the settings as they were asked for, but for what is known better. */
function ready(kit, library, known, discovery_ns = null) {
  const asked = Object.entries(kit.spec).filter(([key]) => key.startsWith('settings.'));
  kit.ready({
    matched: discovery_ns === null ? null : 1,
    discovery_ns,
    library,
    effective: {
      ...Object.fromEntries(asked.map(([key, value]) => [key.slice(9), value])),
      http_version: '1.1',
      tcp_nodelay: kit.spec['settings.tcp_nodelay'] !== 'off', // Node.js sets it by itself
      transport: 'tcp/ipv4',
      ...known,
    },
    guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' },
  });
}

module.exports = { bodyOf, ready };
