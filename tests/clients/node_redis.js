// node_redis.js PORT: what programs do with node-redis, each answer checked.
'use strict';
const assert = require('assert');
const { createClient } = require('redis');

async function main() {
  const client = createClient({ url: `redis://127.0.0.1:${process.argv[2]}` });
  await client.connect();
  assert.strictEqual(await client.ping(), 'PONG');
  assert.strictEqual(await client.set('js:a', '1'), 'OK');
  assert.strictEqual(await client.get('js:a'), '1');
  assert.strictEqual(await client.get('js:none'), null);
  assert.strictEqual(await client.set('js:a', '2', { NX: true }), null);
  assert.deepStrictEqual(await client.multi().set('js:t', '1').get('js:t').del('js:t').exec(), ['OK', '1', 1]);
  const writes = [];
  for (let i = 0; i < 1000; ++i) writes.push(client.set(`js:n:${i}`, `v${i}`));
  assert.ok((await Promise.all(writes)).every((answer) => answer === 'OK'));
  const seen = new Set();
  for await (const key of client.scanIterator({ MATCH: 'js:n:*', COUNT: 50 })) seen.add(key);
  assert.strictEqual(seen.size, 1000);
  assert.strictEqual(await client.del(['js:n:1', 'js:n:none']), 1);
  await assert.rejects(client.sendCommand(['NOSUCH']), /unknown command/);
  await client.quit();
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
