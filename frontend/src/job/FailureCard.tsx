// Why a job failed: the exception as its heading, the task, the remedy, and the last lines with the user's own frames.

import { Button } from "antd";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import type { Job } from "../api";
import { copyToClipboard } from "../components/clipboard";
import { t } from "../language";
import { href } from "../router";
import { describeEnd } from "./describeEnd";
import { KeptStacksButton } from "./StackTracesButton";

type Failure = NonNullable<Job["failure"]>;

export function FailureCard({ job }: { job: Job }): ReactNode {
  const { failure, diagnostics } = job;
  if (!failure && (!diagnostics || job.state === "SUCCEEDED")) return null;
  const says = diagnostics && !(failure?.exit && diagnostics.endsWith(failure.exit));
  const heading = failure?.exception || failure?.exit || fallbackHeading(job);
  return (
    <section className={`card failure ${job.state}`} aria-label={t("Cause of the failure")}>
      <h2>{heading}</h2>
      {failure && (
        <p>
          <a href={href(["jobs", job.id, "tasks", failure.task])}>{failure.task}</a>{" "}
          {describeEnd(failure, heading)}
        </p>
      )}
      {says && <p>{diagnostics}</p>}
      {failure?.advice && (
        <p>
          <strong>{t("What to do: {advice}", { advice: failure.advice })}</strong>
        </p>
      )}
      {failure && failure.lines.length > 0 && <LastLines failure={failure} />}
      <div className="row">
        {failure && (
          <a href={href(["jobs", job.id, "logs"], lastLinePlace(failure))}>
            {t("Open the logs of this task")}
          </a>
        )}
        {job.stacks.length > 0 && <KeptStacksButton job={job} />}
        {failure && (
          <Button size="small" onClick={() => void copyToClipboard(asTicket(job, failure))}>
            {t("Copy for a ticket")}
          </Button>
        )}
      </div>
    </section>
  );
}

/** Returns where in the logs the last line of the start that failed is. */
function lastLinePlace({ task, attempt, log_end }: Failure): Record<string, string | number> {
  return { task, stream: "both", attempt: attempt || "", at: log_end ? log_end - 1 : "" };
}

function fallbackHeading(job: Job): string {
  return job.state === "FAILED" ? t("Cause of the failure") : t("Diagnostics");
}

function LastLines({ failure }: { failure: Failure }): ReactNode {
  const box = useRef<HTMLPreElement>(null);
  // The last lines decide.
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [failure.lines.length]);
  const own = new Set(failure.user_lines);
  return (
    <pre ref={box} className="text" tabIndex={0} aria-label={t("Last lines")} style={{ maxHeight: 280 }}>
      {failure.lines.map((line, number) =>
        own.has(number) ? (
          <mark key={number}>{`${line}\n`}</mark>
        ) : (
          <span key={number}>{`${line}\n`}</span>
        ),
      )}
    </pre>
  );
}

/** The failure as Markdown, which issue trackers and chats show as they are meant. */
function asTicket(job: Job, failure: Failure): string {
  const facts = [job.engine, job.queue, job.user, job.framework].filter(Boolean).join(" · ");
  const lines = [
    `**${job.name || job.id}** (${job.id}) ${job.state}`,
    facts,
    "",
    `${failure.task} ${t("on {node}: {exit}", { node: failure.node, exit: failure.exit })}`,
    failure.exception && `**${failure.exception}**`,
    failure.advice && t("What to do: {advice}", { advice: failure.advice }),
    "",
    "```",
    ...failure.lines,
    "```",
    "",
    `\`howdah explain ${job.id}\` · \`howdah logs ${job.id} ${failure.task}\``,
  ];
  return lines.join("\n");
}
