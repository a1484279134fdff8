// The page of one job, running or ended: its header and its tabs.

import { lazy, type ReactNode, Suspense, useEffect } from "react";
import type { Job, ServerInfo } from "../api";
import { ServerUnreachable } from "../apiClient";
import { EmptyState } from "../components/EmptyState";
import { ErrorBoundary } from "../components/ErrorBoundary";
import { StaleNotice } from "../components/StaleNotice";
import { Tabs } from "../components/Tabs";
import { t } from "../language";
import { href, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { JobEndNotice } from "./JobEndNotice";
import { JobHeader } from "./JobHeader";
import { hasEnded } from "./jobState";
import { loadActivityCards, OverviewTab } from "./OverviewTab";
import TasksTab from "./TasksTab";

const LAZY_TABS = {
  timeline: () => import("./TimelineTab"),
  metrics: () => import("./MetricsTab"),
  curves: () => import("../trainingCurves/TrainingCurvesTab"),
  logs: () => import("../logs/LogsTab"),
  spec: () => import("./SpecTab"),
  events: () => import("./EventsTab"),
};
const TimelineTab = lazy(LAZY_TABS.timeline);
const MetricsTab = lazy(LAZY_TABS.metrics);
const TrainingCurvesTab = lazy(LAZY_TABS.curves);
const LogsTab = lazy(LAZY_TABS.logs);
const SpecTab = lazy(LAZY_TABS.spec);
const EventsTab = lazy(LAZY_TABS.events);
/** Scripts of the other tabs are loaded soon after the first paint, because the server ends with the job. */
const PRELOAD_AFTER_MS = 1500;

export function JobPage({ id, server }: { id: string; server: ServerInfo | undefined }): ReactNode {
  const polled = usePolling("jobs/{job}", { job: id }, {}, 2, true);
  const job = polled.data;
  useEffect(() => {
    const timer = window.setTimeout(() => {
      for (const part of [...Object.values(LAZY_TABS), loadActivityCards, () => import("../charts/EChart")]) part().catch(() => undefined);
    }, PRELOAD_AFTER_MS);
    return () => window.clearTimeout(timer);
  }, []);
  const unreachable = polled.error instanceof ServerUnreachable;
  const state = job && unreachable && !hasEnded(job) ? t("no answer") : job && t(job.state);
  useEffect(() => {
    document.title = job ? `${job.name || job.id} · ${state}` : "howdah";
  }, [job, state]);
  if (!job) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const serverEnds = server?.kind === "master" && (unreachable || hasEnded(job));
  return (
    <>
      {serverEnds ? (
        <JobEndNotice job={job} server={server} unreachable={unreachable} lastAnswerAt={polled.receivedAt} />
      ) : (
        <StaleNotice polled={polled} />
      )}
      <JobHeader job={job} unreachable={unreachable} />
      <JobTabs job={job} server={server} />
    </>
  );
}

function JobTabs({ job, server }: { job: Job; server: ServerInfo | undefined }): ReactNode {
  const [, , tab = "overview"] = useRoute().path;
  const panels: [string, string, () => ReactNode][] = [
    ["overview", t("Overview"), () => <OverviewTab job={job} server={server} />],
    ["tasks", t("Tasks"), () => <TasksTab job={job} />],
    ["timeline", t("Timeline"), () => <TimelineTab job={job} />],
    ["metrics", t("Metrics"), () => <MetricsTab job={job} />],
    ["curves", t("Training curves"), () => <TrainingCurvesTab job={job} canCompare={server?.kind === "history"} />],
    ["logs", t("Logs"), () => <LogsTab job={job} />],
    ["spec", t("Spec"), () => <SpecTab job={job} server={server} />],
    ["events", t("Events"), () => <EventsTab job={job} />],
  ];
  const panel = panels.find(([key]) => key === tab)?.[2];
  const tabs = panels.map(([key, label]) => ({ key, label, href: href(["jobs", job.id, key]) }));
  return (
    <Tabs label={t("Views of the job")} tabs={tabs} selected={tab}>
      <ErrorBoundary key={tab} resetKey={tab}>
        <Suspense fallback={<EmptyState text={t("Loading…")} />}>
          {panel ? panel() : <EmptyState text={t("There is nothing at this address.")} />}
        </Suspense>
      </ErrorBoundary>
    </Tabs>
  );
}
