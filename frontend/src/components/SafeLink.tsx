import type { ReactNode } from "react";

/** A link that a job has given us: followed only to the web, telling nothing of this page. Others are text. */
export function SafeLink({ url, children }: { url: string; children: ReactNode }): ReactNode {
  if (!/^https?:\/\//i.test(url)) return <span>{children}</span>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
