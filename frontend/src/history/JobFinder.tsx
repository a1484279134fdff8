// Finds jobs by name, id, tag or user, and the job that a container, a pod, host:pid or a GPU belongs to.

import { AutoComplete, Input, message } from "antd";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { JobRow } from "../api";
import { apiGet } from "../apiClient";
import { formatTime } from "../format";
import { t } from "../language";
import { navigate } from "../router";
import { bestFirst } from "./bestFirst";

const TYPING_PAUSE_MS = 250;
const MAX_HITS = 8;
/** Texts that may name a container, a process or a GPU, beside words of a job. */
const PLACE = /^container_|:\d+$|\/gpu/i;

interface Hit {
  value: string;
  label: ReactNode;
  path: string[];
  query?: Record<string, string>;
}

/** With `listsJobs` the server has a list of jobs; hits then appear while one types. */
export function JobFinder({ listsJobs }: { listsJobs: boolean }): ReactNode {
  const [text, setText] = useState("");
  const hits = useHits(listsJobs ? text.trim() : "");
  const opened = useRef(false);
  const open = ({ path, query = {} }: Hit): void => {
    opened.current = true;
    navigate(path, query);
    setText("");
  };
  const search = (typed: string): void => {
    opened.current = false;
    // Enter also chooses a hit, which comes first or last, depending on the component.
    window.setTimeout(() => {
      if (!opened.current && typed.trim()) void openBestHit(typed.trim());
    });
  };
  return (
    <AutoComplete
      className="job-finder"
      value={text}
      options={hits ?? []}
      notFoundContent={hits ? t("No matching jobs.") : null}
      onChange={(typed: string) => setText(typed)}
      onSelect={(_: string, hit: Hit) => open(hit)}
      popupMatchSelectWidth={Math.min(420, window.innerWidth - 20)}
      listHeight={480}
    >
      <Input.Search
        size="small"
        allowClear
        aria-label={t("Find a job by name, id, tag, user, container, host:pid, host/gpu0")}
        placeholder={t("Find a job by name, id, tag, user, container, host:pid, host/gpu0")}
        onSearch={search}
      />
    </AutoComplete>
  );
}

/** Returns the hits of the text, or, while one types on, of its beginning; undefined while there is no answer. */
function useHits(text: string): Hit[] | undefined {
  const [found, setFound] = useState<{ text: string; hits: Hit[] }>({ text: "", hits: [] });
  useEffect(() => {
    if (!text) return;
    const stopped = new AbortController();
    const timer = window.setTimeout(() => {
      void findHits(text, stopped.signal).then((hits) => hits && !stopped.signal.aborted && setFound({ text, hits }));
    }, TYPING_PAUSE_MS);
    return () => {
      stopped.abort();
      window.clearTimeout(timer);
    };
  }, [text]);
  return found.text && text.startsWith(found.text) ? found.hits : undefined;
}

/** Returns undefined where the server does not answer. */
async function findHits(text: string, signal: AbortSignal): Promise<Hit[] | undefined> {
  const [place, jobs] = await Promise.all([
    PLACE.test(text) ? apiGet("trace", {}, { of: text }, signal).catch(() => undefined) : undefined,
    apiGet("jobs", {}, { text, limit: MAX_HITS }, signal).catch(() => undefined),
  ]);
  if (!jobs && !place) return undefined;
  const hits: Hit[] = bestFirst(jobs?.jobs ?? [], text).map((job) => ({
    value: `${job.cluster} ${job.id}`,
    label: <JobHit name={job.name} facts={[t(job.state), job.user, formatTime(job.started), job.id, ...job.tags]} />,
    path: ["jobs", job.id],
  }));
  if (place) {
    const path = place.task ? ["jobs", place.job, "tasks", place.task] : ["jobs", place.job];
    hits.unshift({ value: text, label: <JobHit name={text} facts={[place.task, place.name, place.job]} />, path });
  }
  if (jobs && jobs.total > jobs.jobs.length)
    hits.push({ value: "*", label: t("All {total} jobs", { total: jobs.total }), path: ["jobs"], query: { text } });
  return hits;
}

function JobHit({ name, facts }: { name: string; facts: JobRow["tags"] }): ReactNode {
  return (
    <span className="hit">
      <strong>{name}</strong>
      <span className="muted">{facts.filter(Boolean).join(" · ")}</span>
    </span>
  );
}

async function openBestHit(text: string): Promise<void> {
  try {
    const found = await apiGet("trace", {}, { of: text });
    navigate(found.task ? ["jobs", found.job, "tasks", found.task] : ["jobs", found.job]);
  } catch (error) {
    const jobs = await apiGet("jobs", {}, { text, limit: 2 }).catch(() => undefined); // a master has none
    const first = jobs?.jobs[0];
    if (!first) void message.info((error as Error).message, 6);
    else if (jobs.total === 1) navigate(["jobs", first.id]);
    else navigate(["jobs"], { text });
  }
}
