// Pointer, wheel, fingers and keys on a Gantt chart.

function steer(gantt, view, { hover, choose }) {
  const { canvas } = gantt;
  const pointers = new Map();
  let dragged = false;
  const timeAt = (clientX) => {
    const box = canvas.getBoundingClientRect();
    const share = (clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    return view.begin + Math.min(Math.max(share, 0), 1) * (view.end - view.begin);
  };
  const perPixel = () => (view.end - view.begin) / Math.max(canvas.clientWidth - MARGIN.left - MARGIN.right, 1);

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, event.clientX);
    canvas.setPointerCapture(event.pointerId);
    dragged = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) {
      hover(gantt, event);
      return;
    }
    const before = pointers.get(event.pointerId);
    if (!dragged && Math.abs(event.clientX - before) < 3) return;
    dragged = true;
    hover(gantt, null);
    if (pointers.size === 1) {
      const by = (before - event.clientX) * perPixel();
      view.set(view.begin + by, view.end + by);
    } else {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const factor = Math.abs(before - other) / Math.max(Math.abs(event.clientX - other), 1);
      view.zoom(Math.min(Math.max(factor, 0.5), 2), timeAt((event.clientX + other) / 2));
    }
    pointers.set(event.pointerId, event.clientX);
  });
  const release = (event) => {
    const held = pointers.delete(event.pointerId);
    if (held && event.type === "pointerup" && !dragged) {
      const place = gantt.at(event);
      const job = place ? gantt.jobAt(place) : -1;
      if (job >= 0) choose(job, gantt);
    }
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hover(gantt, null));
  canvas.addEventListener("dblclick", (event) => view.zoom(0.25, timeAt(event.clientX)));
  canvas.addEventListener(
    "wheel",
    (event) => {
      // a plain wheel scrolls the page; with Ctrl, or once the chart has the focus, it zooms
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.set(view.begin + event.deltaX * perPixel(), view.end + event.deltaX * perPixel());
      else if (event.ctrlKey || document.activeElement === canvas) view.zoom(1.2 ** Math.sign(event.deltaY), timeAt(event.clientX));
      else return;
      event.preventDefault();
    },
    { passive: false },
  );
  const keys = {
    ArrowLeft: () => view.pan(-0.2),
    ArrowRight: () => view.pan(0.2),
    "+": () => view.zoom(0.5),
    "=": () => view.zoom(0.5),
    "-": () => view.zoom(2),
    Home: () => view.whole(),
    n: () => choose(neighbour(gantt, 1), gantt),
    p: () => choose(neighbour(gantt, -1), gantt),
    Escape: () => choose(-1, gantt),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

// The job that starts next, or before, the selected one; without one the first that starts in the middle of the view or later.
function neighbour({ policy, selected, view }, step) {
  const { stripJob, start, firstStrip } = policy;
  if (selected < 0 || firstStrip[selected] < 0) {
    const middle = (view.begin + view.end) / 2;
    const k = stripJob.findIndex((job) => start[job] >= middle);
    return k < 0 ? -1 : stripJob[k];
  }
  let k = firstStrip[selected];
  while (stripJob[k] === selected) k += step;
  return stripJob[k] ?? selected;
}
