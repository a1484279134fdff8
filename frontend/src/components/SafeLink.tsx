import type { ReactNode } from "react";

/** A link that comes from a job. Only http and https links can be followed; others are shown as text. */
export function SafeLink({ url, children }: { url: string; children: ReactNode }): ReactNode {
  if (!/^https?:\/\//i.test(url)) return <span>{children}</span>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
