// One job, live or after: its head, and a tab for each thing one may want to know of it.

import { Tabs } from "antd";
import { lazy, type ReactNode, Suspense, useEffect } from "react";
import type { Job, Server } from "../api";
import { jobPath } from "../client";
import { say } from "../language";
import { usePolled } from "../polling";
import { go, useRoute } from "../route";
import { ErrorBoundary } from "../shell/ErrorBoundary";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { Head } from "./Head";
import { Overview } from "./Overview";
import Tasks from "./Tasks";

const Timeline = lazy(() => import("./Timeline"));
const Metrics = lazy(() => import("./Metrics"));
const Curves = lazy(() => import("../curves/Curves"));
const Logs = lazy(() => import("../logs/Logs"));
const Spec = lazy(() => import("./Spec"));
const Events = lazy(() => import("./Events"));

export function hasEnded(job: Job): boolean {
  return job.finished > 0;
}

export function JobPage({ id, server }: { id: string; server: Server | undefined }): ReactNode {
  const polled = usePolled<Job>(jobPath(id));
  const job = polled.data;
  useEffect(() => {
    document.title = job ? `${job.name || job.id} · ${say(job.state)}` : "howdah";
  }, [job]);
  if (!job) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  return (
    <>
      <Stale polled={polled} ended={hasEnded(job)} />
      <Head job={job} />
      <JobTabs job={job} server={server} />
    </>
  );
}

function JobTabs({ job, server }: { job: Job; server: Server | undefined }): ReactNode {
  const [, , tab = "overview"] = useRoute().path;
  const panels: [string, string, () => ReactNode][] = [
    ["overview", say("Overview"), () => <Overview job={job} />],
    ["tasks", say("Tasks"), () => <Tasks job={job} />],
    ["timeline", say("Timeline"), () => <Timeline job={job} />],
    ["metrics", say("Metrics"), () => <Metrics job={job} />],
    ["curves", say("Curves"), () => <Curves job={job} others={server?.kind === "history"} />],
    ["logs", say("Logs"), () => <Logs job={job} />],
    ["spec", say("Spec"), () => <Spec job={job} />],
    ["events", say("Events"), () => <Events job={job} />],
  ];
  const items = panels.map(([key, label, panel]) => ({
    key,
    label,
    children: key === tab && (
      <ErrorBoundary key={key}>
        <Suspense fallback={<Nothing text={say("Loading…")} />}>{panel()}</Suspense>
      </ErrorBoundary>
    ),
  }));
  return (
    <Tabs activeKey={tab} items={items} onChange={(key) => go(["jobs", job.id, key])} destroyOnHidden size="small" />
  );
}
