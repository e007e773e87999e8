'use strict';
// `client.js HOST PORT WARM CALLS`: calls per second of a loop on grpc-js, without a kit.

const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const TEXT = 'Hello World';
const [host, port, warm, calls] = process.argv.slice(2);
const definition = protoLoader.loadSync(require.resolve('wattwire.proto'));
const { Calls } = grpc.loadPackageDefinition(definition).wattwire;
const stub = new Calls(`${host}:${port}`, grpc.credentials.createInsecure());

const call = () =>
  new Promise((resolve, reject) => {
    stub.Text({ data: TEXT }, { deadline: Date.now() + 5000 }, (error, reply) => {
      if (error) reject(error);
      else if (reply.data === TEXT) resolve();
      else reject(new Error(`${JSON.stringify(reply)}, not ${TEXT}`));
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
  stub.close();
})();
