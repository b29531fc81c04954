// The phone page: pages call each other and phones, through a proxy.
import { hears } from './audio';
import { Baresip } from './baresip';
import { Linphone } from './linphone';
import { callWith, dial, expect, isFree, newUser, press, register, talks, test } from './phone';
import { answerCalls } from './plain-peer';
import { phoneHears } from './sound-file';
import { grows, mediaFlows } from './stats';

test('two pages call each other: ringing, sound, hold, mute, the end', async ({ context, kamailio }) => {
  const [ann, ben] = [newUser('ann'), newUser('ben')];
  const one = await register(context, kamailio, ann, 'ann');
  const other = await register(context, kamailio, ben, 'ben', '&display=Ben');
  await dial(one, ben);
  await expect(callWith(other, ann).getByTestId('call-state')).toHaveText('is calling');
  await expect(callWith(one, ben).getByTestId('call-state')).toHaveText('Ringing…');
  await expect.poll(() => other.title()).toBe(`☎ ${ann} is calling`);
  await press(other, ann, 'accept');
  await talks(one, ben);
  await hears(one, 'ben');
  await hears(other, 'ann');
  const level = callWith(one, ben).getByTestId('call-level');
  await expect.poll(() => level.evaluate((meter: HTMLMeterElement) => meter.value)).toBeGreaterThan(0.3);

  await press(one, ben, 'hold');
  await expect(callWith(one, ben).getByTestId('call-state')).toContainText('On hold');
  await hears(one);
  await press(one, ben, 'hold');
  await hears(one, 'ben');
  await hears(other, 'ann');
  await press(one, ben, 'mute');
  await hears(other);
  await press(one, ben, 'mute');
  await hears(other, 'ann');

  await press(other, ann, 'hangup');
  await isFree(one);
  await isFree(other);

  // The other way round, declined, and given up.
  await dial(other, ann);
  await expect(callWith(one, 'Ben')).toBeVisible();
  await press(one, 'Ben', 'hangup');
  await expect(other.getByTestId('notice')).toContainText('busy');
  await isFree(other);
  await dial(other, ann);
  await expect(callWith(one, 'Ben')).toBeVisible();
  await press(other, ann, 'hangup');
  await isFree(one);
});

test('with picture', async ({ context, kamailio }) => {
  const [ann, ben] = [newUser('ann'), newUser('ben')];
  const one = await register(context, kamailio, ann, 'ann', '&source=synthetic');
  const other = await register(context, kamailio, ben, 'ben', '&source=synthetic');
  await one.getByTestId('with-picture').check();
  await dial(one, ben);
  await press(other, ann, 'accept-picture');
  for (const page of [one, other]) await mediaFlows(page, { audio: true, video: true });
  await expect(callWith(one, ben).getByTestId('picture')).toBeVisible();
});

for (const codec of ['PCMU', 'G722', 'opus'] as const) {
  test(`a page and a phone hear each other in ${codec}, with keys both ways`, async ({ context, kamailio }) => {
    const [ann, bare] = [newUser('ann'), newUser('bare')];
    const codecs = { PCMU: 'PCMU/8000/1', G722: 'G722/16000/1', opus: 'opus/48000/2' }[codec];
    const phone = await Baresip.start(kamailio, { user: bare, tone: 'ben', codecs });
    try {
      const page = await register(context, kamailio, ann, 'ann');
      await dial(page, bare);
      await phone.event('CALL_ESTABLISHED');
      await hears(page, 'ben');
      await phoneHears(phone, 'ann');
      await mediaFlows(page, { audio: codec });
      await press(page, bare, 'keys');
      await callWith(page, bare).getByTestId('key-7').click();
      await phone.event('CALL_DTMF_START', { param: '7' });
      phone.command('sndcode 5');
      await expect(callWith(page, bare).getByTestId('sent-keys')).toContainText('They pressed 5');
      phone.command('hangup');
      await isFree(page);

      // The phone calls.
      phone.dial(ann);
      await press(page, bare, 'accept');
      await talks(page, bare);
      await hears(page, 'ben');
      await phoneHears(phone, 'ann');
    } finally {
      await phone.stop();
    }
  });
}

for (const video of ['H264', 'VP8'] as const) {
  test(`a page and a phone see each other in ${video}, called and calling`, async ({ context, kamailio }) => {
    const [ann, bare] = [newUser('ann'), newUser('bare')];
    const phone = await Baresip.start(kamailio, { user: bare, tone: 'ben', video });
    try {
      const page = await register(context, kamailio, ann, 'ann', '&source=synthetic');
      await page.getByTestId('with-picture').check();
      await dial(page, bare);
      await talks(page, bare);
      await mediaFlows(page, { audio: 'PCMU', video });
      await expect.poll(() => phone.sees(), { message: 'the phone sees the page' }).toBe(true);
      phone.command('hangup');
      await isFree(page);
      phone.dial(ann);
      await press(page, bare, 'accept-picture');
      await mediaFlows(page, { video });
    } finally {
      await phone.stop();
    }
  });
}

test('phones of another make, in G.722 and Opus', async ({ context, kamailio }) => {
  const [ann, wide, full] = [newUser('ann'), newUser('wide'), newUser('full')];
  const phones = await Promise.all([
    Linphone.start(kamailio, { user: wide, tone: 'ben', codecs: ['G722/8000'] }),
    Linphone.start(kamailio, { user: full, tone: 'cleo', codecs: ['opus/48000'] }),
  ]);
  try {
    const page = await register(context, kamailio, ann, 'ann');
    for (const [user, phone, tone, audio] of [[wide, phones[0], 'ben', 'G722'], [full, phones[1], 'cleo', 'opus']] as const) {
      await dial(page, user);
      await talks(page, user);
      await hears(page, tone);
      await phoneHears(phone, 'ann');
      await mediaFlows(page, { audio });
      await press(page, user, 'hangup');
      await isFree(page);
    }
  } finally {
    await Promise.all(phones.map((phone) => phone.stop()));
  }
});

test('transfers: to a number, with a call, and by a phone', async ({ context, kamailio }) => {
  const [ann, lin, leo] = [newUser('ann'), newUser('lin'), newUser('leo')];
  const [phone, third] = await Promise.all([
    Linphone.start(kamailio, { user: lin, tone: 'ben' }),
    Linphone.start(kamailio, { user: leo, tone: 'cleo' }),
  ]);
  const areConnected = async () => {
    await phoneHears(phone, 'cleo');
    await phoneHears(third, 'ben');
  };
  try {
    const page = await register(context, kamailio, ann, 'ann');
    await dial(page, lin);
    await talks(page, lin);
    await press(page, lin, 'transfer');
    await callWith(page, lin).getByTestId('transfer-to').fill(leo);
    await callWith(page, lin).getByTestId('transfer-now').click();
    await areConnected();
    await isFree(page);
    await phone.endCalls();

    // With a call: whoever is called meanwhile holds the first.
    await dial(page, leo);
    await talks(page, leo);
    await dial(page, lin);
    await talks(page, lin);
    await expect(callWith(page, leo).getByTestId('call-state')).toContainText('On hold');
    await press(page, leo, 'transfer');
    await callWith(page, leo).getByTestId('transfer-call').click();
    await areConnected();
    await isFree(page);
    await phone.endCalls();

    // A phone sends the page elsewhere.
    await dial(page, lin);
    await talks(page, lin);
    phone.command(`transfer ${kamailio.uri(leo)}`);
    await page.getByTestId('follow').click();
    await talks(page, leo);
    await hears(page, 'cleo');
    await phoneHears(third, 'ann');
  } finally {
    await Promise.all([phone.stop(), third.stop()]);
  }
});

test('all phones of a user ring, and the first to answer has the call', async ({ context, kamailio }) => {
  const [ann, ben] = [newUser('ann'), newUser('ben')];
  const [phone, other] = await Promise.all([
    Baresip.start(kamailio, { user: ben, tone: 'ben', answer: 'manual' }),
    Linphone.start(kamailio, { user: ben, tone: 'cleo', answer: 'manual' }),
  ]);
  try {
    const page = await register(context, kamailio, ann, 'ann');
    await dial(page, ben);
    await phone.event('CALL_INCOMING');
    await other.says('Receiving new incoming call');
    other.command('answer');
    await talks(page, ben);
    await hears(page, 'cleo');
    await phone.event('CALL_CLOSED');
  } finally {
    await Promise.all([phone.stop(), other.stop()]);
  }
});

test('registered by TCP, with phones that speak SRTP only', async ({ context, kamailio }) => {
  const [ann, lin] = [newUser('ann'), newUser('lin')];
  const [page, phone] = await Promise.all([
    register(context, kamailio, ann, 'ann', '&transport=tcp&srtp=sdes_mandatory'),
    Linphone.start(kamailio, { user: lin, tone: 'ben', transport: 'tcp', srtp: true }),
  ]);
  try {
    await dial(page, lin);
    await talks(page, lin);
    await hears(page, 'ben');
    await phoneHears(phone, 'ann');
    await press(page, lin, 'hangup');
    await isFree(page);
    phone.command(`call ${kamailio.uri(ann)}`);
    await press(page, lin, 'accept');
    await hears(page, 'ben');
    await phoneHears(phone, 'ann');
  } finally {
    await phone.stop();
  }
});

test('registered by TLS, with SRTP where the other end can', async ({ context, kamailio }) => {
  const [ann, bare, plain] = [newUser('ann'), newUser('bare'), newUser('plain')];
  const server = { ...kamailio, domain: `127.0.0.1:${kamailio.tls}` };
  const [page, phone, other] = await Promise.all([
    register(context, server, ann, 'ann', '&transport=tls&srtp=sdes_optional'),
    Baresip.start(kamailio, { user: bare, tone: 'ben', transport: 'tls', srtp: 'srtp' }),
    Baresip.start(kamailio, { user: plain, tone: 'cleo', transport: 'tls' }),
  ]);
  try {
    await dial(page, bare);
    await talks(page, bare);
    await hears(page, 'ben');
    await phoneHears(phone, 'ann');
    expect(phone.child.log()).toContain('SRTP is Enabled');
    await press(page, bare, 'hangup');
    await isFree(page);
    await dial(page, plain);
    await talks(page, plain);
    await hears(page, 'cleo');
    await phoneHears(other, 'ann');
    other.command('hangup');
    await isFree(page);
    phone.dial(ann);
    await press(page, bare, 'accept');
    await hears(page, 'ben');
  } finally {
    await Promise.all([phone.stop(), other.stop()]);
  }
});

test('messages, and what is said when something fails', async ({ context, kamailio }) => {
  const [ann, ben] = [newUser('ann'), newUser('ben')];
  const one = await register(context, kamailio, ann, 'ann');
  const other = await register(context, kamailio, ben, 'ben');
  await one.getByTestId('message-to').fill(ben);
  await one.getByTestId('message-text').fill('can you hear me?');
  await one.getByTestId('message-send').click();
  await expect(other.getByTestId('messages')).toContainText(`${ann}: can you hear me?`);
  await expect(one.getByTestId('messages')).toContainText('✓');
  await other.getByTestId('message-text').fill('yes');
  await other.getByTestId('message-send').click();
  await expect(one.getByTestId('messages')).toContainText(`${ben}: yes`);
  await one.getByTestId('message-to').fill('nobody');
  await one.getByTestId('message-text').fill('hello');
  await one.getByTestId('message-send').click();
  await expect(one.getByTestId('messages')).toContainText('not delivered: 404');

  await dial(one, 'nobody');
  await expect(one.getByTestId('notice')).toContainText('nobody is unknown there (404)');
  await isFree(one);
  await one.getByTestId('unregister').click();
  await expect(one.getByTestId('status')).toHaveText('Not registered.');
  await one.getByTestId('secret').fill('wrong');
  await one.getByTestId('register').click();
  await expect(one.getByTestId('notice')).toContainText('refuses this user and password');
  await one.getByTestId('server').fill('127.0.0.1:9');
  await one.getByTestId('register').click();
  await expect(one.getByTestId('notice')).toContainText('cannot be reached');
  await expect(one.getByTestId('status')).toHaveText('Not registered.');

  // The server ends a call whose media it may not send.
  const { socket, domain } = await answerCalls();
  try {
    // A tab of its own: the others remember their accounts.
    const page = await context.newPage();
    await page.goto(`/sip.html?server=${domain}&user=${ben}&guest=1&srtp=sdes_mandatory&tone=440`);
    await page.getByTestId('register').click();
    await expect(page.getByTestId('status')).toHaveText('Ready to call, without a registration.');
    await dial(page, 'plain');
    await expect(page.getByTestId('notice')).toContainText(/The call with plain has ended: .*SRTP/);
    await isFree(page);
  } finally {
    socket.close();
  }
});

test('on a phone', async ({ context, kamailio }, info) => {
  const [ann, ben] = [newUser('ann'), newUser('ben')];
  const page = await context.newPage();
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(`/sip.html?server=${kamailio.domain}&user=${ann}&tone=440`);
  await page.getByTestId('secret').fill(kamailio.secret(ann));
  await page.getByTestId('register').click();
  const other = await register(context, kamailio, ben, 'ben');
  for (const key of ['1', '2', 'star']) await page.getByTestId(`dial-${key}`).click();
  await expect(page.getByTestId('number')).toHaveValue('12*');
  await dial(other, ann);
  await press(page, ben, 'accept');
  await talks(page, ben);
  await press(page, ben, 'keys');
  await press(page, ben, 'transfer');
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  for (const button of await page.getByRole('button').all()) {
    if (await button.isVisible()) expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  }
  await page.screenshot({ path: info.outputPath('phone.png'), fullPage: true });
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 10);
});
