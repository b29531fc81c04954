// Runs LiveKit's clients for Go against the server: our scenarios with livekit-server's test client and with the SDK, and the end-to-end
// tests that the SDK has itself, as its authors publish them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startPortunus } from '../../server/portunus.mjs';

const SDK = 'github.com/livekit/server-sdk-go/v2';
const SECRET = 'secretsecretsecretsecretsecretsecret';

/**
 * The SDK's own tests that need a server. They know one address only. Left out: `TestSubscribeMutedTrack` and `TestSimulcastCodec` expect what
 * docs/livekit.md lists as differences, and `TestForceTLS` expects TURN by TLS.
 */
const OWN = [
  'TestJoin', 'TestPublishDTMF', 'TestJoinError', 'TestJoinSinglePeerConnection', 'TestPublishRequiresSinglePC', 'TestPubSub', 'TestResume',
  'TestLimitPayloadSize', 'TestPublishTrackMimeType', 'TestE2EE_H264RoundTrip', 'TestDynacastRepublish',
];
const PORT = 7880;

/**
 * Runs tests of a package. Each is a test of `t`; those of a group are in their output.
 * @param {import('node:test').TestContext} t
 * @param {string[]} args
 */
async function goTest(t, args, env = {}) {
  const run = spawn('go', ['test', '-json', '-count=1', '-timeout=170s', ...args], {
    cwd: new URL('.', import.meta.url), env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(run, 'exit');
  /** @type {Map<string, string>} */
  const output = new Map();
  const results = [];
  let rest = '';
  for await (const line of createInterface({ input: run.stdout })) {
    const { Action, Test, Output = '' } = JSON.parse(line);
    const name = Test?.split('/')[0];
    if (name === undefined) rest += Output;
    else if (Action === 'output') output.set(name, (output.get(name) ?? '') + Output);
    else if (name === Test && ['pass', 'fail', 'skip'].includes(Action)) results.push({ name, action: Action });
  }
  const [status] = await ended;
  for (const { name, action } of results) {
    await t.test(name, { skip: action === 'skip' }, () => {
      if (action === 'fail') throw new Error(tail(output.get(name)));
    });
  }
  const isTold = results.some((it) => it.action === 'fail');
  if (results.length === 0 || (status !== 0 && !isTold)) throw new Error(`go test ended with status ${status}: ${tail(rest + [...output.values()].join(''))}`);
}

/** The lines that say what failed, without the clients' logs. */
function tail(text = '') {
  const lines = text.split('\n').filter((line) => !/\t(?:DEBUG|INFO|WARN|ERROR)\t|"level"/.test(line));
  return lines.join('\n').slice(-4_000);
}

test("livekit-server's test client and the SDK", (t) => goTest(t, ['.'], { LIVEKIT_KEYS: `devkey: ${SECRET}` }));

test("the SDK's own tests", { skip: process.env.LIVEKIT_URL && 'another server' }, async (t) => {
  const config = `[livekit]\nkeys = { devkey = "${SECRET}" }\nbind = ["127.0.0.1", "::1"]\nport = ${PORT}\n`;
  const server = await startPortunus({ config });
  try {
    // The SDK skips tests that need TLS there.
    await goTest(t, [SDK, '-run', `^(${OWN.join('|')})$`], { LIVEKIT_KEYS: `devkey: ${SECRET}`, CI: '1' });
  } finally {
    await server.stop();
  }
});
