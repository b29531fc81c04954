// Browsers that are relayed by the server's own TURN server. The address that media is announced with is nowhere: they get there by
// the relay or not at all.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { freeTcpPort, freeUdpPorts } from '../server/ports.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, test as base } from './fixtures';
import { mediaFlows, stats } from './stats';

const test = base.extend<{}, { turn: Server }>({
  launchOptions: [
    async ({ launchOptions }, use) => {
      // The certificate of TURN by TLS is signed by itself.
      await use({ ...launchOptions, args: [...(launchOptions.args ?? []), '--ignore-certificate-errors'] });
    },
    { scope: 'worker' },
  ],
  turn: [
    async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), 'portunus-turn-'));
      execFileSync('openssl', [
        'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1',
        '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
        '-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem'),
      ], { stdio: 'ignore' });
      const config = `
bind = ["127.0.0.1"]
announced = ["127.0.0.1=>203.0.113.7"]

[turn]
enabled = true
host = "127.0.0.1"
port = ${await freeUdpPorts(1)}
tls = true
tls_port = ${await freeTcpPort()}

[tls]
certificate = "${join(folder, 'cert.pem')}"
key = "${join(folder, 'key.pem')}"

[[streaming.mountpoint]]
name = "film"
type = "live"
id = 10
filename = "${new URL('../../crates/files/tests/data/vp8-opus.webm', import.meta.url).pathname}"
`;
      const server = await startServer({ workers: 2, config });
      await use(server);
      expect(await server.stop(), server.log()).toBe(0);
      rmSync(folder, { recursive: true });
    },
    { scope: 'worker' },
  ],
});

/** Runs in the page before its scripts: it uses the relay alone, by one transport. */
function relayOnly(transport: string): void {
  const Original = window.RTCPeerConnection;
  const fits = (url: string) => url.startsWith('turns:') === (transport === 'tls') && url.endsWith(transport === 'udp' ? '=udp' : '=tcp');
  window.RTCPeerConnection = new Proxy(Original, {
    construct(target, [config], newTarget) {
      const iceServers = (config?.iceServers ?? []).map((it: RTCIceServer) => ({ ...it, urls: [it.urls].flat().filter(fits) }));
      return Reflect.construct(target, [{ ...config, iceServers, iceTransportPolicy: 'relay' }], newTarget);
    },
  });
}

/** By what the page reaches the relay. */
async function relayProtocol(page: Page): Promise<string | undefined> {
  const all = await stats(page);
  const pairs = all.filter((stat) => stat.type === 'candidate-pair' && stat.nominated && stat.state === 'succeeded');
  const [busiest] = pairs.sort((a, b) => b.bytesSent - a.bytesSent);
  const local = all.find((stat) => stat.id === busiest?.localCandidateId);
  return local?.candidateType === 'relay' ? local.relayProtocol : local?.candidateType;
}

async function metric(base: string, name: string): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const line = text.split('\n').find((line) => line.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
}

for (const transport of ['udp', 'tcp', 'tls']) {
  // Firefox pairs no relay on the loopback interface with an address that is elsewhere.
  test(`a call by TURN over ${transport}`, async ({ page, turn }) => {
    test.skip(isReference, 'starts servers of its own');
    await page.addInitScript(relayOnly, transport);
    await page.goto(`${turn.base}/echotest.html?size=320x180&codec=vp8`);
    await page.getByTestId('start').click();
    await mediaFlows(page, { audio: 'opus', video: 'VP8' });
    expect(await relayProtocol(page)).toBe(transport);
    await page.getByTestId('text-input').fill('hello');
    await page.getByTestId('text-send').click();
    await expect(page.getByTestId('text-log')).toContainText('You wrote: hello');
    expect(await metric(turn.base, 'portunus_turn_allocations')).toBeGreaterThan(0);
    await page.getByTestId('restart').click();
    await mediaFlows(page, { audio: true, video: true });
    expect(await metric(turn.base, 'portunus_turn_dropped_total')).toBe(0);
    await page.close();
    // By UDP nothing tells that the page is gone: the allocation expires.
    if (transport !== 'udp') await expect.poll(() => metric(turn.base, 'portunus_turn_connections')).toBe(0);
  });
}

test('a viewer by WHEP is told of the relay by Link headers', async ({ page, turn }) => {
  test.skip(isReference, 'starts servers of its own');
  await page.goto(`${turn.base}/healthz`);
  const link = await page.evaluate(async () => {
    const connection = new RTCPeerConnection();
    connection.addTransceiver('video', { direction: 'recvonly' });
    await connection.setLocalDescription();
    const body = connection.localDescription!.sdp;
    const response = await fetch('/whep/10', { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body });
    return response.headers.get('Link') ?? `${response.status} ${await response.text()}`;
  });
  const login = 'rel="ice-server"; username="\\d+:[0-9a-f]+"; credential="[A-Za-z0-9+/=]+"; credential-type="password"';
  for (const url of ['turn:127\\.0\\.0\\.1:\\d+\\?transport=udp', 'turn:127\\.0\\.0\\.1:\\d+\\?transport=tcp', 'turns:127\\.0\\.0\\.1:\\d+\\?transport=tcp']) {
    expect(link).toMatch(new RegExp(`<${url}>; ${login}`));
  }
});
