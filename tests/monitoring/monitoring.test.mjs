// The alerts and the board of packaging/monitoring, with Prometheus's own tools and with a Prometheus that reads the server.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startServer } from '../server/index.mjs';
import { freeTcpPort } from '../server/ports.mjs';

const FOLDER = join(import.meta.dirname, '../../packaging/monitoring');
const PATIENCE = 30_000;

/** @type {import('../server/portunus.mjs').Server} */
let server;
/** @type {string} */
let metrics;

before(async () => {
  server = await startServer();
  // A request, so that there is a time of one.
  await fetch(server.http, { method: 'POST', body: JSON.stringify({ janus: 'create', transaction: 't' }) });
  metrics = await (await fetch(`${server.base}/metrics`)).text();
});

after(async () => assert.equal(await server.stop(), 0, server.log()));

/** Runs promtool; fails with what it says. */
function promtool(args, options = {}) {
  const done = spawnSync('promtool', args, { encoding: 'utf8', cwd: FOLDER, ...options });
  assert.equal(done.status, 0, `promtool ${args.join(' ')}: ${done.error ?? ''}\n${done.stdout}\n${done.stderr}`);
}

/** The queries of the board, as they are when all servers are chosen. */
function queries() {
  const board = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8'));
  const targets = board.panels.flatMap((panel) => panel.targets ?? []);
  return targets.map((target) => target.expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m'));
}

test('the metrics keep the conventions', () => {
  promtool(['check', 'metrics'], { input: metrics });
  const names = [...metrics.matchAll(/^# TYPE (\S+) /gm)].map((match) => match[1]);
  const helps = [...metrics.matchAll(/^# HELP (\S+) \S/gm)].map((match) => match[1]);
  assert.deepEqual(names, [...new Set(names)], 'each has one TYPE');
  assert.deepEqual(helps, names, 'each has a HELP');
});

test('the process, what was built and the times are there', () => {
  for (const line of [
    /^portunus_build_info\{version="\d+\.\d+\.\d+[^"]*",commit="[^"]*"\} 1$/m,
    /^process_start_time_seconds 1\d{9}/m,
    /^process_open_fds \d+$/m,
    /^process_resident_memory_bytes \d{7,}$/m,
    /^portunus_recording_disk_free_bytes \d+$/m,
    /^portunus_request_seconds_bucket\{transport="http",verb="create",le="\+Inf"\} 1$/m,
    /^portunus_control_lag_seconds_count [1-9]\d*$/m,
    /^portunus_ready 1$/m,
  ]) assert.match(metrics, line);
});

test('the alerts are sound, and do what their tests say', () => {
  promtool(['check', 'rules', 'alerts.yml']);
  promtool(['check', 'config', '--syntax-only', 'prometheus.yml']);
  promtool(['test', 'rules', 'alerts.test.yml']);
});

test('alerts and the board name only metrics that there are', () => {
  // Without TLS and a cluster there is none.
  const expiries = ['portunus_certificate', 'portunus_sip_certificate', 'portunus_cluster_certificate'];
  const known = new Set(expiries.map((name) => `${name}_expiry_timestamp_seconds`));
  for (const [, name] of metrics.matchAll(/^# TYPE (\S+) /gm)) known.add(name);
  const alerts = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');
  const names = [alerts, ...queries()].join('\n').matchAll(/\b(?:portunus|process)_[a-z0-9_]+/g);
  const missing = [...names].map(([name]) => name).filter((name) => !known.has(name) && !known.has(name.replace(/_(bucket|count|sum)$/, '')));
  assert.deepEqual(missing, []);
});

test('a Prometheus reads the server, and can answer each query', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portunus-prometheus-'));
  const port = await freeTcpPort();
  const config = readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')
    .replaceAll('15s', '1s')
    .replace('127.0.0.1:9100', new URL(server.base).host);
  writeFileSync(join(folder, 'prometheus.yml'), config);
  copyFileSync(join(FOLDER, 'alerts.yml'), join(folder, 'alerts.yml'));
  const prometheus = spawn('prometheus', [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  prometheus.stderr.setEncoding('utf8').on('data', (text) => { log += text; });
  const ask = async (path) => (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json();
  const query = (expression) => ask(`query?query=${encodeURIComponent(expression)}`);
  try {
    const deadline = Date.now() + PATIENCE;
    for (;;) {
      const answer = await query('portunus_build_info').catch(() => undefined);
      if (answer?.data?.result?.length === 1) break;
      assert.ok(Date.now() < deadline, `nothing was read: ${log}`);
      await sleep(200);
    }
    for (const expression of queries()) {
      const answer = await query(expression);
      assert.equal(answer.status, 'success', `${expression}: ${JSON.stringify(answer)}`);
    }
    for (;;) {
      const { data } = await ask('rules');
      const rules = data.groups.flatMap((group) => group.rules);
      if (rules.length > 0 && rules.every((rule) => rule.health === 'ok')) break;
      assert.ok(Date.now() < deadline, JSON.stringify(rules));
      await sleep(200);
    }
    const firing = await query('ALERTS{alertstate="firing"}');
    assert.deepEqual(firing.data.result, [], 'a server at rest raises no alarm');
  } finally {
    prometheus.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
