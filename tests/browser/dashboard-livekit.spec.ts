// The dashboard of a server whose clients come by the Janus API and by LiveKit's protocol.
import { expect, FIREFOX, test as base } from './fixtures';
import { connect, inRoom, openSdk, startLiveKit, token, type LiveKitServer } from './livekit';

const CONFIG = '\n[[videoroom.room]]\nroom = 77\ndescription = "Council"\n';

const test = base.extend<object, {}>({
  server: [
    async ({}, use) => {
      const server = await startLiveKit(CONFIG);
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
});

test('rooms have the people of both protocols', FIREFOX, async ({ page, context, server }) => {
  const ann = await context.newPage();
  await ann.goto(`${server.base}/videoroom.html?room=77&name=Ann&source=none`);
  await ann.getByTestId('join').click();
  await expect(ann.getByTestId('room-title')).toHaveText('Council');
  const al = await context.newPage();
  await openSdk(al, server as LiveKitServer);
  // Names are the identities in capitals.
  await connect(al, server as LiveKitServer, token('al', '77'));
  await inRoom(al, 'room.localParticipant.setMicrophoneEnabled(true).then(() => null)');
  const bo = await context.newPage();
  await openSdk(bo, server as LiveKitServer);
  await connect(bo, server as LiveKitServer, token('bo', '4000'));

  await page.goto(server.admin.replace(/admin$/, ''));
  await page.getByTestId('room-77').locator('summary').click();
  const people = page.getByTestId('room-77').getByTestId('room-people');
  await expect(people.getByRole('listitem').filter({ hasText: 'Ann' })).toBeVisible();
  await expect(people.getByRole('listitem').filter({ hasText: 'AL' })).toContainText('sends');
  // A room that a join has made.
  await page.getByTestId('room-4000').locator('summary').click();
  await expect(page.getByTestId('room-4000').getByTestId('room-people')).toContainText('BO');
  for (const place of ['room 77 · Ann', 'room 77 · al', 'room 4000 · bo']) await expect(page.getByTestId('sessions')).toContainText(place);

  await inRoom(al, 'room.disconnect().then(() => null)');
  await expect(people.getByRole('listitem')).toHaveCount(1);
});
