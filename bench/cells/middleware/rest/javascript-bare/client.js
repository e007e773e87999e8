'use strict';
// `client.js HOST PORT WARM CALLS`: calls per second of a loop on node:http, without a kit.

const http = require('node:http');

const TEXT = 'Hello World';
const [hostname, port, warm, calls] = process.argv.slice(2);
const headers = { 'Content-Type': 'text/plain; charset=utf-8' };
// The global agent keeps connections by itself.
const options = { hostname, port, path: '/echo', method: 'POST', headers, timeout: 5000 };

const call = () =>
  new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        const found = Buffer.concat(chunks).toString();
        if (response.statusCode === 200 && found === TEXT) resolve();
        else reject(new Error(`${response.statusCode} ${found}, not ${TEXT}`));
      });
    });
    request.on('timeout', () => request.destroy(new Error('no response within 5 s')));
    request.on('error', reject);
    request.end(TEXT);
  });

// What is thrown ends the process with 1.
(async () => {
  await call();
  console.log('begun');
  for (let i = 0; i < Number(warm); i += 1) await call();
  const startNs = process.hrtime.bigint();
  console.log('warm');
  for (let i = 0; i < Number(calls); i += 1) await call();
  console.log((calls * 1e9) / Number(process.hrtime.bigint() - startNs));
})();
