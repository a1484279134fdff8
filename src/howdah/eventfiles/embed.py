"""Embeds charts in other web pages: a page for an iframe, and a script that draws beside its own element.

Both show the SVG as an image, in which no script runs, and request it again every few seconds. All addresses are
relative to the page or to the script; the token is passed on in the query.
"""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

SCRIPT = """"use strict";
(() => {
  const script = document.currentScript;
  const address = new URL(script.src);
  const asked = address.searchParams;
  const seconds = Math.max(2, Number(asked.get("refresh")) || 5);
  const chinese = (asked.get("language") || navigator.language || "").startsWith("zh");
  const lost = chinese ? "暂时无法取得图表" : "the chart is not available at the moment";
  if (!asked.get("language")) asked.set("language", chinese ? "zh" : "en");
  const chart = asked.get("chart") || "scalars";
  asked.delete("refresh");
  asked.delete("chart");
  const image = document.createElement("img");
  image.alt = asked.getAll("tag").join(", ");
  image.style.maxWidth = "100%";
  const note = document.createElement("p");
  note.hidden = true;
  note.setAttribute("role", "status");
  script.after(image, note);
  let number = 0;
  const draw = () => {
    if (!image.isConnected) return;
    asked.set("draw", String(number++));
    const fresh = new Image();
    fresh.onload = () => { image.src = fresh.src; note.hidden = true; };
    fresh.onerror = () => { note.textContent = lost; note.hidden = false; };
    fresh.src = new URL(encodeURIComponent(chart) + ".svg?" + asked, address).href;
    setTimeout(draw, 1000 * (document.hidden ? 5 * seconds : seconds));
  };
  draw();
})();
"""


def page(query: str) -> str:
    """Return the page; `query` is the query of the page's address, and is passed on to the script."""
    source = quoteattr("embed.js" + (f"?{query}" if query else ""))
    return (
        '<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>howdah</title><style>html{color-scheme:light dark}body{margin:0;font:14px sans-serif}</style></head>"
        f"<body><script src={source}></script></body></html>\n"
    )
