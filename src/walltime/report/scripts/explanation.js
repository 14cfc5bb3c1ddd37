// What can be told of one job from the schedules alone; `walltime explain` tells more, with its reservations and what would have helped.

// Who every job is, seen from one of them: 0 it ran at its submission, 1 it had arrived before, 2 it arrived later, 3 itself.
function rolesFor(job, { submit, start, end }) {
  const roles = new Uint8Array(start.length);
  for (let i = 0; i < start.length; i++) {
    const later = submit[i] > submit[job] || (submit[i] === submit[job] && i > job);
    roles[i] = start[i] <= submit[job] && !later && end[i] > submit[job] ? 0 : later ? 2 : 1;
  }
  roles[job] = 3;
  return roles;
}

// The facts of a job under one policy.
function factsOf(job, policy, jobs, machine) {
  const { submit, start, end, wait, reserved } = policy;
  const facts = { wait: wait[job], start: start[job], kind: KINDS[policy.kind[job]], ahead: 0, overtook: [], free: machine, enough: 0 };
  facts.reserved = reserved[job] < 0 ? null : submit[job] + reserved[job];
  const changes = [];
  for (let i = 0; i < start.length; i++) {
    if (i === job) continue;
    const later = submit[i] > submit[job] || (submit[i] === submit[job] && i > job);
    if (!later && start[i] > submit[job]) facts.ahead++;
    if (later && start[i] < start[job]) facts.overtook.push(i);
    if (start[i] < start[job] && end[i] > submit[job]) {
      if (start[i] <= submit[job]) facts.free -= jobs.procs[i];
      else changes.push([start[i], -jobs.procs[i]]);
      if (end[i] < start[job]) changes.push([end[i], jobs.procs[i]]);
    }
  }
  changes.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let free = facts.free;
  let time = submit[job];
  for (const [next, by] of [...changes, [start[job], 0]]) {
    if (free >= jobs.procs[job]) facts.enough += next - time;
    time = next;
    free += by;
  }
  return facts;
}

const plural = (count, what) => `${grouped(count)} ${what}${count === 1 ? "" : "s"}`;

// The sentences on a job under one policy.
function tell(job, facts, jobs, clock) {
  const told = [];
  const ahead = facts.ahead ? `${plural(facts.ahead, "job")} ${facts.ahead === 1 ? "was" : "were"} ahead of it in the queue` : "no job was ahead of it in the queue";
  told.push(`When it was submitted, ${plural(facts.free, "processor")} ${facts.free === 1 ? "was" : "were"} free, and ${ahead}.`);
  if (!facts.wait) {
    told.push(facts.kind === "backfilled" ? "It was backfilled at once, while other jobs were waiting." : "It started at once.");
    return told;
  }
  told.push(
    facts.enough
      ? `For ${human(facts.wait - facts.enough)} of its wait, too few processors were free; for ${human(facts.enough)}, enough were free, but reserved for other jobs or for jobs ahead of it.`
      : "For the whole wait, too few processors were free.",
  );
  if (facts.reserved !== null) {
    const late = facts.start - facts.reserved;
    const kept = late > 0 ? `; it started ${human(late)} later` : late < 0 ? `; it started ${human(-late)} earlier` : ", when it started";
    told.push(`Its first reservation was for ${clock.text(facts.reserved)}${kept}.`);
  }
  const work = facts.overtook.reduce((sum, i) => sum + jobs.procs[i], 0);
  told.push(
    facts.overtook.length
      ? `${plural(facts.overtook.length, "later job")} overtook it, on ${plural(work, "processor")} in total.`
      : "No later job overtook it.",
  );
  const how = facts.kind === "backfilled" ? "It was backfilled: a job ahead of it was still waiting." : "It started in turn.";
  told.push(how);
  return told;
}
