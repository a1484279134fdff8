// Tabs of which each has an address: it can be opened beside, and sent. In a narrow window they have several rows.

import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";

export interface Tab {
  key: string;
  label: string;
  href: string;
}

interface Props {
  label: string;
  tabs: Tab[];
  /** The key of the tab that is shown. */
  chosen: string;
  children: ReactNode;
}

export function Tabs({ label, tabs, chosen, children }: Props): ReactNode {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const at = tabs.findIndex(({ key }) => key === chosen);
  const move = (event: KeyboardEvent): void => {
    const places: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    const to = places[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const next = list.current?.querySelectorAll("a")[(to + tabs.length) % tabs.length];
    next?.focus();
    next?.click();
  };
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" ref={list} onKeyDown={move}>
        {tabs.map(({ key, label: name, href }, index) => (
          <a
            key={key}
            id={`${id}${key}`}
            role="tab"
            href={href}
            aria-selected={key === chosen}
            aria-controls={key === chosen ? `${id}panel` : undefined}
            tabIndex={index === Math.max(0, at) ? 0 : -1}
          >
            {name}
          </a>
        ))}
      </div>
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${chosen}`}>
        {children}
      </div>
    </>
  );
}
