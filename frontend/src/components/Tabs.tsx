// Tabs that are links, so that each can be opened in a new tab of the browser. In a narrow window they wrap.

import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";

interface TabLink {
  key: string;
  label: string;
  href: string;
}

interface Props {
  label: string;
  tabs: TabLink[];
  /** The key of the selected tab. */
  selected: string;
  children: ReactNode;
}

export function Tabs({ label, tabs, selected, children }: Props): ReactNode {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const selectedIndex = tabs.findIndex(({ key }) => key === selected);
  const onArrowKey = (event: KeyboardEvent): void => {
    const targets: Record<string, number> = {
      ArrowRight: selectedIndex + 1,
      ArrowLeft: selectedIndex - 1,
      Home: 0,
      End: tabs.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const next = list.current?.querySelectorAll("a")[(target + tabs.length) % tabs.length];
    next?.focus();
    next?.click();
  };
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" ref={list} onKeyDown={onArrowKey}>
        {tabs.map(({ key, label: name, href }, index) => (
          <a
            key={key}
            id={`${id}${key}`}
            role="tab"
            href={href}
            aria-selected={key === selected}
            aria-controls={key === selected ? `${id}panel` : undefined}
            tabIndex={index === Math.max(0, selectedIndex) ? 0 : -1}
          >
            {name}
          </a>
        ))}
      </div>
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${selected}`}>
        {children}
      </div>
    </>
  );
}
