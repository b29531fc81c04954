// What the server's figures (docs/guides/monitor.md) say to be wrong.
import { bytes, count, duration, percent } from '../units';
import type { Metric } from './wire';

const GB = 1e9;
const DAY = 86_400;

/** From where on it is told: bytes free on the disk of recordings, days until a certificate expires, shares in use. */
const DISK = 5 * GB;
const EXPIRES = 14;
const USED = 0.8;

/** Counters of which it is told that they grow. */
const GROWING: Record<string, string> = {
  portunus_recordings_failed_total: 'recordings that ended by an error: see the log',
  portunus_recording_dropped_total: 'packets missing in recordings, since the disk was too slow',
  portunus_broker_lost_messages_total: 'messages that a broker has not taken',
  portunus_sip_failed_registrations_total: 'registrations that a SIP registrar has refused or not answered',
  portunus_slow_clients_total: 'clients disconnected that did not read',
  portunus_log_lines_lost_total: 'lines missing in the log',
};

const OTHERS = [
  'portunus_recording_disk_free_bytes',
  'portunus_recordings_started_total',
  'portunus_certificate_expiry_timestamp_seconds',
  'portunus_sip_certificate_expiry_timestamp_seconds',
  'portunus_broker_connected',
  'portunus_sip_unregistered_trunks',
  'portunus_client_memory_bytes',
  'portunus_client_memory_limit_bytes',
  'process_open_fds',
  'process_max_fds',
];

/** What the request `metrics` is to ask for. */
export const NAMES = [...Object.keys(GROWING), ...OTHERS];

/** Returns a sentence for each thing that is wrong. `grown` says by how much a counter has grown lately. */
export function readMetrics(metrics: Metric[], grown: (name: string, value: number) => number, now = Date.now() / 1000): string[] {
  const all = (name: string): Metric[] => metrics.filter((one) => one.name === name);
  const value = (name: string): number => all(name)[0]?.value ?? 0;
  const told: string[] = [];
  const free = all('portunus_recording_disk_free_bytes')[0]?.value;
  if (free !== undefined && free < DISK && value('portunus_recordings_started_total') > 0) told.push(`Only ${bytes(free)} are free on the disk of recordings`);
  const certificates = [
    ...all('portunus_certificate_expiry_timestamp_seconds').map((one) => ({ of: label(one), at: one.value })),
    ...all('portunus_sip_certificate_expiry_timestamp_seconds').map((one) => ({ of: 'sip', at: one.value })),
  ];
  // 0: there is none.
  for (const { of, at } of certificates.filter(({ at }) => at > 0)) {
    const left = at - now;
    if (left < 0) told.push(`The certificate of [${of}] has expired`);
    else if (left < EXPIRES * DAY) told.push(`The certificate of [${of}] expires in ${duration(left)}`);
  }
  for (const broker of all('portunus_broker_connected')) if (broker.value === 0) told.push(`The broker of [${label(broker)}] is away, and tried again`);
  const trunks = value('portunus_sip_unregistered_trunks');
  if (trunks > 0) told.push(`SIP registrars: ${trunks === 1 ? 'a trunk is' : `${trunks} trunks are`} not registered`);
  const uses = [
    ['of the memory for clients is used', 'portunus_client_memory_bytes', 'portunus_client_memory_limit_bytes'],
    ['of the files that the server may open are open', 'process_open_fds', 'process_max_fds'],
  ] as const;
  for (const [what, used, most] of uses) {
    const share = value(most) > 0 ? value(used) / value(most) : 0;
    if (share >= USED) told.push(`${percent(share)} ${what}`);
  }
  for (const [name, what] of Object.entries(GROWING)) {
    const by = all(name).reduce((sum, one) => sum + grown(`${name}{${one.labels ?? ''}}`, one.value), 0);
    if (by > 0) told.push(`In the last minute: ${count(by)} ${what}`);
  }
  return told;
}

/** The value of the only label. */
function label({ labels = '' }: Metric): string {
  return /"(.*)"/.exec(labels)?.[1] ?? labels;
}
