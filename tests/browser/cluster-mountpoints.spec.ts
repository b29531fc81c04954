// Mountpoints in a cluster: what is fed at one node is watched at another one.
import { spawn, type ChildProcess } from 'node:child_process';
import { isReference } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { hasNats, startCluster, type Cluster } from './cluster';
import { expect, FIREFOX, test as base } from './fixtures';
import { mediaFlows } from './stats';

/** The pages of the tests are those of the second node. */
const test = base.extend<{}, { cluster: Cluster; server: Server }>({
  cluster: [
    async ({}, use) => {
      const cluster = await startCluster(['first', 'second'], '');
      await use(cluster);
      await cluster.stop();
    },
    { scope: 'worker' },
  ],
  server: [async ({ cluster }, use) => use(cluster.nodes[1]), { scope: 'worker' }],
});

test.skip(isReference || !hasNats, 'needs servers of its own and nats-server (scripts/setup cluster)');

/** Makes the mountpoint 11 with Opus and VP8 at a server, and returns its ports. */
async function createMountpoint(server: Server): Promise<number[]> {
  const post = async (path: string, request: object) => {
    const body = JSON.stringify({ transaction: 't', ...request });
    return (await fetch(server.http + path, { method: 'POST', body })).json();
  };
  const session = (await post('', { janus: 'create' })).data.id;
  const handle = (await post(`/${session}`, { janus: 'attach', plugin: 'janus.plugin.streaming' })).data.id;
  const media = [
    { type: 'audio', mid: 'a', port: 0, pt: 111, codec: 'opus' },
    { type: 'video', mid: 'v', port: 0, pt: 96, codec: 'vp8' },
  ];
  const create = { request: 'create', type: 'rtp', id: 11, description: 'Camera of the first node', bufferkf_ms: 20_000, media };
  const { plugindata } = await post(`/${session}/${handle}`, { janus: 'message', body: create });
  return plugindata.data.stream.ports.map((it: { port: number }) => it.port);
}

/** Sends a test picture and a tone. */
function feed([audio, video]: number[]): ChildProcess {
  const input = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25', '-re', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
  const picture = ['-map', '0', '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-g', '50', '-b:v', '300k', '-payload_type', '96'];
  const tone = ['-map', '1', '-c:a', 'libopus', '-b:a', '32k', '-payload_type', '111'];
  const to = (port: number) => ['-f', 'rtp', `rtp://127.0.0.1:${port}?pkt_size=1200`];
  return spawn('ffmpeg', ['-loglevel', 'error', ...input, ...picture, ...to(video), ...tone, ...to(audio)], { stdio: 'ignore' });
}

test('a page at one node plays what ffmpeg sends to the other one', FIREFOX, async ({ page, cluster }) => {
  const ffmpeg = feed(await createMountpoint(cluster.nodes[0]));
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
