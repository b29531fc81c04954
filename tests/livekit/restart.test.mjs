// What the services have set is there when the server is started again.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { IngressClient, IngressInput, RoomServiceClient, SipClient } from 'livekit-server-sdk';
import { ParticipantInfo_Kind, SIPTransport } from '@livekit/protocol';
import { freeTcpPort, freeUdpPorts } from '../server/ports.mjs';
import { startLiveKit } from './server.mjs';
import { KEY, SECRET } from './tokens.mjs';

const skip = process.env.LIVEKIT_URL && 'another server';

/** Messages without the times of states. */
const plain = (list) => list.map((it) => {
  const json = it.toJson();
  delete json.state;
  delete json.updatedAt;
  delete json.createdAt;
  return json;
});

test('trunks, rules and ingresses are there after a restart, until they are deleted', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portunus-restart-'));
  t.after(() => rm(folder, { recursive: true }));
  const [sipPort, rtmp] = [await freeUdpPorts(1), await freeTcpPort()];
  const file = join(folder, 'livekit.toml');
  const server = await startLiveKit(`save = "${file}"
[livekit.ingress]
rtmp_port = ${rtmp}
rtmp_ports = 1
[sip]
listen = ["udp:${sipPort}"]
local_ip = "127.0.0.1"`);
  t.after(() => server.stop());
  const [sip, ingress, rooms] = [SipClient, IngressClient, RoomServiceClient].map((Client) => new Client(server.url, KEY, SECRET));
  const all = async () => ({
    inbound: plain(await sip.listSipInboundTrunk()),
    outbound: plain(await sip.listSipOutboundTrunk()),
    rules: plain(await sip.listSipDispatchRule()),
    ingresses: plain(await ingress.listIngress()),
  });

  const trunk = await sip.createSipInboundTrunk('in', ['+4930'], { allowedAddresses: ['127.0.0.1'], metadata: 'm "1"\n' });
  const out = await sip.createSipOutboundTrunk('out', '127.0.0.1:5999', ['+4940'], { transport: SIPTransport.SIP_TRANSPORT_TCP, authUsername: 'al', authPassword: 'b' });
  const rule = await sip.createSipDispatchRule({ type: 'direct', roomName: 'phone', pin: '' }, { trunkIds: [trunk.sipTrunkId], attributes: { a: 'b' } });
  const to = { roomName: 'studio', participantIdentity: 'obs' };
  await ingress.createIngress(IngressInput.WHIP_INPUT, to);
  const listening = await ingress.createIngress(IngressInput.RTMP_INPUT, to);
  await ingress.updateIngress(listening.ingressId, { participantName: 'Camera' });
  const before = await all();
  assert.deepEqual(Object.values(before).map((it) => it.length), [1, 1, 1, 2]);
  assert.equal(before.ingresses[1].participantName, 'Camera');

  await server.restart();
  assert.deepEqual(await all(), before);
  // They are used, too.
  const options = ['-s', '+4930', '-m', '1', '-d', '60000', '-nostdin', '-p', `${await freeUdpPorts(1)}`, `127.0.0.1:${sipPort}`];
  const caller = spawn('sipp', ['-i', '127.0.0.1', '-sn', 'uac', ...options], { stdio: 'ignore', cwd: folder });
  t.after(() => caller.kill('SIGKILL'));
  for (const deadline = Date.now() + 20_000; ; ) {
    const people = await rooms.listParticipants('phone');
    const there = people.find((it) => it.kind === ParticipantInfo_Kind.SIP);
    if (there) {
      assert.equal(there.attributes.a, 'b');
      break;
    }
    assert.ok(Date.now() < deadline, 'no call comes in');
    await new Promise((done) => setTimeout(done, 50));
  }

  await sip.deleteSipTrunk(out.sipTrunkId);
  await sip.deleteSipDispatchRule(rule.sipDispatchRuleId);
  await ingress.deleteIngress(listening.ingressId);
  const left = await all();
  await server.restart();
  assert.deepEqual(await all(), left);
  assert.deepEqual(Object.values(left).map((it) => it.length), [1, 0, 0, 1]);
  assert.ok(!(await readFile(file, 'utf8')).includes(listening.streamKey));
});
