// Tables of figures, and lists of them.
import { make } from '../make';

export interface Column {
  name: string;
  /** Figures are at the right of their column. */
  figures?: boolean;
}

/** Writes a table into `root`, with the first cell of each row as its heading. */
export function showTable(root: HTMLElement, columns: Column[], rows: (string | Node)[][]): void {
  const table = make('table');
  const head = make('tr');
  head.append(
    ...columns.map(({ name, figures }) => {
      const cell = make('th', { className: figures ? 'figure' : '', text: name });
      cell.scope = 'col';
      return cell;
    }),
  );
  const body = make('tbody');
  body.append(
    ...rows.map((row) => {
      const line = make('tr');
      line.append(
        ...row.map((value, index) => {
          const cell = make(index === 0 ? 'th' : 'td', { className: columns[index]?.figures ? 'figure' : '' });
          if (index === 0) cell.setAttribute('scope', 'row');
          cell.append(value);
          return cell;
        }),
      );
      return line;
    }),
  );
  const top = make('thead');
  top.append(head);
  table.append(top, body);
  root.hidden = rows.length === 0;
  // Unchanged rows keep their scroll position and selection.
  const old = root.firstElementChild;
  if (old?.isEqualNode(table)) return;
  root.replaceChildren(table);
}

/** Writes names and values into a list of figures; rows whose names stay are kept. */
export function showFigures(root: HTMLElement, figures: [name: string, value: string | Node][]): void {
  const rows = figures.map(([name, value]) => {
    const row = make('div');
    const written = make('dd');
    written.append(value);
    row.append(make('dt', { text: name }), written);
    return row;
  });
  rows.forEach((row, index) => {
    const old = root.children[index];
    if (!old) root.append(row);
    else if (!old.isEqualNode(row)) old.replaceWith(row);
  });
  while (root.children.length > rows.length) root.lastElementChild?.remove();
}
