// The phones that the tests of SIP use, without the server: whatever fails here is no fault of ours.
import { expect, test } from '@playwright/test';
import { Baresip } from './baresip';
import { needsPhones, startKamailio } from './kamailio';
import { Linphone } from './linphone';
import { startCalling } from './sipp';
import { phoneHears } from './sound-file';

test('phones hear each other through a proxy, and an echo', async () => {
  needsPhones();
  const kamailio = await startKamailio();
  const [bare, lin] = await Promise.all([
    Baresip.start(kamailio, { user: 'bare', tone: 'ann', transport: 'tls', codecs: 'opus/48000/2,PCMU/8000/1' }),
    Linphone.start(kamailio, { user: 'lin', tone: 'ben', transport: 'tcp', codecs: ['opus/48000', 'PCMU/8000'] }),
  ]);
  try {
    bare.dial('lin');
    await bare.event('CALL_ESTABLISHED');
    await phoneHears(bare, 'ben');
    await phoneHears(lin, 'ann');
    bare.command('sndcode 5');
    await lin.says('Receiving tone 5');
    lin.command('terminate all');
    await bare.event('CALL_CLOSED');

    const echo = await startCalling(kamailio.domain, 'lin', 1_500, { lost: 10 });
    await lin.says('Media streams established with "Echo"');
    expect(await echo.end(), echo.log()).toBe(0);
    await echo.stop();
  } finally {
    await Promise.all([bare.stop(), lin.stop()]);
    await kamailio.stop();
  }
});
