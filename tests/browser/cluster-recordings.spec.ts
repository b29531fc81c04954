// The recordings of two nodes of a cluster, on the page of one of them and on its dashboard.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReference } from '../server/index.mjs';
import { hasNats, startCluster, type Cluster } from './cluster';
import { expect, test } from './fixtures';

/** The address that node b tells its clients. */
const URL_OF_B = 'https://b.example.org/calls/';

test.skip(isReference || !hasNats, 'it needs servers of ours, and nats-server (scripts/setup cluster)');

let folder: string;
let cluster: Cluster;

/** Puts a recording into the folder of a node. */
function keep(name: string, title: string, isPrivate = false): void {
  const place = join(folder, name, 'recordplay');
  mkdirSync(place, { recursive: true });
  const id = isPrivate ? 8 : 7;
  writeFileSync(join(place, `rec-${id}-audio.mjr`), 'MJR00002');
  writeFileSync(join(place, `${id}.nfo`), `[${id}]\nname = ${title}\nprivate = ${isPrivate}\ndate = 2026-11-30 10:00:00\naudio = rec-${id}-audio.mjr\n`);
}

test.beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portunus-recordings-'));
  keep('a', 'First');
  keep('b', 'Second');
  keep('b', 'Secret', true);
  const url = (name: string) => (name === 'b' ? `url = "${URL_OF_B}"` : '');
  cluster = await startCluster(['a', 'b'], (name) => `\n[recording]\ndir = ${JSON.stringify(join(folder, name))}\n`, url);
});

test.afterEach(async () => {
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('the page lists the recordings of all nodes, and links to the node that plays them', async ({ page }) => {
  const [a] = cluster.nodes;
  await page.goto(`${a.base}/recordplay.html`);
  const item = (title: string) => page.getByTestId('recording').filter({ hasText: title });
  await expect(page.getByTestId('recording')).toHaveCount(2);
  // Both have the same id.
  await expect(item('First').getByTestId('facts')).toContainText('· a');
  await expect(item('First').getByTestId('play')).toBeVisible();
  await expect(item('Second').getByTestId('facts')).toContainText('· b');
  await expect(item('Second').getByTestId('play')).toHaveCount(0);
  await expect(item('Second').getByTestId('play-elsewhere')).toHaveText('Play at b');
  await expect(item('Second').getByTestId('play-elsewhere')).toHaveAttribute('href', `${URL_OF_B}recordplay.html?play=7`);
  await expect(item('Second').getByTestId('download')).toHaveAttribute('href', new RegExp(`^${URL_OF_B}recordplay/[0-9a-f]{32}/rec-7-audio\\.mjr$`));
});

test('the dashboard lists the recordings of all nodes, private ones too', async ({ page }) => {
  const [a] = cluster.nodes;
  await page.goto(new URL(a.admin).origin);
  const list = page.getByTestId('recordings');
  await expect(list.getByRole('listitem')).toHaveCount(3);
  const item = (title: string) => list.getByRole('listitem').filter({ hasText: title });
  await expect(item('First')).toContainText('at a');
  await expect(item('Second')).toContainText('at b');
  await expect(item('Secret')).toContainText('private');
  await expect(item('Second').getByRole('link')).toHaveAttribute('href', new RegExp(`^${URL_OF_B}recordplay/`));
  // Node a does not know its address for clients.
  await expect(item('First').getByRole('link')).toHaveCount(0);
});
