// Tables of figures, and lists of them.
import { render, type ComponentChildren } from 'preact';

export interface Column {
  name: string;
  /** Figures are at the right of their column. */
  figures?: boolean;
}

/** Writes a table into `root`, with the first cell of each row as its heading. */
export function showTable(root: HTMLElement, columns: Column[], rows: ComponentChildren[][]): void {
  root.hidden = rows.length === 0;
  const classOf = (column?: Column): string => (column?.figures ? 'figure' : '');
  render(
    <table>
      <thead>
        <tr>{columns.map((column) => <th scope="col" class={classOf(column)}>{column.name}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map(([first, ...others]) => (
          <tr>
            <th scope="row" class={classOf(columns[0])}>{first}</th>
            {others.map((cell, index) => <td class={classOf(columns[index + 1])}>{cell}</td>)}
          </tr>
        ))}
      </tbody>
    </table>,
    root,
  );
}

/** Writes names and values into a list of figures. */
export function showFigures(root: HTMLElement, figures: [name: string, value: string][]): void {
  render(<>{figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</>, root);
}

/** A text with more in small letters, marked if it is bad. */
export function Noted({ text, more, bad }: { text: string; more?: (string | undefined | false)[]; bad?: boolean }) {
  return (
    <span class={bad ? 'bad' : ''}>
      {text}
      {more?.map((one) => one && <small class="soft">{one}</small>)}
    </span>
  );
}
