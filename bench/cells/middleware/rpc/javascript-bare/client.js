'use strict';
// `client.js HOST PORT WARM CALLS`: calls per second of a loop on jayson, without a kit.

const jayson = require('jayson');

const TEXT = 'Hello World';
const [host, port, warm, calls] = process.argv.slice(2);
const client = jayson.client.http({ host, port, timeout: 5000 });

const call = () =>
  new Promise((resolve, reject) => {
    client.request('echo', [TEXT], (error, response) => {
      if (error) reject(error);
      else if (response.result === TEXT) resolve();
      else reject(new Error(`${JSON.stringify(response)}, not ${TEXT}`));
    });
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
