// Times tick, and what the user has opened or closed stays so when a part of the page is replaced. Everything else works
// without this file.
(() => {
  "use strict";
  // The clock of the browser may be wrong: the server's counts.
  const offset = Date.parse(document.body.dataset.now) - Date.now();
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

  function relative(seconds) {
    const parts = [];
    let left = Math.abs(seconds);
    for (const [unit, size] of units) {
      const number = Math.floor(left / size);
      if (number > 0 && parts.length < 2) { parts.push(number + unit); }
      left -= number * size;
    }
    const text = parts.join("") || "0s";
    return text + (seconds < 0 ? " from now" : " ago");
  }

  // How times are written at an axis, where there is little room.
  const scales = {
    clock: { hour: "2-digit", minute: "2-digit" },
    day: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
    date: { year: "numeric", month: "short", day: "numeric" },
  };

  function tick() {
    for (const element of document.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      const scale = scales[element.className];
      const text = scale ? at.toLocaleString([], scale) : relative(Math.floor((Date.now() + offset - at) / 1000));
      if (element.textContent !== text) { element.textContent = text; }
      element.title = at.toLocaleString() + " here, " + at.toISOString();
    }
  }
  // What acts on a command line can be copied; without script there is no button.
  document.body.classList.add("script");
  document.addEventListener("click", async event => {
    const button = event.target.closest("[data-copy]");
    if (!button) { return; }
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch { // the page may not, as without TLS from another machine: the line is selected, so that a key copies it
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }
  });
  tick();
  setInterval(tick, 1000);
  if (!window.htmx) { return; }
  window.htmx.registerExtension("fleet", {
    htmx_before_morph_attr: (element, detail) => !(detail.attrName === "open" && element.tagName === "DETAILS"),
  });
  document.addEventListener("htmx:after:swap", tick);
  // Why the page is not kept up to date any more stands where the server says such things, until the server does again.
  function tell(status, said) {
    const note = document.createElement("p");
    note.className = "alarm";
    note.setAttribute("role", "alert");
    note.textContent = status === 401
      ? "Your session is over: open the dashboard anew, in another tab if you want to keep this one. What you see is the last of it."
      : (said || "The dashboard does not answer.") + " What you see is the last of it; it is tried again by itself.";
    const trouble = document.getElementById("trouble");
    if (trouble.textContent.trim() !== note.textContent) { trouble.replaceChildren(note); }
  }
  document.addEventListener("htmx:sse:error", event => tell(event.detail.status));
  // The extension opens a stream anew that has ended, but not one that was refused at first.
  const live = document.querySelector("[hx-sse\\:connect]");
  let refusals = 0;
  document.addEventListener("htmx:finally:request", event => {
    if (event.target !== live || live._htmx?.sse) { return; }
    const answer = event.detail.ctx;
    const plain = answer.response?.headers.get("Content-Type")?.startsWith("text/plain");
    tell(answer.response?.status, plain && answer.text.trim());
    const longest = 60000;
    setTimeout(() => window.htmx.ajax("GET", live.getAttribute("hx-sse:connect"), { source: live }), Math.min(500 * 2 ** refusals++, longest));
  });
})();
