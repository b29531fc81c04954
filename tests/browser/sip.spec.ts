// SIP with janus.js, unmodified, used as Janus's demo does: events in their order, field by field.
import type { BrowserContext, Page } from '@playwright/test';
import { buildSync } from 'esbuild';
import { isReference } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { hears, TONES } from './audio';
import { blankPage } from './in-page';
import { type Kamailio, startKamailio } from './kamailio';
import { expect, type Name, newUser, test as base } from './phone';
import { startAnswering, startCalling } from './sipp';
import { mediaFlows } from './stats';

type Json = Record<string, any>;

const test = base.extend<{}, { demoScript: string }>({
  demoScript: [
    async ({}, use) => {
      const entryPoints = [new URL('sip-demo.ts', import.meta.url).pathname];
      await use(buildSync({ entryPoints, bundle: true, write: false, format: 'iife' }).outputFiles[0].text);
    },
    { scope: 'worker' },
  ],
});

const run = <T>(page: Page, expression: string): Promise<T> => page.evaluate(`(async () => (${expression}))()`) as Promise<T>;
const send = (page: Page, body: object, demo = 'demo') => run<void>(page, `${demo}.send(${JSON.stringify(body)})`);
const events = (page: Page, demo = 'demo') => run<Json[]>(page, `${demo}.events`);

/** A tab with the demo in it, registered as a user. */
async function open(context: BrowserContext, server: Server, script: string, kamailio: Kamailio, user: string, tone: Name, transport: 'http' | 'ws' = 'ws', more: object = {}): Promise<Page> {
  const page = await context.newPage();
  await blankPage(page, server, script, `?tone=${TONES[tone]}`);
  await run(page, `window.demo = await SipDemo.open(${JSON.stringify(server[transport])}), null`);
  await send(page, { request: 'register', username: kamailio.uri(user), secret: kamailio.secret(user), proxy: `sip:${kamailio.domain}`, ...more });
  await told(page, { event: 'registered', username: user, register_sent: true });
  return page;
}

/** Waits until the plugin has told something. */
async function told(page: Page, event: Json, demo = 'demo'): Promise<Json> {
  await expect.poll(() => events(page, demo), { message: `told ${JSON.stringify(event)}` }).toContainEqual(expect.objectContaining(event));
  return (await events(page, demo)).filter((one) => Object.entries(event).every(([key, value]) => one[key] === value)).at(-1) as Json;
}

test('as in the demo: register, call, be called, update, INFO, hold, hang up, unregister', async ({ context, server, demoScript, kamailio }) => {
  const [annName, benName] = [newUser('ann'), newUser('ben')];
  const ann = await open(context, server, demoScript, kamailio, annName, 'ann', 'ws', { display_name: 'Ann', incoming_header_prefixes: ['X-'] });
  const ben = await open(context, server, demoScript, kamailio, benName, 'ben', 'http', { incoming_header_prefixes: ['X-'] });
  expect(await events(ann)).toMatchObject([{ event: 'registering' }, { event: 'registered', headers: {} }]);

  await run(ann, `demo.call('${kamailio.uri(benName)}', { headers: { 'X-Colour': 'green' } })`);
  const incoming = await told(ben, { event: 'incomingcall', jsep: 'offer' });
  expect(incoming).toMatchObject({ username: kamailio.uri(annName), displayname: '"Ann"', callee: kamailio.uri(benName), headers: { 'X-Colour': 'green' } });
  expect(incoming.at).toBe(incoming.call_id);
  await told(ann, { event: 'ringing' });
  await run(ben, `demo.accept({ headers: { 'X-Answer': 'yes' } })`);
  await told(ann, { event: 'accepted', username: kamailio.uri(benName), jsep: 'answer' });
  expect((await told(ann, { event: 'accepted' })).headers).toEqual({ 'X-Answer': 'yes' });
  await hears(ann, 'ben');
  await hears(ben, 'ann');
  expect((await events(ann)).slice(2).map(({ event }) => event)).toEqual(['calling', 'ringing', 'proceeding', 'accepted']);

  await send(ann, { request: 'info', type: 'text/plain', content: 'hello' });
  await told(ben, { event: 'info', type: 'text/plain', content: 'hello' });
  await send(ann, { request: 'dtmf_info', digit: '5' });
  await told(ben, { event: 'info', type: 'application/dtmf-relay' });
  await send(ben, { request: 'message', content: 'within the call' });
  await told(ann, { event: 'message', content: 'within the call', content_type: 'text/plain' });

  // Ben decides about what Ann wants to change.
  await run(ann, 'demo.addPicture()');
  await told(ben, { event: 'updatingcall', jsep: 'offer' });
  await told(ann, { event: 'updating' });
  await told(ben, { event: 'updated' });
  await mediaFlows(ann, { audio: true, video: true });
  await mediaFlows(ben, { audio: true, video: true });

  await send(ann, { request: 'hangup', headers: { 'X-Why': 'done' } });
  expect(await told(ann, { event: 'hangup' })).toMatchObject({ code: 200, reason: 'to BYE' });
  expect(await told(ben, { event: 'hangup' })).toMatchObject({ code: 200, reason: 'Session Terminated', ...(!isReference && { headers: { 'X-Why': 'done' } }) });
  await expect.poll(() => run(ben, 'demo.up')).toBe(false);

  // Declined, and what is not allowed.
  await run(ben, `demo.call('${kamailio.uri(annName)}')`);
  await told(ann, { event: 'incomingcall' });
  await send(ann, { request: 'decline', code: 480 });
  await told(ann, { event: 'declining', code: 480 });
  expect(await told(ben, { event: 'hangup', code: 480 })).toBeTruthy();
  await send(ann, { request: 'register', username: kamailio.uri(annName), secret: 'x' });
  await send(ann, { request: 'call', uri: 'nonsense' });
  await expect.poll(() => run<Json[]>(ann, 'demo.errors.map(({ error_code }) => error_code)')).toEqual([445, 446]);

  await send(ann, { request: 'unregister' });
  await told(ann, { event: 'unregistered', username: annName });
});

test('helpers: a second call rings on another line, and calls are transferred by Call-ID', async ({ context, server, demoScript, kamailio }) => {
  const users = { ann: newUser('ann'), ben: newUser('ben'), cleo: newUser('cleo') };
  const ann = await open(context, server, demoScript, kamailio, users.ann, 'ann');
  await run(ann, `window.helper = await SipDemo.open('', demo), null`);
  await send(ann, { request: 'register', type: 'helper', username: kamailio.uri(users.ann), master_id: 1 }, 'helper');
  await expect.poll(() => run<Json[]>(ann, 'helper.errors.map(({ error_code }) => error_code)')).toEqual([453]);
  await send(ann, { request: 'register', type: 'helper', username: kamailio.uri(users.ann), master_id: await run<number>(ann, 'demo.masterId') }, 'helper');
  await told(ann, { event: 'registered', helper: true, register_sent: false }, 'helper');
  const ben = await open(context, server, demoScript, kamailio, users.ben, 'ben');
  const cleo = await open(context, server, demoScript, kamailio, users.cleo, 'cleo');

  await run(ben, `demo.call('${kamailio.uri(users.ann)}')`);
  await told(ann, { event: 'incomingcall', username: kamailio.uri(users.ben) });
  await run(ann, 'demo.accept()');
  await told(ben, { event: 'accepted' });
  await run(cleo, `demo.call('${kamailio.uri(users.ann)}')`);
  await told(ann, { event: 'incomingcall', username: kamailio.uri(users.cleo) }, 'helper');
  await run(ann, 'helper.accept()');
  await told(cleo, { event: 'accepted' });
  // Ben is told to call Cleo in the place of Ann.
  const callId = (await told(ann, { event: 'incomingcall' }, 'helper')).call_id;
  await send(ann, { request: 'transfer', uri: kamailio.uri(users.cleo), replace: 'unknown' });
  await expect.poll(() => run<Json[]>(ann, 'demo.errors.map(({ error_code }) => error_code)')).toEqual([454]);
  await send(ann, { request: 'transfer', uri: kamailio.uri(users.cleo), replace: callId });
  await told(ann, { event: 'transferring' });
  const transfer = await told(ben, { event: 'transfer' });
  expect(transfer).toMatchObject({ refer_id: expect.any(Number), refer_to: expect.stringContaining(users.cleo) });
  await send(ben, { request: 'decline', refer_id: transfer.refer_id });
  // How it goes is told first, and then how it ended.
  let notify = await told(ann, { event: 'notify' });
  while (String(notify['content']).includes('100')) notify = await told(ann, { event: 'notify' });
  expect(notify).toMatchObject({ notify: 'refer', content: expect.stringContaining('603') });

  // A third caller finds all lines busy.
  await send(ben, { request: 'hangup' });
  await told(ann, { event: 'hangup' });
  for (const page of [ann, ben]) await expect.poll(() => run(page, 'demo.up')).toBe(false);
  await run(ann, `demo.call('${kamailio.uri(users.ben)}')`);
  await told(ben, { event: 'incomingcall' });
  const echo = await startCalling(kamailio.domain, users.ann, 100);
  await told(ann, { event: 'missed_call', caller: 'sip:echo@elsewhere.test' });
  await echo.stop();
});

for (const transport of ['udp', 'tcp'] as const) {
  test(`an echo by ${transport}${transport === 'udp' ? ' that loses messages' : ''}, called and calling`, async ({ context, server, demoScript, kamailio }) => {
    const user = newUser('ann');
    const ann = await open(context, server, demoScript, kamailio, user, 'ann', 'ws', transport === 'tcp' ? { force_tcp: true } : {});
    const lost = transport === 'udp' ? 10 : 0;
    const { child, uri } = await startAnswering({ transport, lost });
    await run(ann, `demo.call('${uri}')`);
    await told(ann, { event: 'accepted', jsep: 'answer' });
    await hears(ann, 'ann');
    await send(ann, { request: 'dtmf_info', digit: '9' });
    await told(ann, { event: 'dtmfsent' });
    if (!lost) {
      await send(ann, { request: 'hold' });
      await told(ann, { event: 'holding' });
      await hears(ann);
      await send(ann, { request: 'unhold' });
      await told(ann, { event: 'resuming' });
      await hears(ann, 'ann');
    }
    await send(ann, { request: 'hangup' });
    await told(ann, { event: 'hangup', code: 200 });
    if (!lost) expect(await child.end(), child.log()).toBe(0);
    await child.stop();

    const caller = await startCalling(kamailio.domain, user, 1_000, { transport, lost });
    await told(ann, { event: 'incomingcall', displayname: '"Echo"' });
    await run(ann, 'demo.accept()');
    expect(await caller.end(), caller.log()).toBe(0);
    await told(ann, { event: 'hangup', reason: 'Session Terminated' });
    await caller.stop();
  });
}

test('called over a WebSocket to the proxy, with digests of SHA-256', async ({ context, server, demoScript }) => {
  test.skip(isReference, 'the reference has neither');
  const kamailio = await startKamailio('SHA-256');
  const user = newUser('ann');
  const ann = await open(context, server, demoScript, kamailio, user, 'ann', 'ws', { proxy: `sip:127.0.0.1:${kamailio.ws};transport=ws` });
  const caller = await startCalling(kamailio.domain, user, 1_000);
  await told(ann, { event: 'incomingcall', displayname: '"Echo"' });
  await run(ann, 'demo.accept()');
  await hears(ann, 'ann');
  expect(await caller.end(), caller.log()).toBe(0);
  await told(ann, { event: 'hangup', reason: 'Session Terminated' });
  await caller.stop();
  await kamailio.stop();
});

test('who guesses passwords, and a server that is not there', async ({ context, server, demoScript, kamailio }) => {
  const page = await context.newPage();
  await blankPage(page, server, demoScript);
  await run(page, `window.demo = await SipDemo.open(${JSON.stringify(server.ws)}), null`);
  const user = newUser('eve');
  await send(page, { request: 'register', username: kamailio.uri(user), secret: 'guess', proxy: `sip:${kamailio.domain}` });
  expect(await told(page, { event: 'registration_failed' })).toMatchObject({ code: 904 });
  await send(page, { request: 'register', username: 'sip:eve@127.0.0.1:9', secret: 'guess' });
  await told(page, { event: 'registration_failed', code: 503 });
  await send(page, { request: 'register', type: 'guest', username: `sip:eve@127.0.0.1` });
  await told(page, { event: 'registered', register_sent: false });
  await run(page, `demo.call('sip:nobody@127.0.0.1:9')`);
  await told(page, { event: 'hangup', code: 503 });
});
