// The cluster that the server is a node of: its nodes, the links to them, and what lives where.
import { element } from '../page';
import { count, percent, time } from '../units';
import { ask, Refused } from './api';
import { Noted, showTable, type Column } from './table';
import type { ClusterNode, ClusterStatus, Home, NodeLink } from './wire';

/** The error of a server that is no node of a cluster. */
const NO_CLUSTER = 490;

/** A node that has not written its entry for so long is marked, in seconds: it does so every 3 s. */
const UNSEEN = 7;

/** Shares of lost packets and of a core from which on they are marked. */
const LOSS = 0.02;
const FULL = 0.85;

/** How many homes are shown. */
const HOMES = 100;

const NODES: Column[] = [
  { name: 'Node' },
  { name: 'State' },
  { name: 'Region' },
  { name: 'Load', figures: true },
  { name: 'Out', figures: true },
  { name: 'Seen', figures: true },
];

const LINKS: Column[] = [
  { name: 'Link to' },
  { name: 'State' },
  { name: 'Round trip', figures: true },
  { name: 'Lost', figures: true },
  { name: 'Out', figures: true },
  { name: 'In', figures: true },
];

const PLACES: Column[] = [{ name: 'Room or stream' }, { name: 'Home' }, { name: 'Nodes' }, { name: 'People', figures: true }];

export class ClusterPanel {
  /** What is wrong with it, for people. */
  findings: string[] = [];
  /** Whether the server is a node of a cluster; it does not change while it runs. */
  private exists = true;

  /** Asks the server, and shows what it answers. */
  async refresh(): Promise<void> {
    if (!this.exists) return;
    try {
      const { cluster } = await ask<{ cluster: ClusterStatus }>('cluster_status');
      this.show(cluster);
    } catch (error) {
      if (!(error instanceof Refused && error.code === NO_CLUSTER)) throw error;
      this.exists = false;
    }
  }

  private show(status: ClusterStatus): void {
    this.findings = [
      ...(status.bus_connected ? [] : ['The bus of the cluster is away: nodes that start now are not found, and all else goes on']),
      ...status.disagreements.map((text) => `Cluster: ${text}`),
    ];
    element('cluster').hidden = false;
    element('cluster-name').textContent = `${status.cluster}, seen by ${status.node}`;
    element('cluster-bus').textContent = bus(status);
    showTable(element('cluster-nodes'), NODES, status.nodes.map((node) => nodeCells(node, status.node)));
    showTable(element('cluster-links'), LINKS, status.links.map(linkCells));
    showTable(element('cluster-homes'), PLACES, status.homes.slice(0, HOMES).map(homeCells));
    const more = status.home_count - Math.min(status.homes.length, HOMES);
    element('cluster-more').textContent = more > 0 ? `${count(more)} more are not shown: portunus cluster status has them.` : '';
  }
}

function bus({ bus_connected, confirmed }: ClusterStatus): string {
  if (!bus_connected) return 'The bus is away.';
  return confirmed ? 'The bus is connected.' : 'The bus is connected, and has not confirmed this node yet.';
}

function nodeCells({ node, state, region, load, age_ms }: ClusterNode, own: string) {
  const age = age_ms / 1_000;
  return [
    <Noted text={node} more={[node === own && 'this one']} />,
    <Noted text={state} bad={state !== 'serving' && state !== 'draining'} />,
    region || '–',
    <Noted text={percent(load.worker)} bad={load.worker >= FULL} />,
    megabits(load.mbps_out),
    <Noted text={`${time(age)} ago`} bad={age >= UNSEEN} />,
  ];
}

function linkCells({ node, state, through, round_trip_us, media }: NodeLink) {
  const us = media?.round_trip_us ?? round_trip_us;
  const of = (number: number, what: string): string => `${count(number)} ${what}${number === 1 ? '' : 's'}`;
  const streams = (number: number): string => of(number, 'stream');
  const sources = Object.entries(media?.through ?? {}).map(([by, number]) => `${of(number, 'source')} through ${by}`);
  const carried = media?.carried_streams ?? 0;
  const isBroken = media !== undefined && !media.works;
  return [
    <Noted text={node} more={[...sources, carried > 0 && `${streams(carried)} carried for others`]} />,
    <Noted text={state} more={[through != null && `through ${through}`, isBroken && 'no media']} bad={state !== 'up' || through != null} />,
    us == null ? '–' : time(us / 1_000_000),
    media ? <Noted text={percent(media.lost)} bad={media.lost >= LOSS} /> : '–',
    media ? <Noted text={megabits(media.mbps_out)} more={[streams(media.streams_out)]} /> : '–',
    media ? <Noted text={megabits(media.mbps_in)} more={[streams(media.streams_in)]} /> : '–',
  ];
}

function homeCells({ what, node, members, items }: Home) {
  return [what, node ?? '–', members.join(', ') || '–', count(items)];
}

function megabits(mbps: number): string {
  return `${mbps.toFixed(1)} Mbit/s`;
}
