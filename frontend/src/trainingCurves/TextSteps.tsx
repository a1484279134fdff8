// The texts of event files as Markdown, the newest step first. Programs write them: no HTML of theirs is ever made, no
// picture is requested, and only links to http and https can be followed.

import Markdown, { type MarkdownToJSX } from "markdown-to-jsx/react";
import { createElement, memo, type ReactNode } from "react";
import { EmptyState } from "../components/EmptyState";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { SafeLink } from "../components/SafeLink";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { type CurveProps, TagPicker, type TagProps } from "./TagPicker";

const MAX_STEPS = 60;
/** A longer text is shown as written: to make Markdown of it would block the page. */
const MAX_MARKDOWN_KIB = 16;

export default function TextSteps(props: CurveProps): ReactNode {
  return <TagPicker {...props} tagsOf={(each) => each.tags.text ?? []} nothing={t("No text yet.")} View={TextsOfTag} />;
}

function TextsOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const asWritten = useRoute().query.get("written") === "1";
  const polled = usePolling("jobs/{job}/curves/text", { job }, { run, tag }, seconds);
  const texts = polled.data?.texts ?? [];
  if (!texts.length) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <LabeledSwitch text={t("As written")} on={asWritten} onChange={(on) => updateQuery({ written: on ? 1 : "" })} />
      </div>
      {texts
        .slice(-MAX_STEPS)
        .reverse()
        .map(({ step, text }) => (
          <TextCard key={step} step={step} text={text} asWritten={asWritten} />
        ))}
    </>
  );
}

/** One text. Each poll brings all texts again: those that are the same are not rendered anew. */
const TextCard = memo(function TextCard({ step, text, asWritten }: { step: number; text: string; asWritten: boolean }): ReactNode {
  const tooLong = new Blob([text]).size > MAX_MARKDOWN_KIB << 10;
  return (
    <section className="card" style={{ marginBottom: 8 }}>
      <h2>{t("step {step}", { step })}</h2>
      {tooLong && !asWritten && (
        <p className="muted note">{t("Shown as written: it is longer than {limit} KiB.", { limit: MAX_MARKDOWN_KIB })}</p>
      )}
      {asWritten || tooLong ? (
        <pre className="text" style={{ whiteSpace: "pre-wrap" }}>
          {text}
        </pre>
      ) : (
        <div className="markdown">
          <Markdown options={OPTIONS}>{text}</Markdown>
        </div>
      )}
    </section>
  );
});

/** What Markdown can be, with the headings below the page's own. All else becomes plain text. */
const TAGS: Record<string, string> = {
  ...Object.fromEntries(
    "div span p em strong del code pre blockquote ul ol li table thead tbody tr th td hr br".split(" ").map((tag) => [tag, tag]),
  ),
  ...{ h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" },
};
const WITHOUT_CONTENT = ["hr", "br"];

interface WrittenProps {
  key?: string | number;
  href?: string;
  alt?: string;
  start?: number;
  checked?: boolean;
}

const OPTIONS: MarkdownToJSX.Options = {
  disableParsingRawHTML: true,
  forceBlock: true,
  preserveFrontmatter: true, // what a text begins with between lines of dashes
  createElement(tag, props, ...children) {
    const { key, href = "", alt = "", start, checked } = props as WrittenProps;
    const keyed = key === undefined ? {} : { key };
    if (tag === "a") return <SafeLink url={href} {...keyed}>{children}</SafeLink>;
    if (tag === "img") return createElement("span", { ...keyed, className: "muted" }, `[${alt || t("Image")}]`);
    if (tag === "input") return createElement("span", keyed, checked ? "☑" : "☐");
    const known = typeof tag === "string" ? (TAGS[tag] ?? "span") : "div";
    const counted = known === "ol" && start !== undefined ? { start } : {};
    return createElement(known, { ...keyed, ...counted }, ...(WITHOUT_CONTENT.includes(known) ? [] : children));
  },
};
