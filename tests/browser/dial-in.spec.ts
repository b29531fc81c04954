// Audio rooms by telephone: phones call a room, with and without a PIN, and a room calls a phone.
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { freeUdpPorts } from '../server/ports.mjs';
import { hears, TONES } from './audio';
import { enter, join, moderate, person, SECRET } from './audioroom';
import { Baresip } from './baresip';
import { expect, newUser, test as base } from './phone';
import { startDialIn } from './sipp';
import { phoneHears } from './sound-file';

const ROOMS = { open: 2001, locked: 2002 };
const SPEED = 'sampling_rate = 16000\naudiolevel_event = true\naudio_active_packets = 15\naudio_level_average = 50\n';

const test = base.extend<{}, { port: number }>({
  port: [async ({}, use) => use(await freeUdpPorts(1)), { scope: 'worker' }],
  server: [
    async ({ kamailio, port }, use) => {
      const server = await startServer({
        workers: 2,
        config: `
[sip]
local_ip = "127.0.0.1"
listen = ["udp:${port}"]
[[sip.trunks]]
name = "office"
from = ["127.0.0.0/8"]
server = "sip:${kamailio.domain}"
identity = "sip:office@${kamailio.domain}"
password = "${kamailio.secret('office')}"
[[audiobridge.room]]
room = ${ROOMS.open}
secret = "${SECRET}"
${SPEED}
[[audiobridge.room]]
room = ${ROOMS.locked}
secret = "${SECRET}"
pin = "1234"
${SPEED}`,
      });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
});
test.skip(isReference, 'the reference takes no calls');

const keys = (phone: Baresip, digits: string) => [...digits].forEach((digit) => phone.command(`sndcode ${digit}`));

test('a phone joins a room by its number, is heard, mutes itself, and is thrown out', async ({ context, kamailio, port }) => {
  const user = newUser('bare');
  const phone = await Baresip.start(kamailio, { user, tone: 'ben' });
  try {
    const page = await enter(context, ROOMS.open, 'ann');
    phone.command(`dial sip:${ROOMS.open}@127.0.0.1:${port}`);
    await phone.event('CALL_ESTABLISHED');
    await hears(page, 'ben');
    await phoneHears(phone, 'ann');
    keys(phone, '*6');
    await hears(page);
    keys(phone, '*6');
    await hears(page, 'ben');
    await moderate(page);
    await person(page, user).getByRole('button', { name: 'Kick' }).click();
    await phone.event('CALL_CLOSED');
    await expect(person(page, user)).toBeHidden();
  } finally {
    await phone.stop();
  }
});

test('a room with a PIN asks for it', async ({ context, kamailio, port }) => {
  const phone = await Baresip.start(kamailio, { user: newUser('bare'), tone: 'ben', codecs: 'opus/48000/2' });
  try {
    const page = await context.newPage();
    await page.goto(`/audioroom.html?room=${ROOMS.locked}&name=ann&pin=1234&tone=${TONES.ann}`);
    await join(page, 'ann');
    phone.command(`dial sip:${ROOMS.locked}@127.0.0.1:${port}`);
    await phone.event('CALL_ESTABLISHED');
    keys(phone, '9999#');
    await hears(page);
    keys(phone, '1234#');
    await hears(page, 'ben');
    await phoneHears(phone, 'ann');
    phone.command('hangup');
    await hears(page);
  } finally {
    await phone.stop();
  }
});

test('a room with a PIN takes keys by INFO', async ({ context, port }) => {
  const page = await context.newPage();
  await page.goto(`/audioroom.html?room=${ROOMS.locked}&name=ann&pin=1234&tone=${TONES.ann}`);
  await join(page, 'ann');
  const phone = await startDialIn(`127.0.0.1:${port}`, ROOMS.locked, 2_000);
  await expect(person(page, 'Ben')).toBeVisible();
  expect(await phone.end(), phone.log()).toBe(0);
  await expect(person(page, 'Ben')).toBeHidden();
  await phone.stop();
});

test('a room calls a phone', async ({ context, kamailio, server }) => {
  const user = newUser('bare');
  const phone = await Baresip.start(kamailio, { user, tone: 'ben' });
  try {
    const page = await enter(context, ROOMS.open, 'ann');
    await dialOut(server, ROOMS.open, user);
    await hears(page, 'ben');
    await phoneHears(phone, 'ann');
    phone.command('hangup');
    await hears(page);
  } finally {
    await phone.stop();
  }
});

/** Has a room call a user, and waits until the call was answered. */
async function dialOut(server: Server, room: number, to: string): Promise<void> {
  const ask = async (path: string, body: object) => {
    const answer = await fetch(`${server.http}${path}`, { method: 'POST', body: JSON.stringify({ ...body, transaction: 't' }) });
    return (await answer.json()) as Record<string, any>;
  };
  const session = `/${(await ask('', { janus: 'create' })).data.id}`;
  const handle = `${session}/${(await ask(session, { janus: 'attach', plugin: 'janus.plugin.audiobridge' })).data.id}`;
  const answer = await ask(handle, { janus: 'message', body: { request: 'dial_out', room, secret: SECRET, to, display: to } });
  expect(answer.plugindata?.data ?? answer).toMatchObject({ call: expect.any(Number) });
  for (let status = ''; status !== 'answered'; ) {
    const event = (await (await fetch(`${server.http}${session}`)).json()) as Record<string, any>;
    status = event.plugindata?.data.status ?? status;
    expect(status, JSON.stringify(event)).not.toBe('ended');
  }
}
