// When and where the job ran, hints for the next submission, and notes about what happened.

import type { ReactNode } from "react";
import type { Job } from "../api";
import { type DescriptionItem, DescriptionList } from "../components/DescriptionList";
import { SafeLink } from "../components/SafeLink";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";
import { href } from "../router";

/** `canSearch`: whether the server lists jobs, so that labels can lead to jobs that share them, and tags have a card. */
export function DetailCards({ job, canSearch }: { job: Job; canSearch: boolean }): ReactNode {
  return (
    <>
      <section className="card">
        <h2>{t("Details")}</h2>
        <DescriptionList items={jobDetails(job, canSearch)} />
      </section>
      {job.hints.length > 0 && (
        <section className="card">
          <h2>{t("Hints")}</h2>
          <ul>
            {job.hints.map((hint) => (
              <li key={hint.text}>{t(hint.template, hint.values)}</li>
            ))}
          </ul>
        </section>
      )}
      {job.notes.length > 0 && (
        <section className="card">
          <h2>{t("Notes")}</h2>
          <ul className="scroll notes" tabIndex={0} aria-label={t("Notes")}>
            {job.notes.map((note) => (
              <li key={`${note.time} ${note.text}`}>
                {note.time > 0 && <span className="muted">{formatTime(note.time)} </span>}
                {note.text}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function jobDetails(job: Job, canSearch: boolean): DescriptionItem[] {
  const waited = job.running && job.started ? formatDuration(job.running - (job.asked || job.started)) : "";
  const labels = Object.entries(job.labels).map(([name, value]) => `${name}:${value}`);
  const dirty = job.captured?.git_dirty ? ` ${t("(with uncommitted changes)")}` : "";
  return [
    [t("Submitted"), job.asked && job.asked < job.started ? formatTime(job.asked) : ""],
    [t("Started"), job.started ? formatTime(job.started) : ""],
    [t("All tasks running"), job.running ? t("{time}, after {waited}", { time: formatTime(job.running), waited }) : ""],
    [t("Finished"), job.finished ? formatTime(job.finished) : ""],
    [t("User"), job.user],
    [t("Queue"), job.queue],
    [t("Tags"), !canSearch && job.tags.length > 0 && <Words words={job.tags} canSearch={canSearch} />],
    [t("Labels"), labels.length > 0 && <Words words={labels} canSearch={canSearch} />],
    [t("Tracked runs"), job.tracker_runs.length > 0 && <TrackedRuns job={job} />],
    [t("Job file"), job.submitted?.file && <a href={href(["jobs", job.id, "spec"])}>{job.submitted.file}</a>],
    [t("Git commit"), job.captured?.git_commit ? job.captured.git_commit + dirty : ""],
    [t("Master host"), job.host],
    [t("Python"), job.python],
  ];
}

function TrackedRuns({ job: { tracker_runs: runs, tracker_run_count: count } }: { job: Job }): ReactNode {
  return (
    <div className="scroll short" tabIndex={0} role="group" aria-label={t("Tracked runs")}>
      {runs.map(({ task, tracker, run, url }) => (
        <div key={`${task} ${url}`}>
          {task}: <SafeLink url={url}>{[tracker, run].filter(Boolean).join(" ")}</SafeLink>
        </div>
      ))}
      {count > runs.length && <div className="muted">{t("and {count} more", { count: count - runs.length })}</div>}
    </div>
  );
}

function Words({ words, canSearch }: { words: string[]; canSearch: boolean }): ReactNode {
  return (
    <span className="words">
      {words.map((word) =>
        canSearch ? (
          <a key={word} href={href(["jobs"], { text: word })}>
            {word}
          </a>
        ) : (
          <span key={word}>{word}</span>
        ),
      )}
    </span>
  );
}
