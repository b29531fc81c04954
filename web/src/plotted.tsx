// A plot as a component.
import { useEffect, useRef } from 'preact/hooks';
import { Plot, type PlotKind } from './plot';

/** Plots a value; each new `tick` is a sample. */
export function Plotted({ kind, name, testid, value, tick }: { kind: PlotKind; name: string; testid: string; value?: number; tick: number }) {
  const root = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot>();
  useEffect(() => {
    plot.current = new Plot(kind, name, testid);
    root.current?.append(plot.current.root);
  }, []);
  useEffect(() => {
    if (!plot.current) return;
    plot.current.name = name;
    plot.current.add(value);
  }, [tick]);
  return <div ref={root} />;
}
