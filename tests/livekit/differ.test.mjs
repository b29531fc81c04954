// The same sessions at livekit-server and here. Without LIVEKIT_REFERENCE_URL: against what livekit-server 1.13.5 has answered.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { differences, reasonOf } from './differ.mjs';
import { hasGuests } from './guest.mjs';
import { startLiveKit } from './server.mjs';
import { sessions } from './sessions/index.mjs';

let server;
before(async () => { server = await startLiveKit(); });
after(() => server?.stop());

for (const name of Object.keys(sessions)) {
  const skip = name.startsWith('media') && !hasGuests && 'scripts/setup interop was not run';
  test(`${name}: only known differences`, { skip }, async () => {
    const found = await differences(process.env.LIVEKIT_REFERENCE_URL, server.url, [name]);
    assert.deepEqual(found.filter((it) => reasonOf(it) === undefined), []);
  });
}
