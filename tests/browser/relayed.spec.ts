// A server that has its address at a TURN server of others (coturn) and tells browsers of nothing else.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReference, startServer } from '../server/index.mjs';
import { freeUdpPorts } from '../server/ports.mjs';
import { expect, test } from './fixtures';
import { mediaFlows, stats } from './stats';

function hasCoturn(): boolean {
  try {
    execFileSync('turnserver', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function coturn(folder: string, port: number): ChildProcess {
  return spawn('turnserver', [
    '-n', '--no-cli', '--no-tls', '--no-dtls', '--allow-loopback-peers', '-L', '127.0.0.1', '-E', '127.0.0.1', '-p', String(port),
    '-a', '-u', 'media:secret', '-r', 'example.org', '--pidfile', join(folder, 'pid'), '--db', join(folder, 'db'), '--log-file', 'stdout',
  ], { stdio: 'ignore' });
}

test('a call with a server that is reached by its TURN server only', async ({ page }) => {
  test.skip(isReference, 'starts servers of its own');
  test.skip(!hasCoturn(), 'there is no turnserver (coturn)');
  const folder = mkdtempSync(join(tmpdir(), 'portunus-relayed-'));
  const port = await freeUdpPorts(1);
  const turn = coturn(folder, port);
  const config = `
bind = ["127.0.0.1"]
turn_server = "turn:127.0.0.1:${port}"
turn_user = "media"
turn_password = "secret"
force_relay = true
`;
  const server = await startServer({ workers: 2, config });
  const metric = async (name: string) => {
    const text = await (await fetch(`${server.base}/metrics`)).text();
    return Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.split(' ')[1]);
  };
  await expect.poll(() => metric('portunus_media_relayed_allocations')).toBe(2);
  await page.goto(`${server.base}/echotest.html?size=320x180&codec=vp8`);
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: 'opus', video: 'VP8' });
  const all = await stats(page);
  const pairs = all.filter((stat) => stat.type === 'candidate-pair' && stat.nominated && stat.state === 'succeeded');
  const [busiest] = pairs.sort((a, b) => b.bytesSent - a.bytesSent);
  expect(all.find((stat) => stat.id === busiest?.remoteCandidateId)?.candidateType).toBe('relay');
  await page.getByTestId('text-input').fill('hello');
  await page.getByTestId('text-send').click();
  await expect(page.getByTestId('text-log')).toContainText('You wrote: hello');
  expect(await metric('portunus_media_relayed_refused_total')).toBe(0);
  await page.close();
  expect(await server.stop(), server.log()).toBe(0);
  turn.kill();
  rmSync(folder, { recursive: true });
});
