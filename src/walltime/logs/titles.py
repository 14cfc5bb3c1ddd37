"""Titles of columns and states of jobs, as batch systems and studies write them in tables."""

import functools
import re
from collections.abc import Iterable, Mapping

from walltime.logs.mapping import TIMES, plain_title

SYNONYMS: Mapping[str, str] = {
    "job_id": "jobid jid id idjob jobnumber jobidraw jobno job clusterid localjobid uniqueid jobuniqueid",
    "submit": "submit submittime submittimestamp submitts submissiontime submission submitted submittedtime submittedat timesubmit"
    " timesubmission qsubtime queued queuedtimestamp queuetimestamp queuedat arrival arrivaltime adt created createdat creationtime"
    " createtime jobsubmittime qdate qtime ctime queuetime tsubmit subtime",
    "eligible": "eligible eligibletime timeeligible etime",
    "start": "start starttime starttimestamp startts timestart started startedat begin begintime sdt startdate jobstartdate dispatchtime"
    " startingtime stime trun scheduledtime scheduledat",
    "end": "end ended endtime endtimestamp endts timeend finished finishedat finish finishtime completed completedat completiontime"
    " completiondate edt enddate stop stoptime obittime tinactive deletiontime deletedat",
    "wait": "wait waittime waiting waitingtime queuetime queuedtime queuewait timeinqueue",
    "runtime": "runtime runtimeseconds duration elapsed elapsedtime elapsedraw run executiontime exectime ruwallclock walltimeused"
    " usedwalltime resourcesusedwalltime remotewallclocktime runningtime wallclock wallclocktime execution actualruntime runtimeactual"
    " actualwalltime walltimeactual jobruntime jobduration servicetime elaptime",
    "requested": "requested requestedtime reqtime requestedwalltime walltimereq reqwalltime wallclockreq wallclocklimit wallclockrequested"
    " walltimerequested resourcelistwalltime timelimit timelimitraw walltime walltimelimit elpl hrt runlimit expectedduration"
    " estimatedruntime limit req requestedruntime reqruntime requestedduration requestedwallclock timerequested timereq runtimelimit"
    " maxruntime maxwalltime wallclocktimelimit estimate estimated estimatedtime runtimeestimate userestimate usrest"
    " reqdtime requestwalltime moldablewalltime walllimit durationlimit tlimit",
    "soft_walltime": "softwalltime softwall softlimit softtimelimit resourcelistsoftwalltime",
    "time_min": "timemin mintime minimumtime timelimitmin",
    "predicted": "predicted prediction predictedruntime predictedtime predictedwalltime predictedduration runtimeprediction",
    "allocated_procs": "allocatedprocs ncpus alloccpus allocatedcpus cpusalloc numcoresalloc coresalloc usedcores coresused procs"
    " processors cores numcores ncores corecount cpus numcpus cpunum cpucount usedcpunum nproc nprocs numprocs slots nslots numslots"
    " nbresources resourcescount assignedresourcescount totalcpus totalcores totalprocs proccnt processorcount cpucores alloccores"
    " allocatedcores resourcesusedncpus nallocslot",
    "requested_procs": "requestedprocs processorsreq procsreq reqcpus requestedcpus requestcpus cpusreq reqprocs numcoresreq coresreq"
    " requestedcores requestednumberofresources resourcelistncpus reqcores requestedprocessors res nreqslot",
    "nodes": "nodes nnodes numnodes nodenum nodecount numnodesalloc allocnodes allocatednodes nodesused usednodenum nodect numhosts nhosts"
    " assignednetworkaddresscount nodecnt totalnodes nodesalloc numberofnodes",
    "requested_nodes": "requestednodes noderequested nodesreq reqnodes numnodesreq nodesrequested resourcelistnodect",
    "gpus": "gpus ngpus gpunum numgpus gpucount gpusreq reqgpus numgpusalloc numgpusreq gpusrequested usedgpunum numgpu",
    "user": "user userid username uid owner usr iduser usernamegenid userhash jobowner jobuser uname",
    "group": "account accountid group project projectname groupid accounthash vc idgroup projectnamegenid",
    "queue": "queue queuename qname qos",
    "partition": "partition partitionname partitionid",
    "executable": "jobname name executable application",
    "memory": "memory mem memreq memoryreq reqmem memrequested reqmemtotal",
    "status": "state status jobstate jobstatus exitstate finalstate stat newstatus newstate jobresult podphase outcome exitstatus exitcode",
}
"""Titles for the columns of a log, as lower-case letters and digits, the most likely first."""
MAY_BE_WAITS = ("queued", "queuetime", "qtime")
"""Titles of times, or of durations if the values are small."""
MAY_BE_RUNTIMES = ("walltime", "walltimelimit", "limit")
"""Titles of requests, or of runtimes if the values equal the time from start to end."""
HOURS_AND_MINUTES = ("reqdtime", "elaptime", "runlimit", "runtimelimit")
"""Titles of durations that qstat -a and LSF write in hours and minutes."""
EXITS = ("exitstatus", "exitcode")
_ENDINGS = {"ms": "milliseconds ms", "us": "microseconds us", "ns": "ns", "s": "seconds secs sec s", "min": "minutes mins min"}
_ENDINGS |= {"h": "hours hrs hour h", "kB": "kb kib kbytes", "MB": "mb mib mbytes", "GB": "gb gib gbytes", "B": "bytes"}
ENDINGS: Mapping[str, str] = {end: unit for unit, ends in _ENDINGS.items() for end in ends.split()}
"""Units of durations and of memory with which a title may end."""
MEGABYTES = {"B": 2.0**-20, "kB": 2.0**-10, "MB": 1.0, "GB": 2.0**10}
"""The units of memory, MB."""
EVENT_WORDS: Mapping[str, str] = {
    "submit": "submit submitted submission arrival arrived queued queue enqueued enqueue created creation entered",
    "eligible": "eligible",
    "start": "start started begin began dispatch dispatched launch launched scheduled",
    "end": "end ended finish finished complete completed completion done stop stopped terminated termination deleted deletion",
}
"""Words for the event whose time a column contains."""
TIME_WORDS = (
    "time times timestamp tstamp stamp ts t date datetime dt day at on of job jobs the epoch unix utc gmt local iso s sec seconds ms us ns"
)
"""Additional words that occur in titles of times."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def candidates(words: Iterable[str], titles: Iterable[str]) -> list[tuple[str, str]]:
    """Return the unit (empty if none is given) and title of each column named by one of these words, in the order of the words."""
    rank_of = {word: rank for rank, word in enumerate(dict.fromkeys(words))}
    ranked = [
        (rank_of[word] + shortened * len(rank_of), unit, title)  # full titles precede all shortened ones
        for title in titles
        for word, unit, shortened in _words_of(title)
        if word in rank_of
    ]
    return [(unit, title) for _, unit, title in sorted(ranked, key=lambda one: one[0])]


@functools.lru_cache(4096)
def _words_of(title: str) -> tuple[tuple[str, str, int], ...]:
    """Return the words that a title may be, each with its unit and whether the name of a system was left out (1)."""
    plain = plain_title(title.removesuffix("_x"))  # the suffix that pandas adds to columns of the first of two joined tables
    endings = {"": "", **ENDINGS}
    words = dict.fromkeys((plain, without_system(plain)))
    return tuple((word.removesuffix(end), endings[end], k) for k, word in enumerate(words) for end in endings if word.endswith(end))


def without_system(plain: str) -> str:
    """Return a title without the name of a system and the word job at its beginning.

    >>> without_system("slurmjobwalltime"), without_system("walltime")
    ('walltime', 'walltime')
    """
    return re.sub(r"^(?:slurm|pbs|lsf|sge|oar)?(?:job)?", "", plain)


def times_by_words(name: str, titles: Iterable[str]) -> list[tuple[str, str]]:
    """Return unit and title, as `candidates` does, of columns whose titles name an event's time in other words.

    >>> times_by_words("submit", ["JobSubmitDateTime (UTC)", "submit_host", "SUBMIT_TIMESTAMP_UNIX"])
    [('', 'JobSubmitDateTime (UTC)'), ('', 'SUBMIT_TIMESTAMP_UNIX')]
    """
    if name not in TIMES:
        return []
    suitable = []
    for title in titles:
        events = [word for word in map(str.lower, _WORD.findall(title)) if word not in TIME_WORDS.split()]
        if len(events) == 1 and events[0] in EVENT_WORDS[name].split():
            suitable.append(("", title))
    return suitable


_TELLING = "req request requested limit timelimit walltime mem memory rss maxrss state status exit exitcode gpu gpus gres cpus cores nodes"
"""Words in titles of requests, limits, memory, states and sizes."""
_KNOWN_WORDS = frozenset(" ".join(SYNONYMS.values()).split())


def is_telling(title: str) -> bool:
    """Return whether a title is in `SYNONYMS`, or has a word for a request, a limit, memory, a state or a size.

    >>> is_telling("RequestWalltime"), is_telling("RUNTIMELIMIT"), is_telling("submit_host")
    (True, True, False)
    """
    known = any(word in _KNOWN_WORDS for word, _, _ in _words_of(title))
    return known or bool(set(_TELLING.split()) & {word.lower() for word in _WORD.findall(title)})


def is_of_utc(title: str) -> bool:
    """Return whether a title mentions UTC."""
    return bool({"utc", "gmt"} & {word.lower() for word in _WORD.findall(title)})


KINDS = {
    "failed": r"incomplete|unfinished|unsuccess|not |fail|error",
    "completed": r"complet(?!ing)|done|success|succeed|finish(?!ing)|ok$|exited|^pass|^cd$",
    "cancelled": r"cancel|abort|deleted|revoked|killed|^ca$",
    "pending": r"^(pend|queued|wait|held|hold|idle|tolaunch|resubmit|psusp|pd$)",
    "running": r"^(run$|running|completing|launching|suspended|ususp|ssusp|resuming|finishing|transferring|r$)",
}
OF_OAR = {"completed": "^terminated$"}
"""The usual end of a job in OAR; elsewhere it is a failure."""
FAILURES = r"fail|error|incomplete|unfinished|timeout|memory|preempt|evict|revoked|deadline"
EXIT_CODE = re.compile(r"-?[0-9]+(?:\.0*)?(?::[0-9]+)?")
"""An exit code, perhaps followed by a signal as in Slurm's 0:9."""


def words_by_kind(texts: Iterable[str], kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the distinct states by kind: the first kind whose pattern a state matches, or else `failed`."""
    words: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        kind = next((kind for kind, pattern in kinds.items() if re.search(pattern, text.lower())), "failed")
        words.setdefault(kind, []).append(text)
    return words
