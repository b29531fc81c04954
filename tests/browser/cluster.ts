// Nodes of a cluster: servers of ours with a real nats-server.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeTcpPort } from '../server/ports.mjs';
import { startPortunus, type Server } from '../server/portunus.mjs';
import { Child, folderFor } from './child';
import { KEY, LIVEKIT_SECRET, type LiveKitServer } from './livekit';

const NATS = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portunus/tools/nats-server');
const root = new URL('../..', import.meta.url).pathname;
const BINARY = process.env.PORTUNUS_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug/portunus');

/** Whether there is a nats-server (`scripts/setup cluster`). */
export const hasNats = existsSync(NATS);

export interface Cluster {
  nodes: LiveKitServer[];
  stop: () => Promise<void>;
}

/** Starts nodes with a LiveKit door and this in their configuration, of all or of each, and such keys of `[cluster]`; waits until they are linked. */
export async function startCluster(names: string[], config: string | ((name: string) => string), ofCluster = (_name: string) => ''): Promise<Cluster> {
  const bus = await freeTcpPort();
  const place = folderFor('nats');
  const nats = new Child('nats-server', NATS, ['-a', '127.0.0.1', '-p', String(bus), '-js', '-sd', place], place);
  const folder = mkdtempSync(join(tmpdir(), 'portunus-cluster-'));
  const nodes: LiveKitServer[] = [];
  const cluster = (...words: string[]) => execFileSync(BINARY, ['cluster', ...words], { encoding: 'utf8' }).trim();
  const own = (name: string) => join(folder, name);
  let first = 0;
  for (const name of names) {
    const [port, livekit] = [await freeTcpPort(), await freeTcpPort()];
    if (nodes.length === 0) {
      first = port;
      cluster('init', '--name', name, '--folder', own(name));
    } else {
      const invitation = cluster('invite', name, '--address', `127.0.0.1:${first}`, '--folder', own(names[0]));
      cluster('join', invitation, '--folder', own(name));
    }
    const server = await startPortunus({
      config: `
[cluster]
bus = "nats://127.0.0.1:${bus}"
name = "${name}"
folder = ${JSON.stringify(own(name))}
bind = ["127.0.0.1"]
port = ${port}
media_port = 0
${ofCluster(name)}

[livekit]
keys = { ${KEY} = "${LIVEKIT_SECRET}" }
bind = ["127.0.0.1"]
port = ${livekit}
${typeof config === 'string' ? config : config(name)}`,
    });
    nodes.push(Object.assign(server, { livekit: `ws://127.0.0.1:${livekit}` }));
  }
  const linked = async (server: Server) => {
    const metrics = await (await fetch(`${server.base}/metrics`)).text();
    return metrics.includes(`\nportunus_cluster_media_links ${names.length - 1}\n`);
  };
  await nats.until('links', async () => (await Promise.all(nodes.map(linked))).every(Boolean), 30);
  return {
    nodes,
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
      await nats.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
