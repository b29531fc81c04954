// The Helm chart: what it renders is what Kubernetes takes, for each way in which media can come in. `scripts/setup chart` brings the
// programs and the schemas of Kubernetes.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const TOP = join(import.meta.dirname, '../..');
const CHART = join(TOP, 'packaging/helm/portunus');
const TOOLS = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portunus/tools');
const VERSION = '1.31.4';
const skip = !existsSync(join(TOOLS, 'helm')) && 'helm is not there';
let schemas;

/** Runs a program and returns its output; fails with both outputs if the program fails. */
function run(program, args, options = {}) {
  const done = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26, ...options });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}: ${done.error ?? ''}\n${done.stdout}\n${done.stderr}`);
  return done.stdout;
}

const render = (...set) => run(join(TOOLS, 'helm'), ['template', 'test', CHART, '--kube-version', VERSION, ...set.flatMap((value) => ['--set', value])]);

/** Writes the schemas of all kinds, as kubeconform wants them, of the description that Kubernetes publishes. */
function writeSchemas(folder) {
  const { definitions } = JSON.parse(readFileSync(join(TOOLS, 'kubernetes.json'), 'utf8'));
  // What Kubernetes does not know is a mistake.
  for (const it of Object.values(definitions)) if (it.properties && !it.additionalProperties) it.additionalProperties = false;
  definitions['io.k8s.apimachinery.pkg.util.intstr.IntOrString'] = { oneOf: [{ type: 'string' }, { type: 'integer' }] };
  definitions['io.k8s.apimachinery.pkg.api.resource.Quantity'] = { oneOf: [{ type: 'string' }, { type: 'number' }] };
  writeFileSync(join(folder, '_definitions.json'), JSON.stringify({ definitions }));
  for (const [name, it] of Object.entries(definitions)) {
    for (const { group, version, kind } of it['x-kubernetes-group-version-kind'] ?? []) {
      const file = `${kind}-${group ? `${group.split('.')[0]}-` : ''}${version}.json`.toLowerCase();
      writeFileSync(join(folder, file), JSON.stringify({ $ref: `_definitions.json#/definitions/${name}` }));
    }
  }
}

before(() => {
  if (skip) return;
  schemas = mkdtempSync(join(tmpdir(), 'portunus-schemas-'));
  writeSchemas(schemas);
});

after(() => schemas && rmSync(schemas, { recursive: true, force: true }));

/** Has Kubernetes' schemas say whether it takes what was rendered; returns how many objects there were. */
function conforms(rendered) {
  // The monitor is a kind of the Prometheus operator.
  const options = ['-strict', '-summary', '-output', 'json', '-skip', 'ServiceMonitor', '-schema-location', `${schemas}/{{ .ResourceKind }}{{ .KindSuffix }}.json`];
  const { summary } = JSON.parse(run(join(TOOLS, 'kubeconform'), options, { input: rendered }));
  assert.equal(summary.invalid + summary.errors, 0);
  return summary.valid;
}

/** Has the server read the configuration that was rendered. */
function takes(rendered) {
  const folder = mkdtempSync(join(tmpdir(), 'portunus-chart-'));
  try {
    const [, toml] = /portunus\.toml: \|\n([\s\S]*?)\n---/.exec(rendered);
    writeFileSync(join(folder, 'portunus.toml'), toml.replaceAll(/^ {4}/gm, ''));
    const program = process.env.PORTUNUS_BIN ?? join(TOP, 'target/debug/portunus');
    run(program, ['--print-config', '--workers=1', '--announce=203.0.113.7', '--config', join(folder, 'portunus.toml')]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('helm finds nothing in the chart', { skip }, () => {
  run(join(TOOLS, 'helm'), ['lint', '--strict', CHART]);
});

test('with the network of the host all ports of the workers are those of the node', { skip }, () => {
  const rendered = render();
  assert.equal(conforms(rendered), 4);
  assert.match(rendered, /hostNetwork: true/);
  assert.match(rendered, /--workers=0/);
  assert.doesNotMatch(rendered, /hostPort|--announce|--one-port/);
  assert.match(render('media.onePort=true'), /--workers=0\n\s+- --one-port/);
});

test('with one port the node leads it to the pod, and its address is announced', { skip }, () => {
  const rendered = render('network=port', 'capabilities=null');
  assert.equal(conforms(rendered), 4);
  assert.match(rendered, /containerPort: 10000, hostPort: 10000, protocol: UDP/);
  assert.match(rendered, /--workers=0\n\s+- --one-port\n\s+- --announce=\$\(NODE_ADDRESS\)/);
  assert.doesNotMatch(rendered, /hostNetwork/);
  assert.match(render('network=port', 'media.announce={203.0.113.7}'), /--workers=0\n\s+- --one-port\n\s+- --announce=203\.0\.113\.7\n/);
});

test('recordings, secrets and the monitor are there if they are wanted', { skip }, () => {
  const rendered = render('persistence.enabled=true', 'serviceMonitor.enabled=true', 'secrets[0].name=tls', 'secrets[0].path=/etc/portunus/tls');
  assert.equal(conforms(rendered), 4);
  assert.match(rendered, /kind: ServiceMonitor/);
  assert.match(rendered, /mountPath: \/etc\/portunus\/tls/);
  assert.doesNotMatch(rendered, /emptyDir/);
});

test('the servers are nodes of a cluster if that is wanted, each with its own certificate', { skip }, () => {
  const rendered = render('cluster.enabled=true', 'replicas=3', 'cluster.bus=nats://bus:4222', 'cluster.url=http://{name}.test-portunus-nodes:8088');
  assert.equal(conforms(rendered), 5);
  assert.match(rendered, /serviceName: test-portunus-nodes/);
  assert.match(rendered, /clusterIP: None\n\s+publishNotReadyAddresses: true/);
  assert.match(rendered, /node\.key, subPathExpr: \$\(POD_NAME\)\.key/);
  assert.match(rendered, /\[cluster\]\n[^[]*bus = "nats:\/\/bus:4222"[^[]*url = "http:\/\/\{name\}\.test-portunus-nodes:8088"/);
  takes(rendered);
  assert.doesNotMatch(render(), /\[cluster\]|POD_NAME\)|revoked/);
});

test('the list of revoked certificates comes from a ConfigMap that may be missing, and changes while pods run', { skip }, () => {
  const rendered = render('cluster.enabled=true', 'cluster.revoked=thieves');
  assert.equal(conforms(rendered), 5);
  assert.match(rendered, /revoked = "\/etc\/portunus\/revoked\/revoked\.json"/);
  // A file of its own (subPath) would stay as it was at the start of the pod.
  assert.match(rendered, /\{ name: revoked, mountPath: \/etc\/portunus\/revoked, readOnly: true \}/);
  assert.match(rendered, /name: revoked\n\s+configMap: \{ name: thieves, optional: true \}/);
  takes(rendered);
  const without = render('cluster.enabled=true', 'cluster.revoked=');
  assert.doesNotMatch(without, /revoked/);
  takes(without);
});

test('what Kubernetes does not know is found', { skip }, () => {
  const wrong = render().replace('hostNetwork: true', 'hostNet: true');
  assert.throws(() => conforms(wrong), /hostNet/);
});

test('the configuration of the chart is one that the server takes', { skip }, () => takes(render()));
