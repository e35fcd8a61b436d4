"""How the page looks beside what viser draws: texts over the picture, a dark page, and what has the keyboard's focus.

Python says what is to be shown in elements of the panel; the script, in the browser, does what viser has no way for.
"""

from collections.abc import Mapping
from html import escape

TEXTS_ID = "urlab-texts"
"""The element that holds the texts, which the script shows over the picture."""

_STYLE = """<style>
:focus-visible { outline: 3px solid #f59f00 !important; outline-offset: 1px; }
#urlab-over > pre { position: fixed; z-index: 5; margin: 0; padding: 0.4em 0.7em; max-width: min(60em, 96vw);
  max-height: 45vh; overflow: hidden; pointer-events: none; white-space: pre-wrap; font: 12px/1.35 monospace;
  color: #fff; background: rgba(20, 24, 30, 0.66); border-radius: 4px; }
#urlab-over > [data-anchor^=top] { top: 0.6em; }
#urlab-over > [data-anchor^=bottom] { bottom: 0.6em; }
#urlab-over > [data-anchor$=left] { left: 0.6em; }
#urlab-over > [data-anchor$=right] { right: 0.6em; }
#urlab-over > [data-anchor=center] { top: 50%; }
#urlab-over > :is([data-anchor=top], [data-anchor=bottom], [data-anchor=center]) { left: 50%; translate: -50%; }
@media (max-width: 700px) {
  #urlab-over > pre { font-size: 10px; max-height: 24vh; }
  #urlab-over > [data-anchor^=bottom] { bottom: auto; top: 26vh; }
}
</style>"""

SCRIPT = (
    _STYLE
    + """<script>(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let shown = "", told = "";
  const chosen = () => { try { return localStorage.getItem("urlab-dark"); } catch { return null; } };
  const colour = (status) => {
    if (status.dataset.dark) try { localStorage.setItem("urlab-dark", status.dataset.dark); } catch {}
    const wanted = (chosen() ?? (dark.matches ? "dark" : "light")) === "dark";
    const news = status.dataset.urlabPage + wanted;
    if (!status.dataset.dark && news !== told && window.urlabTell?.({dark: wanted})) told = news;
  };
  const write = () => {
    const texts = document.getElementById("TEXTS")?.innerHTML ?? "";
    if (texts === shown) return;
    shown = texts;
    let over = document.getElementById("urlab-over");
    if (!over) {
      over = document.createElement("div");
      over.id = "urlab-over";
      document.body.append(over);
    }
    over.innerHTML = texts;
  };
  const reach = () => {
    for (const one of document.querySelectorAll("[role=tab][tabindex='-1']")) one.tabIndex = 0;
    for (const one of document.querySelectorAll("div[style*='cursor: pointer']:not([tabindex])")) {
      if (one.querySelector("button, input, [tabindex]")) continue;
      one.tabIndex = 0;
      one.setAttribute("role", "button");
    }
  };
  addEventListener("keydown", (event) => {
    const one = event.target;
    if (!["Enter", " "].includes(event.key) || !(one instanceof HTMLElement)) return;
    if (!one.matches("div[role=tab], div[role=button][style*='cursor: pointer']")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    one.click();
  }, true);
  setInterval(() => {
    const status = document.querySelector("[data-urlab-page]");
    if (!status) return;
    colour(status);
    write();
    reach();
  }, 250);
})();</script>""".replace("TEXTS", TEXTS_ID)
)


def texts_html(texts: Mapping[str, str]) -> str:
    """Overlay texts by anchor, as the script wants them."""
    rows = (f'<pre data-anchor="{escape(anchor)}">{escape(text)}</pre>' for anchor, text in sorted(texts.items()))
    return f'<div id="{TEXTS_ID}" hidden>{"".join(rows)}</div>'
