// One account on several pages: all ring, calls move from page to page, and outlive a reload.
import { isReference } from '../server/index.mjs';
import { hears } from './audio';
import { Baresip } from './baresip';
import { callWith, dial, expect, isFree, newUser, press, register, talks, test } from './phone';
import { phoneHears } from './sound-file';

test.skip(isReference, 'the reference has an account on one page');

test('three pages on one account: all ring, the first to accept has the call, another takes it over', async ({ context, kamailio }) => {
  const [ann, bare] = [newUser('ann'), newUser('bare')];
  const phone = await Baresip.start(kamailio, { user: bare, tone: 'file' });
  try {
    const desk = await register(context, kamailio, ann, 'ann', '&page=desk');
    const sofa = await register(context, kamailio, ann, 'ben', '&page=sofa');
    const shed = await register(context, kamailio, ann, 'cleo', '&page=shed');
    phone.dial(ann);
    for (const page of [desk, sofa, shed]) await expect(callWith(page, bare)).toBeVisible();
    await press(sofa, bare, 'accept');
    await talks(sofa, bare);
    await hears(sofa, 'file');
    await phoneHears(phone, 'ben');
    for (const page of [desk, shed]) {
      await isFree(page);
      await expect(page.getByTestId('notice')).toContainText('accepted on another page');
    }
    // Who is where is seen everywhere.
    await expect(desk.getByTestId('lines')).toContainText('sofa');
    await expect(desk.getByTestId('lines').locator('li', { hasText: 'sofa' })).toContainText(`talks with ${bare}`);

    await desk.getByTestId('take').click();
    await talks(desk, bare);
    await hears(desk, 'file');
    await phoneHears(phone, 'ann');
    await isFree(sofa);

    // Calls out are theirs who call.
    await press(desk, bare, 'hangup');
    await phone.event('CALL_CLOSED');
    await dial(shed, bare);
    await talks(shed, bare);
    await phoneHears(phone, 'cleo');
    await isFree(desk);
  } finally {
    await phone.stop();
  }
});

test('a page that is reloaded has its call again', async ({ context, kamailio }) => {
  const [ann, bare] = [newUser('ann'), newUser('bare')];
  const phone = await Baresip.start(kamailio, { user: bare, tone: 'file' });
  try {
    const page = await register(context, kamailio, ann, 'ann');
    await dial(page, bare);
    await talks(page, bare);
    await phoneHears(phone, 'ann');
    await page.reload();
    await talks(page, bare);
    await hears(page, 'file');
    await phoneHears(phone, 'ann');
    expect(phone.events.map((event) => event['type'])).not.toContain('CALL_CLOSED');
    await press(page, bare, 'hangup');
    await phone.event('CALL_CLOSED');
  } finally {
    await phone.stop();
  }
});
