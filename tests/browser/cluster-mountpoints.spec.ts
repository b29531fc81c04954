// Two servers as nodes of a cluster, with a real nats-server: what is fed at one is watched at the other one.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReference, startServer } from '../server/index.mjs';
import { freeTcpPort, freeUdpPorts } from '../server/ports.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test as base } from './fixtures';
import { mediaFlows } from './stats';

const NATS = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portunus/tools/nats-server');
const PORTUNUS = process.env.PORTUNUS_BIN ?? join(process.env.CARGO_TARGET_DIR ?? new URL('../../target', import.meta.url).pathname, 'debug/portunus');

/** The UDP ports of the mountpoint at the first node: audio and video. */
let ports: number[];

/** The pages of the tests are those of the second node. */
const test = base.extend<{}, { server: Server; first: Server; folder: string }>({
  folder: [
    async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), 'portunus-cluster-'));
      await use(folder);
      rmSync(folder, { recursive: true, force: true });
    },
    { scope: 'worker' },
  ],
  first: [
    async ({ folder }, use) => {
      const port = await freeTcpPort();
      const bus = spawn(NATS, ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', join(folder, 'nats')], { stdio: 'ignore' });
      process.env.PORTUNUS_TEST_BUS = `nats://127.0.0.1:${port}`;
      execFileSync(PORTUNUS, ['cluster', 'init', '--name', 'first', '--folder', join(folder, 'first')]);
      execFileSync(PORTUNUS, ['cluster', 'issue', 'second', '--folder', join(folder, 'first'), '--to', join(folder, 'second')]);
      ports = await freeUdpPorts(2);
      const server = await startServer({ workers: 2, config: `${mountpoint(ports)}${await cluster(folder, 'first')}` });
      await use(server);
      await server.stop();
      bus.kill('SIGKILL');
    },
    { scope: 'worker' },
  ],
  server: [
    async ({ folder, first: _ }, use) => {
      const server = await startServer({ workers: 2, config: await cluster(folder, 'second') });
      await use(server);
      expect(await server.stop()).toBe(0);
    },
    { scope: 'worker' },
  ],
});

const mountpoint = ([audio, video]: number[]) => `
[[streaming.mountpoint]]
name = "camera"
id = 11
type = "rtp"
description = "Camera of the first node"
bufferkf_ms = 20000
[[streaming.mountpoint.media]]
type = "audio"
mid = "a"
port = ${audio}
pt = 111
codec = "opus"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"
port = ${video}
pt = 96
codec = "vp8"
`;

const cluster = async (folder: string, name: string) => `
[cluster]
bus = "${process.env.PORTUNUS_TEST_BUS}"
name = "${name}"
folder = ${JSON.stringify(join(folder, name))}
bind = ["127.0.0.1"]
port = ${await freeTcpPort()}
media_port = 0
`;

test.skip(isReference || !existsSync(NATS), 'needs servers of its own and nats-server (scripts/setup cluster)');

/** Sends a test picture and a tone. */
function feed([audio, video]: number[]): ChildProcess {
  const input = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25', '-re', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
  const picture = ['-map', '0', '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-g', '50', '-b:v', '300k', '-payload_type', '96'];
  const tone = ['-map', '1', '-c:a', 'libopus', '-b:a', '32k', '-payload_type', '111'];
  const to = (port: number) => ['-f', 'rtp', `rtp://127.0.0.1:${port}?pkt_size=1200`];
  return spawn('ffmpeg', ['-loglevel', 'error', ...input, ...picture, ...to(video), ...tone, ...to(audio)], { stdio: 'ignore' });
}

test('a page at one node plays what ffmpeg sends to the other one', FIREFOX, async ({ page }) => {
  const ffmpeg = feed(ports);
  try {
    await page.goto('/streaming.html');
    await expect(page.getByTestId('mountpoint-11').getByTestId('state')).toContainText('media comes in');
    await page.getByTestId('mountpoint-11').getByTestId('play').click();
    await expect(page.getByTestId('status')).toContainText('Playing');
    await mediaFlows(page, { audio: 'opus', video: 'VP8' });
    await expect(page.getByTestId('figure-size-in')).toContainText('320×180');
  } finally {
    ffmpeg.kill('SIGKILL');
  }
});
