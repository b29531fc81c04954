// Runs LiveKit's server API crate for Rust against the server.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { startLiveKit } from '../server.mjs';

const folder = new URL('.', import.meta.url).pathname;
const target = join(process.env.CARGO_TARGET_DIR ?? join(folder, '../../../target'), 'livekit-api');

test('livekit-api', async () => {
  const server = await startLiveKit();
  try {
    const args = ['test', '--locked', '-q', '--manifest-path', join(folder, 'Cargo.toml'), '--target-dir', target];
    const run = spawn(process.env.CARGO ?? 'cargo', args, { env: { ...process.env, LIVEKIT_URL: server.url }, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [run.stdout, run.stderr]) stream.on('data', (text) => { output += text; });
    const [status] = await once(run, 'exit');
    if (status !== 0) throw new Error(output.slice(-4_000));
  } finally {
    await server.stop();
  }
});
