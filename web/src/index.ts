// The first page: what this server is and what it offers.
import { element, notice, serverAway } from './page';
import { apiPath, serverInfo, type ServerInfo } from './session';

element<HTMLAnchorElement>('api-info').href = `${apiPath()}/info`;
serverInfo().then(show, (error: unknown) => notice('error', serverAway(error)));

function show(info: ServerInfo): void {
  const yesNo = (value: boolean | undefined) => (value ? 'yes' : 'no');
  const rows: [string, string][] = [
    ['Server', `Portunus ${info['portunus-version']}, with the API of Janus ${info.version_string}`],
    ['Name', info['server-name'] ?? '–'],
    ['Transports', Object.keys(info.transports ?? {}).map((id) => id.replace('janus.transport.', '')).join(', ') || '–'],
    ['Data channels', yesNo(info.data_channels)],
    ['IPv6', yesNo(info.ipv6)],
    ['ICE', info['ice-lite'] ? 'lite' : 'full'],
    ['Plugins', Object.keys(info.plugins ?? {}).map((id) => id.replace('janus.plugin.', '')).join(', ') || '–'],
  ];
  element('info').replaceChildren(
    ...rows.map(([label, value]) => {
      const row = document.createElement('div');
      const term = document.createElement('dt');
      const description = document.createElement('dd');
      term.textContent = label;
      description.textContent = value;
      row.classList.toggle('long', label === 'Plugins');
      row.append(term, description);
      return row;
    }),
  );
  const { hostname, port, protocol } = window.location;
  element('api-http').textContent = `${protocol}//${hostname}${port ? `:${port}` : ''}${apiPath()}`;
}
