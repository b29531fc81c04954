// LiveKit's SDKs for Rust, unmodified: the server SDK, and the signalling of the realtime SDK. `scripts/setup livekit` builds the program.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startLiveKit } from '../server.mjs';
import { KEY, SECRET } from '../tokens.mjs';

const TOP = fileURLToPath(new URL('../../..', import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR ?? `${TOP}target`;

test('rooms, participants, errors', async () => {
  const server = await startLiveKit();
  try {
    const env = { ...process.env, LIVEKIT_URL: server.url, LIVEKIT_API_KEY: KEY, LIVEKIT_API_SECRET: SECRET };
    const done = spawnSync(`${TARGET}/livekit-rust/debug/portunus-livekit-rust`, { encoding: 'utf8', env, timeout: 60_000 });
    assert.equal(done.status, 0, `${done.error ?? ''}\n${done.stdout}\n${done.stderr}`);
  } finally {
    await server.stop();
  }
});
