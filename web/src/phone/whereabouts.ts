// Who is where: the lines of all pages on the account, and what each does.
import { element } from '../page';
import { make, makeButton } from '../make';
import { type Line, shown } from './api';
import { duration } from './card';

export class Whereabouts {
  private readonly list = element('lines');

  /** `take` is called when the user wants the call of another page here. */
  constructor(private readonly server: () => string, private readonly take: (line: Line) => void) {}

  /** `own` are the lines of this page. */
  show(lines: Line[], own: Set<number>): void {
    element('others').hidden = lines.length === 0;
    const calls = lines.filter((line) => line.call_status !== 'idle' || !line.helper);
    this.list.replaceChildren(...calls.map((line) => this.item(line, own.has(line.id))));
  }

  tick(): void {
    for (const time of this.list.querySelectorAll<HTMLElement>('time[data-since]')) {
      time.textContent = duration(Date.now() - Number(time.dataset['since']) * 1000);
    }
  }

  private item(line: Line, isOwn: boolean): HTMLElement {
    const item = make('li', { testid: `line-${line.id}` });
    item.dataset['status'] = line.call_status;
    const who = make('strong', { text: line.call_status === 'parked' ? 'Waiting' : `${line.name || 'A page'}${isOwn ? ' (this one)' : ''}` });
    const does = make('span', { className: 'soft', text: `${this.does(line)} ` });
    if (line.since && line.call_status !== 'idle') {
      const time = make('time', { text: duration(Date.now() - line.since * 1000) });
      time.dataset['since'] = String(line.since);
      does.append(time);
    }
    const text = make('div', { className: 'grow' });
    text.append(who, document.createElement('br'), does);
    item.append(text);
    const takeable = line.call_id && !isOwn && (line.resumable || line.call_status === 'incall');
    if (takeable) item.append(makeButton('Take over', 'take', () => this.take(line)));
    return item;
  }

  private does(line: Line): string {
    const peer = line.peer ? shown(line.peer, this.server(), line.displayname) : '';
    switch (line.call_status) {
      case 'idle':
        return 'free';
      case 'inviting':
        return `calls ${peer}`;
      case 'invited':
      case 'progress':
        return `${peer} is calling`;
      case 'parked':
        return `call with ${peer}`;
      case 'closing':
        return 'ends a call';
      default:
        return `${line.held ? 'holds' : 'talks with'} ${peer}`;
    }
  }
}
