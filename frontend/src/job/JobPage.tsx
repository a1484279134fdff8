// One job, live or after: its head, and a tab for each thing one may want to know of it.

import { lazy, type ReactNode, Suspense, useEffect } from "react";
import type { Job, Server } from "../api";
import { Unreachable } from "../client";
import { say } from "../language";
import { usePolled } from "../polling";
import { href, useRoute } from "../route";
import { ErrorBoundary } from "../shell/ErrorBoundary";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { Tabs } from "../shell/Tabs";
import { Afterwards } from "./Afterwards";
import { Head } from "./Head";
import { hasEnded } from "./jobState";
import { Overview } from "./Overview";
import Tasks from "./Tasks";

const PARTS = {
  timeline: () => import("./Timeline"),
  metrics: () => import("./Metrics"),
  curves: () => import("../curves/Curves"),
  logs: () => import("../logs/Logs"),
  spec: () => import("./Spec"),
  events: () => import("./Events"),
};
const Timeline = lazy(PARTS.timeline);
const Metrics = lazy(PARTS.metrics);
const Curves = lazy(PARTS.curves);
const Logs = lazy(PARTS.logs);
const Spec = lazy(PARTS.spec);
const Events = lazy(PARTS.events);
/** The parts of the other tabs are loaded after the first paint: at the job's end the server may be gone. */
const LATER_MS = 1500;

export function JobPage({ id, server }: { id: string; server: Server | undefined }): ReactNode {
  const polled = usePolled("jobs/{job}", { job: id }, {}, 2, true);
  const job = polled.data;
  useEffect(() => {
    const timer = window.setTimeout(() => {
      for (const part of [...Object.values(PARTS), () => import("../chart/EChart")]) part().catch(() => undefined);
    }, LATER_MS);
    return () => window.clearTimeout(timer);
  }, []);
  const gone = polled.error instanceof Unreachable;
  const state = job && gone && !hasEnded(job) ? say("no answer") : job && say(job.state);
  useEffect(() => {
    document.title = job ? `${job.name || job.id} · ${state}` : "howdah";
  }, [job, state]);
  if (!job) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  const leaves = server?.kind === "master" && (gone || hasEnded(job));
  return (
    <>
      {leaves ? <Afterwards job={job} server={server} gone={gone} at={polled.at} /> : <Stale polled={polled} />}
      <Head job={job} gone={gone} />
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
  const panel = panels.find(([key]) => key === tab)?.[2];
  const tabs = panels.map(([key, label]) => ({ key, label, href: href(["jobs", job.id, key]) }));
  return (
    <Tabs label={say("Parts of the job")} tabs={tabs} chosen={tab}>
      <ErrorBoundary key={tab} place={tab}>
        <Suspense fallback={<Nothing text={say("Loading…")} />}>
          {panel ? panel() : <Nothing text={say("There is nothing at this address.")} />}
        </Suspense>
      </ErrorBoundary>
    </Tabs>
  );
}
