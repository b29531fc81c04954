// A room over two nodes of a cluster: pages at both of them, one node that dies, and clients of LiveKit at one of them.
import type { BrowserContext, Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { hasNats, startCluster, type Cluster } from './cluster';
import { expect, test } from './fixtures';
import { connect, inRoom, openSdk, token, type LiveKitServer } from './livekit';
import { seen, tile } from './room';

const ROOM = 1001;
const CONFIG = `\n[[videoroom.room]]\nroom = ${ROOM}\ndescription = "Over nodes"\npublishers = 8\nvideocodec = "vp8"\n`;

test.skip(isReference || !hasNats, 'it needs servers of ours, and nats-server (scripts/setup cluster)');

let cluster: Cluster;

test.beforeEach(async () => {
  cluster = await startCluster(['a', 'b'], CONFIG);
});

test.afterEach(async () => {
  await cluster?.stop();
});

async function enterAt(node: LiveKitServer, context: BrowserContext, name: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${node.base}/videoroom.html?room=${ROOM}&name=${name}&details=1&panels=people,chat&size=320x180&simulcast=0`);
  await page.getByTestId('join').click();
  await expect(page.getByTestId('status')).toContainText(`In the room as ${name}`);
  return page;
}

test('pages at two nodes see each other, and one leaves when its node dies', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const ann = await enterAt(a, context, 'Ann');
  const ben = await enterAt(b, context, 'Ben');
  await seen(ben, 'Ann');
  await seen(ann, 'Ben');
  const cleo = await enterAt(b, context, 'Cleo');
  await seen(ann, 'Cleo');
  await seen(cleo, 'Ann');
  const begin = Date.now();
  await a.kill();
  await expect(tile(ben, 'Ann')).toHaveCount(0, { timeout: 10_000 });
  console.log(`Ann is gone ${Date.now() - begin} ms after her node was killed`);
  await expect(tile(cleo, 'Ann')).toHaveCount(0);
  await seen(ben, 'Cleo');
  // The node comes back, and her page by itself.
  await a.restart();
  await seen(ben, 'Ann');
  await seen(ann, 'Ben');
});

test('the dashboard shows nodes, links and homes, and what is wrong', async ({ context, page }) => {
  const [a, b] = cluster.nodes;
  await enterAt(a, context, 'Ann');
  await page.goto(b.admin.replace(/admin$/, ''));
  await expect(page.getByTestId('cluster-name')).toHaveText('portunus, seen by b');
  await expect(page.getByTestId('cluster-bus')).toHaveText('The bus is connected.');
  const row = (table: string, name: string) => page.getByTestId(`cluster-${table}`).getByRole('row').filter({ has: page.getByRole('rowheader', { name }) });
  await expect(row('nodes', 'a')).toContainText('serving');
  await expect(row('nodes', 'b')).toContainText('this one');
  await expect(row('links', 'a')).toContainText('up');
  await expect(row('homes', String(ROOM))).toContainText('a');
  await expect(page.getByTestId('all-well')).toBeVisible();
  await a.kill();
  await expect(page.getByTestId('wrong')).toContainText('Cluster: ');
  await expect(row('links', 'a')).not.toContainText('up');
});

test('livekit-client at one node and a page at the other one', async ({ context }) => {
  const [a, b] = cluster.nodes;
  const ben = await enterAt(b, context, 'Ben');
  const ann = await context.newPage();
  await openSdk(ann, a);
  await connect(ann, a, token('ann', String(ROOM)));
  await inRoom(ann, `room.localParticipant.setCameraEnabled(true, { resolution: { width: 640, height: 360 } }).then(() => null)`);
  await seen(ben, 'ANN');
  const frames = () => inRoom<number>(ann, `Math.max(0, ...[...document.querySelectorAll('video')].map((it) => it.getVideoPlaybackQuality().totalVideoFrames))`);
  await expect.poll(frames, { message: 'Ben is seen by Ann' }).toBeGreaterThan(10);
  await inRoom(ann, 'room.disconnect().then(() => null)');
  await expect(tile(ben, 'ANN')).toHaveCount(0);
});
