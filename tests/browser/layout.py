"""Finds parts of a screen that nobody can read or reach: text cut off, controls beyond an edge without scrolling."""

from __future__ import annotations

from playwright.sync_api import Page

_UNREACHABLE = """() => {
  // Controls of which less than 12 pixels can be brought into view by scrolling what can be scrolled.
  const ENOUGH = 12, found = [];
  const scrolls = value => value === "auto" || value === "scroll";
  const hides = value => value === "hidden" || value === "clip";
  const axes = [["left", "right", "overflowX"], ["top", "bottom", "overflowY"]];
  const cut = (box, frame, [low, high]) => ({
    ...box, [low]: Math.max(box[low], frame[low]), [high]: Math.min(box[high], frame[high]),
  });
  const edges = ({left, right, top, bottom}) => ({left, right, top, bottom});
  const screen = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};
  const controls = "a[href], button, input, select, textarea, [role=tab], [role=slider], [tabindex='0']";
  for (const control of document.querySelectorAll(controls)) {
    const style = getComputedStyle(control);
    if (control.disabled || control.matches(".skip") || style.visibility === "hidden") continue;
    if (!control.checkVisibility() || control.closest("[aria-hidden=true], .ant-select-dropdown")) continue;
    let box = edges(control.getBoundingClientRect());
    const wanted = [Math.min(ENOUGH, box.right - box.left), Math.min(ENOUGH, box.bottom - box.top)];
    if (!wanted[0] || !wanted[1]) continue;
    for (let outer = control.parentElement; outer; outer = outer.parentElement) {
      const around = getComputedStyle(outer), frame = edges(outer.getBoundingClientRect());
      const root = outer === document.body || outer === document.documentElement;
      for (const axis of axes) {
        // Whatever lies in something that scrolls can be brought to where that is.
        if (scrolls(around[axis[2]])) box = {...box, [axis[0]]: frame[axis[0]], [axis[1]]: frame[axis[1]]};
        else if (hides(around[axis[2]]) && !root) box = cut(box, frame, axis);
      }
    }
    for (const axis of axes) box = cut(box, screen, axis);
    if (box.right - box.left < wanted[0] - 1 || box.bottom - box.top < wanted[1] - 1)
      found.push((control.getAttribute("aria-label") || control.textContent || control.tagName).trim().slice(0, 60));
  }
  return found;
}"""
_SCROLLING_SIDEWAYS = """() => [document.documentElement, document.body, document.querySelector("main")]
  .filter(each => each.scrollWidth > each.clientWidth)
  .map(each => `${each.tagName} ${each.scrollWidth} > ${each.clientWidth}: ` + [...each.querySelectorAll("*")]
    .filter(one => one.getBoundingClientRect().right > each.clientWidth + 1).slice(0, 3)
    .map(one => `${one.tagName}.${one.className}`).join(" "))"""
_CUT = """mayScroll => [...document.querySelectorAll(
    "main .card, main .card table, main .virtual-table [role=cell]:not([title])")]
  .filter(each => each.scrollWidth > each.clientWidth)
  .filter(each => !(mayScroll && ["auto", "scroll"].includes(getComputedStyle(each).overflowX)))
  .map(each => `${each.textContent.slice(0, 40)}: ${each.scrollWidth} > ${each.clientWidth}`)"""


def unreachable(page: Page) -> list[str]:
    """Return the names of controls that cannot be scrolled into view."""
    found: list[str] = page.evaluate(_UNREACHABLE)
    return found


def scrolling_sideways(page: Page) -> list[str]:
    """Return the page as a whole if it is wider than the window."""
    found: list[str] = page.evaluate(_SCROLLING_SIDEWAYS)
    return found


def cut_texts(page: Page, may_scroll: bool = False) -> list[str]:
    """Return cards wider than their frame, and cut-off cells of tables without a tooltip.

    On a narrow screen a card with a wide table `may_scroll`.
    """
    found: list[str] = page.evaluate(_CUT, may_scroll)
    return found
