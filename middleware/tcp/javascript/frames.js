'use strict';
// A connection that carries frames; ../README.md describes the bytes and the delays.

const net = require('node:net');
const { once } = require('node:events');
const { line, nodeError } = require('wattwire');

const [MESSAGE, REQUEST, REPLY] = [0, 1, 2];
const HEAD_BYTES = 13;
const PAYLOAD_BYTES_MAX = 67_108_864;

class Frames {
  /** Calls `handle(kind, number, payload)` for every frame and `ended()` at the end. */
  constructor(kit, socket, handle, ended) {
    this.socket = socket;
    this.handle = handle;
    this.hasTwoWrites = kit.spec.settings.writes === 2;
    this.timeoutMs = Math.min(kit.spec.timeoutNs / 1e6, 2 ** 31 - 1);
    this.chunks = [];
    this.have = 0;
    this.need = HEAD_BYTES;
    socket.setNoDelay(kit.spec.settings.tcp_nodelay);
    socket.on('data', (chunk) => this.take(chunk));
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', ended);
  }

  /** Resolves when the kernel has the frame; a partly sent frame breaks the stream. */
  send(kind, number, payload) {
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(payload.length, 0);
    head[4] = kind;
    head.writeBigUInt64LE(BigInt(number), 5);
    return new Promise((resolve, reject) => {
      let alarm;
      const done = (error) => {
        clearTimeout(alarm);
        if (error) reject(error);
        else resolve();
      };
      if (!this.hasTwoWrites) this.socket.cork();
      this.socket.write(head, payload.length > 0 ? undefined : done);
      if (payload.length > 0) this.socket.write(payload, done);
      this.socket.uncork();
      const late = () => this.socket.destroy(new Error("the peer's buffer stayed full"));
      if (this.socket.writableLength > 0) alarm = setTimeout(late, this.timeoutMs);
    });
  }

  /** Processes arriving data: parts of frames, or several frames. */
  take(chunk) {
    this.chunks.push(chunk);
    this.have += chunk.length;
    if (this.have < this.need) return;
    let data = this.chunks.length === 1 ? chunk : Buffer.concat(this.chunks);
    this.need = HEAD_BYTES;
    while (data.length >= this.need) {
      const [length, kind] = [data.readUInt32LE(0), data[4]];
      if (kind > REPLY || length > PAYLOAD_BYTES_MAX) {
        this.socket.destroy();
        return;
      }
      this.need = HEAD_BYTES + length;
      if (data.length < this.need) break;
      const number = Number(data.readBigUInt64LE(5));
      this.handle(kind, number, data.subarray(HEAD_BYTES, this.need));
      data = data.subarray(this.need);
      this.need = HEAD_BYTES;
    }
    this.chunks = data.length > 0 ? [data] : [];
    this.have = data.length;
  }
}

/** Connects to each of peers.endpoints, in their order. */
async function connectAll(kit, handle = () => {}, ended = () => {}) {
  const all = [];
  for (const endpoint of kit.spec.peersEndpoints) {
    const [, host, port] = /^(.+):([0-9]{1,5})$/.exec(endpoint) ?? [];
    const socket = net.connect({ host, port: Number(port) });
    const signal = AbortSignal.timeout(kit.spec.readyTimeoutMs);
    try {
      await once(socket, 'connect', { signal });
    } catch (error) {
      throw nodeError(4, `connect ${endpoint}: ${error.message}`);
    }
    all.push(new Frames(kit, socket, handle, ended));
  }
  return all;
}

/**
 * Listens, waits for the peers, prints READY, and ends with the drain. `handler(frames)` makes
 * the `handle` of a new connection.
 */
async function acceptAll(kit, handler) {
  let accepted = 0;
  const server = net.createServer((socket) => {
    accepted += 1;
    const frames = new Frames(
      kit,
      socket,
      (...frame) => handle(...frame),
      () => {},
    );
    const handle = handler(frames);
  });
  const host = listenAddress(kit.spec);
  try {
    server.listen({ host, port: 0 });
    await once(server, 'listening');
  } catch (error) {
    throw nodeError(4, `listen on ${host}: ${error.message}`);
  }
  line('LISTENING', { endpoints: [`${host}:${server.address().port}`] });
  const discoveryNs = await kit.matched(() => accepted >= kit.spec.peersCount);
  ready(kit, accepted, discoveryNs);
  await kit.drain();
}

/** Returns the address on which this node listens: the setting, or the host's if it is empty. */
function listenAddress(spec) {
  return spec.settings.bind_address || spec.hostAddress;
}

/** Prints READY. Node.js cannot query socket options, so these have the requested values. */
function ready(kit, matched, discoveryNs) {
  const { node: version, uv } = process.versions;
  kit.ready({
    matched,
    discoveryNs,
    library: { name: 'node:net', version, build: `libuv ${uv}` },
    effective: { bind_address: listenAddress(kit.spec), transport: 'tcp/ipv4' },
    guarantee: { delivery: 'reliable', ordering: 'per_sender', overload: 'block' },
  });
}

module.exports = { connectAll, acceptAll, ready, MESSAGE, REQUEST, REPLY };
