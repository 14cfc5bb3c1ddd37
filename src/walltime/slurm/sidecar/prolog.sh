#!/bin/sh
# PrologSlurmctld: raises the limit of a job that backfill has shortened to its user's, as the side-car has noted it in the spool folder.
# It never lowers a limit, touches no other job, and never fails a job. slurmctld runs it without PATH and without SLURM_CONF, as
# SlurmUser. After it has been put into slurm.conf slurmctld must be restarted: scontrol reconfigure is not enough.
spool=@SPOOL@
PATH=@FOLDER@:/usr/bin:/bin
export PATH@CONF@

say() {
    logger -t walltime-prolog -- "$1" 2>/dev/null
    return 0
}

# minutes of a limit as squeue prints it (1-02:03:04, 2:03:04, 3:04), rounded up; nothing for words such as UNLIMITED
minutes_of() {
    rest=$1 days=0
    case $rest in *[!0-9:-]* | "") return ;; esac
    case $rest in *-*) days=${rest%%-*} rest=${rest#*-} ;; esac
    seconds=${rest##*:} rest=${rest%:*}
    case $rest in *:*) hours=${rest%%:*} rest=${rest#*:} ;; *) hours=0 ;; esac
    for part in days hours rest seconds; do # 08 would be an octal number
        eval "value=\$$part"
        case $value in 0?*) value=${value#0} ;; esac
        eval "$part=\$value"
    done
    total=$((days * 1440 + hours * 60 + rest))
    [ "$seconds" -eq 0 ] || total=$((total + 1))
    echo "$total"
}

raise_limit() {
    case ${SLURM_ARRAY_JOB_ID:-} in
        "" | 0) key=${SLURM_JOB_ID:-} ;;
        *) key=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID:-} ;;
    esac
    case $key in "" | *[!0-9_]* | _* | *_ | *_*_*) return ;; esac
    [ -f "$spool/$key" ] && [ ! -L "$spool/$key" ] || return
    IFS=' ' read -r known minutes <"$spool/$key" || return
    minutes=${minutes:-$known}
    for part in "$known" "$minutes"; do
        case $part in "" | 0* | *[!0-9]* | ???????*) say "job $key: its file has no number of minutes" && return ;; esac
    done
    for try in 1 2 3; do
        shown=$(timeout 10 squeue --noheader --jobs="$key" --Format=TimeLimit:30,MinTime:30 2>/dev/null)
        set -f
        set -- $shown
        case ${2:-} in
            "") sleep 1 && continue ;;
            N/A | 0:00 | 00:00) return ;; # it has no TimeMin, so its limit is what its user wants
        esac
        now=$(minutes_of "$1")
        # a job that has its known limit was not shortened
        [ -n "$now" ] && [ "$now" -lt "$known" ] && [ "$now" -lt "$minutes" ] || return
        if timeout 10 scontrol update JobId="$key" TimeLimit="$minutes" >/dev/null 2>&1; then
            say "job $key: its limit of $now minutes is raised to $minutes"
            return
        fi
        sleep 1
    done
    say "job $key: its limit could not be raised to $minutes minutes"
}

(raise_limit) </dev/null >/dev/null 2>&1
exit 0
