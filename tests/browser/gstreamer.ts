// GStreamer with elements that Debian's does not have: WHIP and AV1.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';

const root = new URL('../..', import.meta.url).pathname;

/** tests/gstreamer, which takes a pipeline and ends in an orderly way with its standard input. */
export const GSTREAMER = join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'gstreamer/debug/portunus-gstreamer');

/** Leaves the test out where it is not built. */
export function needsGstreamer(): void {
  test.skip(!existsSync(GSTREAMER), 'scripts/setup gstreamer was not run');
}

/** Runs a pipeline for as long as `use` takes, and has it end in an orderly way. */
export async function withPipeline(line: string, use: () => Promise<void>): Promise<void> {
  const child = spawn(GSTREAMER, line.trim().split(/\s+/), { stdio: ['pipe', 'ignore', 'pipe'] });
  let output = '';
  child.stderr?.on('data', (text) => (output = (output + text).slice(-4000)));
  const ended = once(child, 'exit');
  try {
    await use();
    child.stdin?.end();
    const [status] = await ended;
    if (status !== 0) throw new Error(`GStreamer ended with ${status}`);
  } catch (error) {
    console.log(`    ${GSTREAMER}: ${output}`);
    throw error;
  } finally {
    child.kill('SIGKILL');
  }
}
