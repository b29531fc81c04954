// Who else gets what is said in a room: administrators who capture its packets, and recordings, in the lobby and in the room.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test } from './fixtures';

test.skip(isReference, 'rooms of the reference do not tell');

const SECRET = 's3cret';

async function admin(server: Server, path: string, message: object): Promise<Record<string, any>> {
  const body = JSON.stringify({ transaction: 't', ...message });
  return (await fetch(`${server.admin}${path}`, { method: 'POST', body })).json() as Promise<Record<string, any>>;
}

/** The handles of a plugin that have a PeerConnection, as paths of the Admin API. */
async function connected(server: Server, plugin: string): Promise<string[]> {
  const found: string[] = [];
  const { sessions } = await admin(server, '', { janus: 'list_sessions' });
  for (const session of sessions) {
    const { handles } = await admin(server, `/${session}`, { janus: 'list_handles' });
    for (const handle of handles) {
      const { info } = await admin(server, `/${session}/${handle}`, { janus: 'handle_info' });
      if (info.plugin === plugin && info.webrtc?.ice.state === 'ready') found.push(`/${session}/${handle}`);
    }
  }
  return found;
}

for (const [name, page, plugin] of [
  ['video', 'videoroom', 'janus.plugin.videoroom'],
  ['audio', 'audioroom', 'janus.plugin.audiobridge'],
] as const) {
  test(`captures and recordings of a room are shown to the people in it and in the lobby, ${name}`, FIREFOX, async ({ context }) => {
    const folder = mkdtempSync(join(tmpdir(), 'portunus-captures-'));
    const table = page === 'videoroom' ? 'videoroom.room' : 'audiobridge.room';
    const config = `[admin]\ncapture_folder = ${JSON.stringify(folder)}\n[recording]\ndir = ${JSON.stringify(folder)}\n[[${table}]]\nroom = 1\nsecret = "${SECRET}"\n${page === 'audioroom' ? 'sampling_rate = 16000\n' : ''}`;
    const server = await startServer({ workers: 1, config });
    try {
      const ann = await context.newPage();
      await ann.goto(`${server.base}/${page}.html?room=1&name=Ann&size=320x180&simulcast=0`);
      await ann.getByTestId('join').click();
      await expect(ann.getByTestId('room-title')).toBeVisible();
      const lobby = await context.newPage();
      await lobby.goto(`${server.base}/${page}.html`);
      const state = lobby.getByTestId('room-1').getByTestId('state');
      await expect(state).toContainText('1 person');
      await expect(state).not.toContainText('administrator');
      await expect(ann.getByTestId('capturing')).toHaveCount(0);

      await expect(async () => expect(await connected(server, plugin)).not.toEqual([])).toPass({ timeout: 30_000 });
      const [handle] = await connected(server, plugin);
      expect(await admin(server, handle ?? '', { janus: 'start_pcap' })).toMatchObject({ janus: 'success' });
      await expect(ann.getByTestId('capturing')).toHaveText('Listened in on by an administrator');
      await expect(state).toContainText('listened in on by an administrator');
      await admin(server, handle ?? '', { janus: 'stop_pcap' });
      await expect(ann.getByTestId('capturing')).toHaveCount(0);
      await expect(state).not.toContainText('administrator');

      const request = { request: 'enable_recording', room: 1, secret: SECRET, record: true, ...(page === 'audioroom' && { record_file: 'mix.wav', record_dir: folder }) };
      await admin(server, '', { janus: 'message_plugin', plugin, request });
      await expect(ann.getByTestId('recording')).toHaveText('● Recording');
      await expect(state).toContainText('recorded');
      await admin(server, '', { janus: 'message_plugin', plugin, request: { ...request, record: false } });
      await expect(ann.getByTestId('recording')).toHaveCount(0);
    } finally {
      await Promise.all(context.pages().map((one) => one.goto('about:blank')));
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
